"""What is kept of how the intervals of a run closed in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.ui.serving import serving
from tests.ui.test_live import Events, arrive, shortened, written
from trifecta.ui import watching
from trifecta.ui.history import History


def said(blocks: int | None, ratio: float | None, arm: str = "h3", began: str = "today") -> dict[str, Any]:
    one = {"cell": "path=far", "arm": arm, "reference": "h2", "blocks": blocks, "ratio": ratio, "low": None,
           "high": None, "mark": 3, "statement": f"after {blocks}: {ratio}"}  # fmt: skip
    return {"began": began, "cells": [{"verdicts": [one]}]}


def points(history: History) -> dict[str, list[tuple[int, float]]]:
    told: Any = history.document()["comparisons"]
    return {one["arm"]: [(at["block"], at["ratio"]) for at in one["points"]] for one in told}


def test_each_block_is_kept_once_as_it_was_last_said() -> None:
    history = History()
    assert history.document() == {"comparisons": []}
    history.take(said(None, None))
    assert history.document() == {"comparisons": []}
    for blocks, ratio in ((1, 1.1), (2, 1.2), (2, 1.25), (5, 1.3)):
        history.take(said(blocks, ratio))
    history.take(said(1, 0.9, "h1"))
    assert points(history) == {"h3": [(1, 1.1), (2, 1.25), (5, 1.3)], "h1": [(1, 0.9)]}
    told: Any = history.document()["comparisons"]
    assert told[0]["points"][1]["said"] == "after 2: 1.25"


def test_what_rested_on_trials_that_count_no_more_is_dropped_and_another_run_begins_anew() -> None:
    history = History()
    for blocks in range(1, 7):
        history.take(said(blocks, float(blocks)))
    history.take(said(4, 40.0))
    assert points(history) == {"h3": [(1, 1.0), (2, 2.0), (3, 3.0), (4, 40.0)]}
    history.take(said(0, None))
    assert points(history) == {}
    history.take(said(2, 2.0))
    history.take(said(9, 9.0, began="tomorrow"))
    assert points(history) == {"h3": [(9, 9.0)]}


def test_a_page_that_comes_later_is_told_what_was_seen_before(growing: Path, tmp_path: Path, fast: None) -> None:
    later = shortened(growing, 24)
    with serving(growing.parent, tmp_path) as served, written(growing):
        first = Events(served, "growing")
        assert first.past == {"comparisons": []}
        state = first.next()[1]
        before = {
            (one["arm"], one["reference"], one["cell"]): one for cell in state["cells"] for one in cell["verdicts"]
        }
        arrive(growing, later[:8])
        while {one["blocks"] for cell in state["cells"] for one in cell["verdicts"]} != {4}:
            state = first.next()[1]
        first.close()
        second = Events(served, "growing")
        assert len(second.past["comparisons"]) == len(before) == 6
        for one in second.past["comparisons"]:
            assert [at["block"] for at in one["points"]] == [3, 4]
            was = before[one["arm"], one["reference"], one["cell"]]
            same = {name: was[name] for name in ("ratio", "low", "high", "mark")}
            assert one["points"][0] == {"block": 3, "said": was["statement"], **same}
        assert "points" not in str(second.next()[1])  # what changes is told, and no more
        second.close()


def test_of_so_many_runs_alone_it_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "MOST_HISTORIES", 2)
    watcher = watching.Watcher()
    folders = [tmp_path / name for name in "abc"]
    first, second, third = (watcher._history(folder) for folder in folders)
    assert watcher._history(folders[1]) is second and watcher._history(folders[2]) is third
    assert watcher._history(folders[0]) is not first
