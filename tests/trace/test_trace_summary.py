import shutil
from pathlib import Path

import pytest

from tests.analysis.transport.flows import bursts
from tests.analysis.transport.scene import Scene
from tests.report.synthetic_packets import MS, World, tables
from trifecta.trace.dissect import dissect
from trifecta.trace.dissection import Dissection
from trifecta.trace.summary import METRICS, by_connection, trace_metrics

CAPTURES = Path(__file__).parent / "captures"


def _values(found: Dissection) -> dict[tuple[str, str | None, str], dict[str, object]]:
    table = trace_metrics(found)
    assert table.schema == METRICS
    rows = {(row["family"], row["direction"], row["metric"]): row for row in table.to_pylist()}
    assert len(rows) == table.num_rows
    return rows


def test_every_metric_has_a_row_and_what_is_unknown_is_null_with_a_note() -> None:
    scene = Scene("udp", "h3", both=False, about={"decrypted": False, "truncated": "keys"})
    bursts(scene, [10, 20])
    scene.rows["frames"].clear()
    rows = _values(Dissection(**scene.tables()))
    assert rows["setup", None, "ratio"]["value"] is None and rows["setup", None, "ratio"]["note"]
    assert rows["acknowledgements", "up", "count"]["value"] is None
    assert rows["overhead", None, "wire_by_content"]["value"] is None
    assert rows["slow_start", "down", "pauses"]["value"] is None and rows["slow_start", "down", "pauses"]["note"]
    assert rows["stalls", "down", "connection_held"]["value"] is None
    assert rows["stalls", "down", "total"]["value"] is None and rows["stalls", "down", "total"]["note"]
    assert rows["rate", "down", "gap_p50"]["value"] == 10_000


def test_windows_and_parts_are_rows() -> None:
    scene = Scene()
    bursts(scene, [10, 20, 40])
    rows = _values(Dissection(**scene.tables()))
    assert rows["slow_start", "down", "initial_window"]["value"] == 10_000
    assert rows["slow_start", "down", "growth"]["bound"] == 2
    parts = sum(row["value"] for (family, way, _), row in rows.items() if family == "overhead" and way)  # type: ignore[misc]
    assert parts == rows["overhead", None, "wire_bytes"]["value"]


def _connection(found: Dissection) -> dict[str, dict[str, dict[str, float | None]]]:
    (only,) = by_connection(trace_metrics(found)).values()
    return only


@pytest.mark.parametrize(("arm", "others"), [("h2", True), ("h3", False)])
def test_what_a_lost_packet_cost_is_in_the_metrics(arm: str, others: bool) -> None:
    told = _connection(tables(World(arm=arm, size=60_000, requests=3, lose=(20,))))
    down = told["recovery"]["down"]
    assert (down["lost"], down["spurious"], down["not_repaired"]) == (1, 0, 0)
    assert down["repair_p50"] == down["repair_most"] == 80 * MS  # again a round trip and a half later, half to arrive
    assert told["recovery"]["up"]["lost"] == 0
    waits = told["blocking"]["down"]
    assert waits["by_others"] is not None and (waits["by_others"] > 0) is others
    assert waits["holes"] == 1
    parts = dict(told["attribution"]["both"])
    assert parts.pop("requests") == 3
    whole = parts.pop("whole")
    assert whole and sum(value or 0 for value in parts.values()) == pytest.approx(whole)


def test_what_nobody_can_know_of_waits_is_null_with_a_note() -> None:
    one_side = _values(tables(World(arm="h2", size=30_000, sides=False, lose=())))
    whole = one_side["attribution", None, "whole"]
    assert whole["value"] is None and "both sides" in str(whole["note"])
    assert one_side["recovery", "down", "lost"]["value"] is None and one_side["recovery", "down", "lost"]["note"]
    without_keys = _values(tables(World(arm="h3", size=30_000, keys=False, lose=())))
    assert without_keys["blocking", "down", "by_others"]["value"] is None
    assert without_keys["blocking", "down", "by_others"]["note"]


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is missing: scripts/setup.sh dev")
def test_a_capture_has_its_bound_and_ratio() -> None:
    rows = _values(dissect([CAPTURES / "h3.pcapng"], CAPTURES / "h3.keys"))
    ratio, trips = rows["setup", None, "ratio"], rows["setup", None, "round_trips_to_response"]
    assert (trips["value"], trips["bound"]) == (2, 2) and 1 < float(str(ratio["value"])) < 2
    assert rows["overhead", None, "content_bytes"]["value"] == 16_000
