"""The report of a captured run: its pictures, its numbers with their SQL, and what others published."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.report import pages
from tests.report.held import asked
from tests.report.synthetic import Shape, write_run
from tests.report.synthetic_packets import write_traces
from trifecta.analysis.published import Place, evaluate, matching
from trifecta.conclude import queries
from trifecta.conclude.packets import catalogue
from trifecta.conclude.packets.metrics import captured_trials
from trifecta.conclude.visits.published import load_studies
from trifecta.design.errors import CannotError
from trifecta.report.html import render, write_report
from trifecta.store import views
from trifecta.store.schema import TRIALS

SHAPE: dict[str, Any] = {"blocks": 3, "samples_per_trial": 60, "paths": ("far",), "connections": ("new",)}


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = write_run(tmp_path_factory.mktemp("runs") / "captured", Shape(**SHAPE, servers=("origin",), troubles=False))
    write_traces(run, size=30_000, lose=(12,))
    write_report(run)
    return run


def root(run: Path) -> pages.Element:
    found = pages.read((run / "report.html").read_text())
    assert found.faults == []
    return found.root


def test_its_numbers_are_those_of_the_sql(captured: Path) -> None:
    found = [one for one in pages.numbers(root(captured)) if "packet_" in one.sql or "published" in one.sql]
    assert len(found) > 150
    pages.assert_sql_gives(captured, found)
    with views.connect(captured) as connection:
        assert len(connection.execute(catalogue.CHOSEN.text()).fetchall()) == 3


def test_the_sql_can_be_pasted_and_keys_tell_rows_apart(captured: Path) -> None:
    for query in catalogue.QUERIES:
        assert not set('"$!`\\') & set(query.text("path=a'b")), query.name
        keys = [tuple(row[name] for name in query.key) for row in asked(captured, query.text())]
        assert len(keys) == len(set(keys)), query.name


def test_a_cell_shows_the_trial_with_the_median_duration(captured: Path) -> None:
    every = asked(captured, "SELECT capture, end_ns - start_ns AS duration_ns FROM connections")
    by_capture = {row["capture"]: row["duration_ns"] for row in every}
    trials = asked(captured, "SELECT trial, arm FROM trials WHERE NOT is_aa")
    for row in asked(captured, catalogue.CHOSEN.text()):
        own = sorted(by_capture[f"{one['trial']}.pcapng"] for one in trials if one["arm"] == row["arm"])
        assert row["duration_ns"] == own[(len(own) + 1) // 2 - 1]
        assert row["trials"] == len(own)


def test_every_picture_is_in_the_page_and_a_file(captured: Path) -> None:
    page = root(captured)
    titles = [figure.all("figcaption")[0].text for figure in page.all("figure") if figure.all("figcaption")]
    for title in (
        "Where the time of a request went",
        "Time and sequence",
        "Streams",
        "The difference to HTTP/2, part by part",
        "Rate over time",
        "Packets per acknowledgement",
        "What responses waited for at their sender",
        "Packet sizes over time",
        "Set-up",
        "Gaps between packets",
        "What the wire carried",
        "Head-of-line blocking, by request",
    ):
        assert titles.count(title) == 1, title
    names = {file.name for file in (captured / "figures").iterdir()}
    drawn = ("attribution", "time-differences", "time-sequence", "streams", "packet-sizes", "rate", "acknowledgements")
    for name in (*drawn, "set-up", "packet-gaps", "overhead", "stalls", "blocking"):
        for kind in ("svg", "png"):
            assert any(one.endswith(f"-{name}.{kind}") for one in names), name
    html = (captured / "report.html").read_text()
    ids = [element.attributes["id"] for element in page.all() if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    assert re.findall(r"#0[12]00[0-9a-f]{2}\b", html) == []
    assert len(html.encode()) < 3_000_000


def test_pictures_beyond_the_size_of_a_page_are_files_only(captured: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["trifecta.report.packets.section"], "MOST_BYTES", 1000)
    text = render(captured)
    figures = pages.read(text).root.all("figure")
    assert "Time and sequence" not in [one.all("figcaption")[0].text for one in figures if one.all("figcaption")]
    assert "Pictures of 1 cell are not embedded" in text


def test_parts_add_up(captured: Path) -> None:
    for row in asked(captured, catalogue.CHOSEN.text()):
        parts = asked(
            captured, f"SELECT kind, sum(value) AS whole FROM packet_parts WHERE arm = '{row['arm']}' GROUP BY kind"
        )
        whole = {one["kind"]: one["whole"] for one in parts}
        sides = "(side = 'a') = (direction = 'up')"
        sent = asked(
            captured, f"SELECT sum(wire_bytes) AS n FROM packets WHERE {sides} AND capture = '{row['capture']}'"
        )
        assert whole["overhead"] == float(sent[0]["n"])
        found: dict[str, dict[str, Any]] = {}
        for one in asked(captured, f"SELECT kind, part, value, share FROM packet_parts WHERE arm = '{row['arm']}'"):
            found.setdefault(one["kind"], {})[one["part"]] = (one["value"], one["share"])
        content = found["overhead"]["content"][0]
        assert all(share == (value / content if content else None) for value, share in found["overhead"].values())
        assert sum(share for _, share in found["stalls"].values()) == pytest.approx(1)
        with queries.connect(captured) as connection:
            waits = next(one.summary.blocking for one in captured_trials(connection) if one.trial == row["trial"])
        assert len(waits) == (1 if row["arm"] == "h1" else 3)
        for part, (value, share) in found["blocking"].items():
            mean = sum(getattr(wait, f"{part}_ns") for wait in waits) / len(waits)
            assert (value, share) == (mean, mean / (sum(wait.load_ns or 0 for wait in waits) / len(waits)))
        assert found["blocking"]["by_own"][0] > 0


def test_times_of_requests_are_means_over_all_blocks_and_add_up(captured: Path) -> None:
    rows = asked(captured, catalogue.TIMES.text())
    by = {(row["arm"], row["part"]): row for row in rows}
    assert {row["blocks"] for row in rows} == {SHAPE["blocks"]}
    for arm in ("h1", "h2", "h3"):
        parts = [row for row in rows if row["arm"] == arm and row["part"] != "whole"]
        whole = by[arm, "whole"]
        assert len(parts) == 11
        assert sum(row["value"] for row in parts) == pytest.approx(whole["value"], rel=1e-12)
        assert (whole["share"], sum(row["share"] for row in parts)) == (1, pytest.approx(1))
        # The mean over blocks of the mean over requests, from the request's (or its connection's) first packet on.
        loads = asked(
            captured,
            "SELECT avg(mean) AS mean FROM (SELECT block, avg(response_end_ns - request_start_ns) AS mean FROM "
            "messages AS m JOIN trials AS t ON m.capture = t.trial || '.pcapng' "
            f"WHERE t.arm IN ('{arm}', '{arm}#aa') GROUP BY block)",
        )
        assert whole["value"] >= float(loads[0]["mean"]) * 0.999
        if arm == "h2":
            assert whole["difference"] is None
            continue
        assert whole["difference"] == pytest.approx(whole["value"] - by["h2", "whole"]["value"], abs=1)
        assert sum(row["difference"] for row in parts) == pytest.approx(whole["difference"], abs=1)
        assert whole["difference_low"] <= whole["difference"] <= whole["difference_high"]
        # Over HTTP/3 it is a round trip, which is another in every block.
        assert (whole["difference_low"] < whole["difference"] < whole["difference_high"]) is (arm == "h3")
    page = (captured / "report.html").read_text()
    assert "A request took" in page or "A request over HTTP/3 cannot be told" in page
    assert f"over {SHAPE['blocks']} captured blocks" in page


def test_every_trial_has_its_values_of_packets(captured: Path) -> None:
    from trifecta.conclude.packets.metrics import trial_values

    with queries.connect(captured) as connection:
        rows = trial_values(connection)
    assert {row["request_packets"] for row in rows if row["arm"] == "h3"} == {5}
    assert {row["request_packets"] for row in rows if row["arm"] != "h3"} == {8}
    kept = asked(captured, "SELECT metric, arm, value FROM packet_metrics WHERE metric = 'request_packets'")
    assert {row["arm"]: round(row["value"], 6) for row in kept} == {"h1": 8, "h2": 8, "h3": 5}


def write_whole(run: Path) -> Path:
    write_run(run, Shape(**SHAPE, servers=("origin",), troubles=False))
    write_traces(run, size=5_000, lose=())
    return run


def fail(file: Path, check: str) -> None:
    """Make a trial one that failed this check."""
    row = pq.read_table(file).to_pylist()[0]
    failed = {"check": check, "scope": row["trial"], "status": "fail", "evidence": "", "value": None, "limit": None}
    row |= {"valid": False, "checks_json": json.dumps([{**failed, "remedy": ""}])}
    pq.write_table(pa.Table.from_pylist([row], TRIALS.arrow()), file)


def test_only_a_check_on_captures_may_have_failed(captured: Path, tmp_path: Path) -> None:
    run = write_whole(tmp_path / "run")
    files = sorted((run / "trials").iterdir())
    for file, name in zip(files[:2], ("capture", "path"), strict=True):
        fail(file, name)
    from trifecta.conclude.packets.metrics import trial_values

    with queries.connect(run) as connection:
        kept = {row["trial"] for row in trial_values(connection)}
    assert files[0].stem in kept
    assert files[1].stem not in kept
    assert len(kept) == len(files) - 1


def test_a_protocol_without_a_capture_to_show_is_named_with_the_reason(tmp_path: Path) -> None:
    run = write_whole(tmp_path / "run")
    rows = {file: pq.read_table(file).to_pylist()[0] for file in (run / "trials").iterdir()}
    cell = min(row["cell"] for row in rows.values())
    there = [file for file, row in rows.items() if (row["cell"], row["arm"]) == (cell, "h3")]
    for file in there:
        fail(file, "noise_floor")
    said = f"HTTP/3 is not shown: all of its {len(there)} trials failed the check noise floor."
    assert len(there) > 1
    assert render(run).count(said) == 1
    assert "is not shown" not in render(write_whole(tmp_path / "whole"))


def test_a_run_without_captures_says_nothing_of_packets(small: Path) -> None:
    assert 'id="packets"' not in render(small)


def test_published_numbers_of_ding2022_stand_beside_cells_of_their_size() -> None:
    study = next(one for one in load_studies() if one.id == "ding2022")
    levels = [("new", 1_000_000, "curl"), ("reused", 35, "curl"), ("new", 10_000_000, "load"), ("new", 35, "load")]
    cells = [
        Place(
            "run",
            f"{way}, {size}",
            {"kind": "requests", "connection": way, "response_bytes": str(size), "client": client, "server": "caddy"},
            [],
        )
        for way, size, client in levels
    ]
    found = {one.text.split(":")[0]: matching(one, cells) for one in study.statements if one.kind == "figure"}
    assert found == {
        "hello, a new connection for every request": [],
        "hello, one connection": [cells[1]],
        "1 MB, a new connection for every request": [cells[0]],
        "1 MB, one connection": [],
        "10 MB, a new connection for every request": [cells[2]],
        "10 MB, one connection": [],
        "mean of the tests": cells[:2],
        "application data in the four tests": cells[:2],
    }


def test_what_is_an_artefact_is_named_and_not_judged() -> None:
    study = next(one for one in load_studies() if one.id == "ding2022")
    for subject in study.document["numbers"]:
        for one in subject["metrics"]:
            assert (one["metric"] in ("packets", "largest_bytes")) == ("artefact" in one), one
            assert one.get("artefact", "loopback-offload") in study.threats
    judged = [one for one in study.statements if one.says and one.says.metric == "packets"]
    assert judged
    assert all(evaluate(one, []).state == "not compared" for one in judged)


def test_captures_that_nobody_dissected_are_said_to_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = write_run(tmp_path / "run", Shape(**SHAPE, servers=("origin",), troubles=False))
    (run / "captures").mkdir()
    (run / "captures" / "t00000.pcapng").write_bytes(b"")

    def missing(*_: object, **__: object) -> None:
        raise CannotError("tshark is not installed")

    monkeypatch.setattr("trifecta.trace.dissect.dissect", missing)
    write_report(run)
    section = next(one for one in root(run).all("section") if one.attributes.get("id") == "packets")
    assert "trifecta trace RUN" in section.text
