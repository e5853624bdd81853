"""The first screen: one row per path, what came first, values, ratio, forest, and one thing to do next."""

from __future__ import annotations

import dataclasses
import math
import re
import shlex
from pathlib import Path

import pytest

from tests.report import pages
from tests.report.synthetic import Shape, write_run
from tests.report.test_report_terminal import printed
from trifecta.conclude import catalogue, evidence_queries, exclusions, queries
from trifecta.conclude.comparisons import Comparison
from trifecta.conclude.queries import QueryResult
from trifecta.report import overview, overview_grid, terminal
from trifecta.report.html import render
from trifecta.report.overview import PathRow
from trifecta.store import views


def row(first: list[tuple[tuple[str, ...], int]], cells: int) -> PathRow:
    return PathRow("far", "", first, cells, {}, {}, (None, None), 0, (None, None), 0, [], "")


@pytest.mark.parametrize(
    ("first", "cells", "said"),
    [
        ([(("h3",), 4)], 4, [("HTTP/3", "in all 4 cells")]),
        ([(("h3",), 1)], 1, [("HTTP/3", "")]),
        ([(("h3",), 2), ((), 2)], 4, [("HTTP/3", "in 2 of 4 cells"), ("open", "in 2")]),
        ([(("h1", "h2"), 1)], 1, [("HTTP/1.1 = HTTP/2", "")]),
        ([(("h1", "h2", "h3"), 2)], 2, [("no difference", "in all 2 cells")]),
        ([((), 3)], 3, [("open", "in all 3 cells")]),
    ],
)
def test_who_came_first_in_how_many_cells(first: list, cells: int, said: list[tuple[str, str]]) -> None:
    assert overview.winners(row(first, cells), 3) == said


def test_the_report_begins_with_a_row_a_path(run: Path) -> None:
    root = pages.read((run / "report.html").read_text()).root
    (table,) = [one for one in root.all("table") if one.has("opening")]
    assert next(iter(root.all("table"))) is table
    rows = [line.all("th")[0].all("b")[0].text for line in table.all("tr")[1:]]
    assert rows == ["clean", "far", "rough"]
    assert [len(line.all("svg")) for line in table.all("tr")[1:]] == [1, 1, 1]
    left = [line.all("td")[-1].text for line in table.all("tr")[1:]]
    assert all(re.fullmatch(r"\d+ of 12 open: [\d,]+ more blocks? a cell", one) for one in left), left
    answer = next(one for one in root.all("section") if one.attributes.get("id") == "answer")
    assert answer.text.count("Next.") == 1


def test_its_values_are_the_medians_of_the_trials_and_its_ratios_those_of_the_verdicts(run: Path) -> None:
    about = terminal.summarise(run).about
    with views.connect(run) as connection:
        trials = connection.execute(
            "SELECT cell, median(latency_p50_ns) FROM trials WHERE valid AND arm = 'h3' AND path = 'far' GROUP BY cell"
        ).fetchall()
        verdicts = connection.execute(
            "SELECT ratio, low, high FROM verdicts WHERE cell LIKE 'path=far,%' AND arm = 'h3' AND reference = 'h2' "
            "AND metric = 'latency_p50_ns'"
        ).fetchall()
    with queries.connect(run) as connection:
        found = overview.ask(connection, about)
    assert found is not None
    (far,) = found.where(path="far", arm="h3")
    assert far["cells"] == 4
    assert (far["least"], far["most"]) == (min(v for _, v in trials), max(v for _, v in trials))
    assert (far["least_ratio"], far["most_ratio"]) == (min(r for r, _, _ in verdicts), max(r for r, _, _ in verdicts))
    assert (far["low"], far["high"]) == (min(low for _, low, _ in verdicts), max(high for _, _, high in verdicts))


