"""What SQL counts in captured trials, against plain loops over the same tables."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.report.synthetic import Shape, write_run
from tests.report.synthetic_packets import write_traces
from trifecta.conclude import queries
from trifecta.conclude.packets.metrics import captured_trials, sql_metrics
from trifecta.store import results_manifest
from trifecta.store.trace_schema import SCHEMAS

Row = dict[str, Any]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    few: dict[str, Any] = {"blocks": 2, "samples_per_trial": 60, "paths": ("far",), "connections": ("new",)}
    shape = Shape(**few, servers=("origin",), troubles=False)
    run = write_run(tmp_path_factory.mktemp("runs") / "captured", shape)
    write_traces(run, size=30_000, lose=(12,))
    return run


def rows(run: Path, name: str) -> list[Row]:
    return pq.read_table(run / "trace" / f"{name}.parquet").to_pylist()


def counts(run: Path) -> dict[str, Row]:
    with queries.connect(run) as connection:
        return {row["trial"]: row for row in sql_metrics(connection)}


def changed(run: Path, name: str, change: Callable[[list[Row]], list[Row]]) -> None:
    file = f"trace/{name}.parquet"
    pq.write_table(pa.Table.from_pylist(change(rows(run, name)), SCHEMAS[name].arrow()), run / file)
    results_manifest.note(run, [file])


def test_counts_are_those_of_plain_loops(run: Path) -> None:
    found, packets, messages = counts(run), rows(run, "packets"), rows(run, "messages")
    assert len(found) == len(list((run / "trials").iterdir()))
    for one in rows(run, "connections"):
        mine = [row for row in packets if row["connection"] == one["connection"]]
        near = [row for row in mine if row["side"] == "a"]
        sent = [row for row in mine if (row["side"] == "a") == (row["direction"] == "up")]
        asked = [row for row in messages if row["connection"] == one["connection"]]
        answered_ns = min(row["response_start_ns"] for row in asked)
        before = [row["wire_bytes"] for row in near if row["time_ns"] <= answered_ns]
        expected = {
            "duration_ns": one["end_ns"] - one["start_ns"],
            "setup_ns": min(row["request_start_ns"] for row in asked) - one["start_ns"],
            "first_response_ns": answered_ns - one["start_ns"],
            "setup_packets": len(before),
            "setup_bytes": sum(before),
            "connections": 1,
            "packets": len(near),
            "packets_up": sum(row["direction"] == "up" for row in near),
            "wire_bytes": sum(row["wire_bytes"] for row in near),
            "content_bytes": sum(row["response_body_bytes"] for row in asked),
            "largest_bytes": max(row["wire_bytes"] for row in near),
            "lost": 1,
            "again": sum(bool(row["retransmission"]) for row in sent),
        }
        row = found[one["capture"].removesuffix(".pcapng")]
        assert {name: row[name] for name in expected} == expected
        assert expected["packets_up"] != expected["packets"] - expected["packets_up"]


def test_what_was_damaged_counts_once_and_what_is_of_others_does_not(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    run = tmp_path / "run"
    before = counts(run)
    first, second = sorted(before)[:2]
    capture = f"{first}.pcapng"
    there = [row["packet_id"] for row in rows(run, "packets") if row["capture"] == capture and row["side"] == "a"]
    one = next(identity for identity in there if identity >> 63)  # of the server, and it arrived

    def damage(packets: list[Row]) -> list[Row]:
        for row in packets:
            if (row["capture"], row["packet_id"]) == (capture, one):
                row["fate"] = "corrupted"
        return packets

    def add(connections: list[Row]) -> list[Row]:
        own = next(row for row in connections if row["capture"] == capture)
        late = own | {"connection": 900, "truncated": "start"}
        other_wire = own | {"connection": 901, "capture": f"{first}-client-router.pcapng", "packets": 1}
        return [*connections, late, other_wire]

    changed(run, "packets", damage)
    changed(run, "connections", add)
    file = run / "trials" / f"{second}.parquet"
    (row,) = pq.read_table(file).to_pylist()
    pq.write_table(pa.Table.from_pylist([row | {"error": "the link died"}], pq.read_schema(file)), file)
    after = counts(run)
    assert set(before) - set(after) == {second}
    assert after[first]["lost"] == before[first]["lost"] + 1
    assert after[first]["connections"] == 2  # that of the other wire, and none that a former trial left over
    with queries.connect(run) as connection:
        looked = {each.trial: each.tables for each in captured_trials(connection)}
    assert looked[first]["packets"].num_rows == sum(row["capture"] == capture for row in rows(run, "packets"))


def test_a_trial_whose_capture_lacks_packets_is_left_out(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    run = tmp_path / "run"
    before = counts(run)
    first = min(before)

    def lack(connections: list[Row]) -> list[Row]:
        own = next(row for row in connections if row["capture"] == f"{first}.pcapng")
        return [*connections, own | {"connection": 900, "truncated": "octets,packets"}]

    changed(run, "connections", lack)
    assert set(before) - set(counts(run)) == {first}
    with queries.connect(run) as connection:
        assert first not in {each.trial for each in captured_trials(connection)}
