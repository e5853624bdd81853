"""What a block leaves when it has ended: verdicts, why it was measured, and how each interval closed in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from tests.analysis.worlds import make_row
from trifecta.analysis.estimate import Row
from trifecta.analysis.planner import Stop
from trifecta.contract.run import IntervalThen
from trifecta.design import plan
from trifecta.design.model import Study
from trifecta.store import parquet
from trifecta.store.intervals import Written, select
from trifecta.store.run import RunDirectory
from trifecta.studies import known_servers, load
from trifecta.workloads.runner import StudyRun


@pytest.fixture
def study() -> Study:
    return load("race", ["path=far", "server=origin"], known_servers())


@pytest.fixture
def folder(study: Study, tmp_path: Path) -> RunDirectory:
    return RunDirectory.create(tmp_path / "run", {"study": {"name": "race"}}, study.source)


def measured(study: Study, cell: int, block: int) -> list[Row]:
    """A block whose HTTP/3 is the faster."""
    rng = np.random.default_rng(plan.stable_seed("made up", cell, block))
    trials = plan.block_trials(study, plan.cells(study)[cell], block, 100 * cell + 10 * block)
    means = (1e6 * (0.5 if one.protocol == "h3" else 1.0) * np.exp(rng.normal(0, 0.05)) for one in trials)
    return [make_row(one, mean, started_ns=1, ended_ns=2, error=None) for one, mean in zip(trials, means, strict=True)]


class Process:
    """One that measures, without a lab: blocks come as rows."""

    def __init__(self, study: Study, folder: RunDirectory, rows: Sequence[Row] = (), *, resumed: bool = False) -> None:
        self.rows = list(rows)
        self._run = SimpleNamespace(
            study=study, run=folder, rows=self.rows, cells=plan.cells(study), every_cell=True, judged=None,
            written=Written(resumed=resumed), judge=SimpleNamespace(distrust=lambda _: [], run=lambda _: []),
            _mark=lambda _: None, elapsed_ns=0, elapsed_before_ns=0, phase_ns={},
            progress=SimpleNamespace(
                phase=lambda _: None, block_finished=lambda *_: None, finished=lambda *_: None
            ),
        )  # fmt: skip

    def ends(self, rows: list[Row]) -> None:
        self.rows += rows
        self._run.elapsed_ns += 1_000
        StudyRun._end_block(cast(Any, self._run), {"cell": rows[0]["cell"], "block": rows[0]["block"]}, "more")

    def stops(self) -> None:
        StudyRun._finish(cast(Any, self._run), Stop("there is no time for another block", "budget"))


def stands(folder: RunDirectory) -> dict[tuple[str, str, str], list[tuple[int, float]]]:
    found: dict[tuple[str, str, str], list[tuple[int, float]]] = {}
    for row in parquet.select(f"{select(folder.path)} ORDER BY blocks"):
        found.setdefault((row["cell"], row["arm"], row["reference"]), []).append((row["blocks"], row["ratio"]))
    return found


def test_each_block_leaves_what_it_changed(study: Study, folder: RunDirectory) -> None:
    process = Process(study, folder)
    one, two = plan.cells(study)
    last: dict[tuple[str, str, str], IntervalThen] = {}
    changed = 0
    for block in range(8):
        for cell in (0, 1):
            process.ends(measured(study, cell, block))
            written = folder.decisions()[-1]["intervals"]
            assert {said["blocks"] for said in written if said["cell"] == (one, two)[cell].key} == {block + 1}
            others = [said for said in written if said["cell"] != (one, two)[cell].key]
            for said in others:  # is decided by what this block decides: all comparisons are one family
                was = last[said["cell"], said["arm"], said["reference"]]
                assert said["verdict"] != was["verdict"] and said["ratio"] == was["ratio"]
            changed += len(others)
            last |= {(said["cell"], said["arm"], said["reference"]): said for said in written}
    assert 0 < changed < 8
    now = {(said.cell, said.arm, said.reference): said for said in folder.verdicts()}
    assert len(now) == 6 and {said.verdict for said in now.values()} > {"faster"}
    assert {key: (said["ratio"], said["verdict"]) for key, said in last.items()} == {
        key: (said.ratio, said.verdict) for key, said in now.items()
    }
    for points in stands(folder).values():
        assert [blocks for blocks, _ in points] == [*range(1, 9)]
        assert len({ratio for _, ratio in points}) > 2


def test_what_a_later_process_measures_again_replaces_what_was_said(study: Study, folder: RunDirectory) -> None:
    first = Process(study, folder)
    for block in range(4):
        first.ends(measured(study, 0, block))
        first.ends(measured(study, 1, block))
    before = stands(folder)
    one, two = (cell.key for cell in plan.cells(study))
    kept = [row for row in first.rows if row["cell"] == two or row["block"] < 2]  # of the first cell, two blocks
    again = Process(study, folder, kept, resumed=True)
    again.ends(measured(study, 1, 4))
    now = stands(folder)
    assert {key[0]: [blocks for blocks, _ in points] for key, points in now.items()} == {
        one: [1, 2], two: [1, 2, 3, 4, 5],
    }  # fmt: skip
    assert all(points[:2] == before[key][:2] for key, points in now.items())
    again.ends(measured(study, 0, 7))
    assert {len(points) for key, points in stands(folder).items() if key[0] == one} == {3}


def test_a_process_that_measures_no_block_says_how_it_found_them(study: Study, folder: RunDirectory) -> None:
    """The view says of the last number of blocks what the verdicts say."""
    first = Process(study, folder)
    for block in range(4):
        first.ends(measured(study, 0, block))
    before = stands(folder)
    first.stops()
    assert stands(folder) == before
    Process(study, folder, [row for row in first.rows if row["block"] < 2], resumed=True).stops()
    now = stands(folder)
    assert {key: points[:2] for key, points in before.items()} == now
    assert {len(points) for points in now.values()} == {2}
    last = {(said.cell, said.arm, said.reference): (said.blocks, said.ratio) for said in folder.verdicts()}
    assert {key: points[-1] for key, points in now.items()} == {key: last[key] for key in now}
    assert [len(said["intervals"]) for said in folder.decisions() if "stop" in said] == [0, 6]