@pytest.mark.parametrize(
    ("intervals", "said"),
    [
        ([(0.6, 0.7), (0.5, 0.8)], (0.5, 0.8, "")),
        ([(0.6, 0.7), (None, 0.8)], (None, 0.8, "")),
        ([(0.6, 0.7), (None, None)], (0.6, 0.7, "1 of 2 cells")),
        ([(0.6, None), (None, None)], (0.6, None, "1 of 2 cells")),
        ([(None, None), (None, None)], (None, None, "")),
    ],
)
def test_cells_without_an_interval_do_not_hide_those_of_others(
    tmp_path: Path, intervals: list[tuple[float | None, float | None]], said: tuple[float | None, float | None, str]
) -> None:
    shape = Shape(blocks=4, samples_per_trial=40, paths=("far",), connections=("new", "reused"), servers=("origin",))
    run = write_run(tmp_path / "run", shape)
    summary = terminal.summarise(run)
    with queries.connect(run) as connection:
        connection.execute(
            "CREATE TABLE changed AS SELECT * FROM verdicts WHERE metric = ? AND arm = 'h3'", ["latency_p50_ns"]
        )
        for cell, ends in zip(dict.fromkeys(one.cell for one in summary.comparisons), intervals, strict=True):
            connection.execute("UPDATE changed SET low = ?, high = ? WHERE cell = ?", [*ends, cell])
        connection.execute("CREATE OR REPLACE VIEW verdicts AS SELECT * FROM changed")
        found = overview.ask(connection, summary.about)
        checks = queries.ask(connection, evidence_queries.CHECK_MATRIX)
        by_arm = queries.ask(connection, exclusions.BY_ARM)
    opening = overview.overview(summary.about, summary.comparisons, found, summary.totals, checks, by_arm=by_arm)
    assert opening is not None
    (far,) = opening.rows
    assert (*far.interval, overview.part(far, far.intervals)) == said


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        ({"far": 4}, "No trial of HTTP/3 counts in 1 of 2 cells. Look at the log, then measure again."),
        ({"far": 4, "clean": 3}, "No trial of HTTP/3 counts in any cell. Look at the log, then measure again."),
        ({"far": 2}, "Measure more: "),
    ],
)
def test_an_arm_that_never_counts_is_to_be_mended_first(tmp_path: Path, lost: dict[str, int], said: str) -> None:
    shape = Shape(blocks=4, samples_per_trial=40, paths=("far",), connections=("new",), servers=("origin",))
    summary = terminal.summarise(write_run(tmp_path / "run", shape))
    with queries.connect(tmp_path / "run") as connection:
        found = overview.ask(connection, summary.about)
        checks = queries.ask(connection, evidence_queries.CHECK_MATRIX)
    good = {"excluded": 0, "check_name": None, "remedy": None}
    rows = [{"cell": cell, "arm": "h2", "trials": 8, **good} for cell in ("far", "clean")]
    bad = {"check_name": "errors", "remedy": "look at the log"}
    rows += [{"cell": cell, "arm": "h3", "trials": count, "excluded": count, **bad} for cell, count in lost.items()]
    if lost == {"far": 4}:  # what is lost elsewhere is not said to be lost here
        rows.append({"cell": "clean", "arm": "h1", "trials": 3, "excluded": 3, **bad})
    by_arm = QueryResult(exclusions.BY_ARM, rows)
    opening = overview.overview(summary.about, summary.comparisons, found, summary.totals, checks, by_arm=by_arm)
    assert opening is not None
    assert opening.next.startswith(said)


