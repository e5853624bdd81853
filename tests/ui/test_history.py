"""How the intervals of a run closed in: read from what the run wrote, told to pages as it grows."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tests.ui.serving import Served, serving
from tests.ui.test_live import Events, arrive, shortened, written
from trifecta.conclude import facts
from trifecta.store import manifest
from trifecta.ui import live, reading
from trifecta.ui.history import History


def line(*said: tuple[str, int, float | None]) -> str:
    """A line of a block: what is said of these arms against HTTP/2 after so many blocks."""
    made = [{"cell": "path=far", "metric": "latency_p50_ns", "arm": arm, "reference": "h2", "blocks": blocks,
             "verdict": "undecided", "margin": 0.05, "low": 0.5, "ratio": ratio}
            for arm, blocks, ratio in said]  # fmt: skip
    return json.dumps({"elapsed_ns": 1, "intervals": made}) + "\n"


class Followed:
    """A run whose lines a test writes, and what a page of it has by now."""

    def __init__(self, run: Path) -> None:
        self._file, self._about = run / manifest.DECISIONS, facts.read(run)
        self._history = History(run)
        self.points: dict[str, list[Any]] = {}

    def now(self, text: str) -> list[Any]:
        self._file.write_text(text)
        with self._about.naming():
            news: list[Any] = self._history.changes(self._about)
        for one in news:
            self.points[one["arm"]] = self.points.get(one["arm"], [])[: one["keep"]] + one["points"]
        whole = {one["arm"]: one["points"] for one in json.loads(json.dumps(self._history.document()))}
        assert whole == {arm: points for arm, points in self.points.items() if points}  # for a page that comes now
        return news

    def ratios(self) -> dict[str, list[tuple[int, float]]]:
        return {arm: [(at["block"], at["ratio"]) for at in points] for arm, points in self.points.items() if points}


def test_what_is_new_is_told_and_what_it_replaces(growing: Path) -> None:
    followed = Followed(growing)
    text = line(("h3", 0, None), ("h1", 1, 0.9))
    assert [one["keep"] for one in followed.now(text)] == [0]
    assert followed.ratios() == {"h1": [(1, 0.9)]}
    assert followed.now(text) == []
    for blocks, ratio in ((1, 1.1), (2, 1.2), (3, 1.3), (5, 1.5)):
        text += line(("h3", blocks, ratio))
    assert [(one["arm"], one["keep"], len(one["points"])) for one in followed.now(text)] == [("h3", 0, 4)]
    text += line(("h3", 6, 1.6))
    assert [(one["keep"], len(one["points"])) for one in followed.now(text)] == [(4, 1)]
    text += line(("h3", 3, 0.3))
    assert [(one["keep"], len(one["points"])) for one in followed.now(text)] == [(2, 1)]
    assert followed.ratios()["h3"] == [(1, 1.1), (2, 1.2), (3, 0.3)]
    followed.now(text + line(("h3", 0, None)))
    assert followed.ratios() == {"h1": [(1, 0.9)]}


def test_another_run_in_the_folder_begins_anew(growing: Path) -> None:
    followed = Followed(growing)
    followed.now(line(("h3", 1, 1.1)) + line(("h3", 2, 1.2)))
    assert [one["keep"] for one in followed.now(line(("h3", 9, 1.9)))] == [0]
    assert followed.ratios() == {"h3": [(9, 1.9)]}
    followed.now("")
    assert followed.ratios() == {}


def test_a_file_that_did_not_change_is_not_read_again(growing: Path, monkeypatch: Any) -> None:
    followed = Followed(growing)
    text = line(("h3", 1, 1.1))
    followed.now(text)
    file = growing / manifest.DECISIONS
    state = file.stat()
    file.write_text(text.replace("1.1", "9.9"))
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    with facts.read(growing).naming():
        assert followed._history.changes(facts.read(growing)) == []


def test_blocks_that_ended_while_no_page_was_open_are_told(growing: Path, tmp_path: Path, fast: None) -> None:
    later = shortened(growing, 24)
    arrive(growing, later[:8])
    with serving(growing.parent, tmp_path) as served, written(growing):
        first = Events(served, "growing")
        state = first.next()[1]
        assert first.news[0] == [] and len(first.past) == 6  # nothing was read before
        arrive(growing, later[8:16])
        while {one["blocks"] for cell in state["cells"] for one in cell["verdicts"]} != {5}:
            state = first.next()[1]
        assert all([at["block"] for at in points] == [3, 4, 5] for points in first.past.values())
        assert {(one["keep"], len(one["points"])) for one in first.news[-1]} == {(2, 1)}
        for cell in state["cells"]:
            for one in cell["verdicts"]:  # in the same words as now
                now = first.past[one["cell"], one["arm"], one["reference"]][-1]
                same = {name: one[name] for name in ("ratio", "low", "high", "mark")}
                assert now == {"block": 5, "said": one["statement"], **same}
        second = Events(served, "growing")  # the same run is read for both
        assert "points" not in str(second.next()[1])
        assert second.past == first.past
        first.close()
        second.close()


def test_a_cell_of_a_run_that_has_ended_tells_it(growing: Path) -> None:
    later = shortened(growing, 24)
    first: Any = live.Follower(growing, "growing").document()
    cells = [one["cell"] for one in first["cells"]]
    assert [reading.cell(growing, one)["closing"] for one in cells] == [[], []]  # one block is no picture
    arrive(growing, later[:8])
    state: Any = live.Follower(growing, "growing").document()
    for cell in state["cells"]:
        told: Any = reading.cell(growing, cell["cell"])["closing"]
        assert [one["pair"] for one in told] == [one["pair"] for one in cell["verdicts"]]
        for one, now in zip(told, cell["verdicts"], strict=True):
            assert [at["block"] for at in one["points"]] == [3, 4]
            assert one["points"][-1]["said"] == now["statement"] != one["points"][0]["said"]


def test_a_run_that_wrote_none_has_no_such_picture(served: Served) -> None:
    [cell, *_] = served.get("/api/run", {"name": "first"}).json["cells"]
    assert served.get("/api/cell", {"name": "first", "cell": cell["cell"]}).json["closing"] == []
