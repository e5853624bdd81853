"""Measures a ladder: its rungs in rounds, then the two largest steps in the other order, each a run of its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trifecta.design import plan
from trifecta.design.errors import CannotError, UserError
from trifecta.design.ladder import Ladder, Rung, keys_of
from trifecta.design.model import Cell, Study
from trifecta.design.phrases import numbered

# What starts threads must not be there when the sandbox is entered.
if TYPE_CHECKING:
    from trifecta.analysis.ladder_planner import LadderPlanner


@dataclass(frozen=True)
class Rounds:
    """How the cells of a study are run in rounds: the order, how many trials that are, and by cell the checks that see
    at work what it is measured for, so that they exclude no trial there.
    """

    planner: Callable[[Study, Sequence[Cell], int], LadderPlanner]
    trials: int
    tolerated: Mapping[str, frozenset[str]]


RunOne = Callable[[Study, Path, bool, Rounds], object]
"""Runs a study into a folder, or goes on with it, in these rounds."""


def study_of(ladder: Ladder, *, depth: str, blocks: int | None, seed: int) -> Study:
    """The study of the ladder's rungs."""
    return _study(ladder, ladder.rungs(), depth=depth, blocks=blocks, seed=seed, name=ladder.id)


def _study(ladder: Ladder, rungs: Sequence[Rung], *, depth: str, blocks: int | None, seed: int, name: str) -> Study:
    quick = depth == "quick"
    rounds = blocks or (ladder.quick_rounds if quick else ladder.full_rounds)
    return ladder.measured_by(rungs, rounds=rounds, seed=seed, overrides=ladder.quick if quick else (), name=name)


def measure(
    ladder: Ladder,
    folder: Path,
    run_one: RunOne,
    stop: Callable[[], bool],
    *,
    depth: str,
    blocks: int | None,
    seed: int,
) -> str:
    """Measure what is not over of a ladder into its folder; must run inside the sandbox. Why the two largest steps are
    not in both orders; empty where they are.

    CannotError where one of its rungs cannot run here: a ladder without it would be another one.
    """
    from trifecta.conclude import ladder as concluded
    from trifecta.workloads.campaign import study_state

    if study_state(folder, concluded.STEPS) != "over":
        study, rungs = study_of(ladder, depth=depth, blocks=blocks, seed=seed), ladder.rungs()
        keys = keys_of(study, rungs)
        ends = tuple(dict.fromkeys((keys[rungs[0].cell], keys[rungs[-1].cell])))
        run_rounds(study, folder / concluded.STEPS, ends, run_one, tolerated=tolerated_in(ladder, study, rungs))
    if stop() or study_state(folder, concluded.STEPS) != "over":
        return ""
    problems = []
    for first, second in concluded.ranked_pairs(folder, ladder):
        rungs = concluded.rungs_of_orders(ladder, (first, second))
        other = plan.stable_seed(seed, "orders") % 2**31
        try:
            study = _study(ladder, rungs, depth=depth, blocks=blocks, seed=other, name=f"{ladder.id}-orders")
            _refuse_lacking(study)
        except (CannotError, UserError) as error:  # one step needs the other, as a program its own switches
            problems.append(f"{ladder.steps[second].id} before {ladder.steps[first].id} cannot be ({error})")
            continue
        if study_state(folder, concluded.ORDERS) != "over":
            run_rounds(study, folder / concluded.ORDERS, (), run_one, tolerated=tolerated_in(ladder, study, rungs))
        break
    return "; ".join(problems)


def tolerated_in(ladder: Ladder, study: Study, rungs: Sequence[Rung]) -> dict[str, frozenset[str]]:
    """By cell of the study; rungs that read a cell by several metrics have the same published conditions."""
    from trifecta.studies import ladder_files

    keys = keys_of(study, rungs)
    return {keys[rung.cell]: ladder_files.tolerated(ladder, rung) for rung in reversed(rungs)}


def run_rounds(
    study: Study,
    run: Path,
    ends: Sequence[str],
    run_one: RunOne,
    *,
    tolerated: Mapping[str, frozenset[str]],
    within_ns: float | None = None,
) -> None:
    """Run a study's cells in rounds, those of ``ends`` twice in each, as many as fit ``within_ns``. CannotError where
    one of them cannot run here. ``tolerated``: of `Rounds`.
    """
    from trifecta.analysis.ladder_planner import LadderPlanner
    from trifecta.store.run import clear_unmade
    from trifecta.workloads.campaign import study_state

    def planner(of: Study, cells: Sequence[Cell], _: int) -> LadderPlanner:
        lost = {cell.key for cell in plan.cells(of)} - {cell.key for cell in cells}
        if lost:
            raise CannotError(_lost_words(lost))
        return LadderPlanner(of, cells, ends, within_ns)

    clear_unmade(run)
    _refuse_lacking(study)
    trials = study.min_blocks * (len(plan.cells(study)) + len(ends)) * len(plan.arms(study))
    run_one(study, run, study_state(run.parent, run.name) == "begun", Rounds(planner, trials, tolerated))


def _lost_words(lost: Collection[str]) -> str:
    """``1 rung can no longer run (path=far,...)``."""
    return f"{numbered(len(lost), 'rung')} can no longer run ({', '.join(sorted(lost))})"


def _refuse_lacking(study: Study) -> None:
    """CannotError with the reasons where a rung cannot run here, before its folder is made."""
    from trifecta.lab.engine import find_engine
    from trifecta.workloads.executors import executor_of
    from trifecta.workloads.session import Adapters

    here = executor_of(study).cells(study, find_engine(), Adapters().for_study(study))
    lost = len(plan.cells(study)) - len(here.cells)
    if lost:
        reasons = "; ".join(dict.fromkeys(item["reason"] for item in here.left_out))
        raise CannotError(f"{lost} of its {len(plan.cells(study))} rungs cannot run here: {reasons}")