def test_a_median_among_failures_is_infinite(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    shape = Shape(blocks=4, samples_per_trial=40, paths=("far",), connections=("new",), servers=("origin",))
    run = write_run(tmp_path / "run", shape)
    for file in (run / "trials").iterdir():
        table = pq.read_table(file)
        (trial,) = table.to_pylist()
        if trial["protocol"] == "h1":
            failed = trial | {"success_rate": 0.4, "latency_p50_ns": None}
            pq.write_table(pa.Table.from_pylist([failed], table.schema), file)
    about = terminal.summarise(run).about
    with queries.connect(run) as connection:
        found = overview.ask(connection, about)
    assert found is not None
    values = {one["arm"]: one["least"] for one in found}
    assert math.isinf(values["h1"]) and values["h2"] < 1e9


def compared(ratio: float | None, low: float | None, high: float | None, kind: str = "undecided") -> Comparison:
    ends = {"ratio": ratio, "low": low, "high": high, "factor_low": low, "factor_high": high}
    return Comparison("c", "h3", "h2", kind, ends)


def test_a_forest_of_characters() -> None:
    lines = overview_grid.forest(
        [
            compared(0.5, 0.25, 1.0, "faster"),
            compared(2.0, 1.0, math.inf),
            compared(2.0, None, 4.0),
            compared(None, None, None),
        ],
        (0.25, 4.0),
        9,
    ).split("\n")
    assert lines == ["──●─│    ", "    │─○──", "────│─○──", "    │    "]


def test_next_is_what_spoils_most_trials_then_what_is_open_then_why(run: Path, tmp_path: Path) -> None:
    shape = Shape(blocks=4, samples_per_trial=40, paths=("far",), connections=("new",), servers=("origin",))
    shape.left_out = "h2"
    spoiled = write_run(tmp_path / "run", shape)
    with queries.connect(run) as connection:
        totals = queries.ask(connection, catalogue.TOTALS).rows[0]
        checks = queries.ask(connection, evidence_queries.CHECK_MATRIX)
    summary = terminal.summarise(run)
    decided = [one for one in summary.comparisons if one.decided]
    assert overview._next(summary.about, summary.comparisons, totals, checks).startswith(
        "Measure more: `trifecta resume"
    )
    said = overview._next(summary.about, decided, totals, checks)
    assert said.startswith("See where the time is: `trifecta explain ")
    assert said.endswith(f"remove causes: `trifecta why {shlex.quote(str(run))}`.")
    elsewhere = dataclasses.replace(summary.about, study={**summary.about.study, "workload": {"kind": "far"}})
    assert "trifecta why" not in overview._next(elsewhere, decided, totals, checks), "there it is refused"
    same = [one for one in decided if one.kind == "same"]
    assert "trifecta why" not in overview._next(summary.about, same, totals, checks)
    assert checks.rows[0]["remedy"]
    for excluded, many in ((8, "All trials"), (7, "Most trials"), (4, "Half of the trials")):
        spoilt = totals | {"trials": 8, "excluded_trials": excluded}
        assert overview._next(summary.about, decided, spoilt, checks).startswith(f"{many} failed a check. ")
    for failing, said in ((checks.rows[0]["check_name"], "See the reproduction, ladder or"), ("other", "Half of the")):
        rest = summary.about.rest | {"counted_elsewhere": [failing, "protocol"]}
        part = dataclasses.replace(summary.about, rest=rest)
        assert overview._next(part, decided, spoilt, checks).startswith(said)
    assert printed(spoiled, 80).count("Next: ") == 1


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_terminal_begins_with_it(run: Path, width: int) -> None:
    text = printed(run, width)
    first = text.index("Next: ")
    assert all(name in text[:first] for name in ("clean", "far", "rough", "HTTP/1.1", "HTTP/2", "HTTP/3", " ms"))
    assert ("●" in text[:first]) == (width >= overview_grid.WITH_FOREST)
    assert len(text[:first].splitlines()) <= 50


def test_nothing_is_compared_in_a_run_without_a_trial(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", Shape(blocks=4, samples_per_trial=40, paths=("far",), servers=("origin",)))
    for folder in ("trials", "samples"):
        for file in (run / folder).iterdir():
            file.unlink()
    (run / "verdicts.parquet").unlink()
    (run / "checks.parquet").unlink()
    assert not [one for one in pages.read(render(run)).root.all("table") if one.has("opening")]
