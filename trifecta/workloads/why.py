"""Searches for causes: which can be removed here, and the runs without each, and without the largest two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from trifecta.contract.why import AskedCause, AskedWhy, NotMeasured
from trifecta.design import plan
from trifecta.design.errors import CannotError, TrifectaError, UserError
from trifecta.design.model import Study
from trifecta.design.why import budget
from trifecta.design.why.candidate import Candidate
from trifecta.design.why.change import Change
from trifecta.design.why.rungs import ABSENT, Case, Rung
from trifecta.design.why.search_plan import rungs_of, together_of
from trifecta.design.why.table import suspects
from trifecta.workloads.ladder import RunOne, run_rounds

Possible = Callable[[Study], str]
"""Why one of the cells of a study cannot run here; empty where all can."""


def here(study: Study) -> str:
    """Why one of the cells of a study cannot run on this machine."""
    from trifecta.lab.engine import find_engine
    from trifecta.workloads.executors import executor_of
    from trifecta.workloads.session import Adapters

    try:
        found = executor_of(study).cells(study, find_engine(), Adapters())
    except CannotError as error:
        return str(error)
    if len(found.cells) == len(plan.cells(study)):
        return ""
    return "; ".join(dict.fromkeys(item["reason"] for item in found.left_out))


def candidates(case: Case, seed: int, possible: Possible = here) -> list[Candidate]:
    """The causes that the cell may have, the most suspected first, and whether each can be removed here."""
    asked = [(cause, suspect, case.change(suspect)) for cause, suspect in suspects(case.seen)]
    removed = [Rung((cause.id,), change) for cause, _, change in asked if isinstance(change, Change)]
    whole = not _reason(case, [Rung(), *removed], seed, possible)  # else each is asked about by itself
    made = []
    for cause, suspect, change in asked:
        if isinstance(change, str):
            made.append(Candidate(cause, suspect, None, change))
            continue
        nearest, reason = (False, "") if whole else _where(case, cause.id, change, seed, possible)
        made.append(Candidate(cause, suspect, change, reason, nearest, case.only(change)))
    return made


def unable(case: Case, seed: int, possible: Possible = here) -> str:
    """Why the cell as it is cannot run here; empty where it can."""
    return _reason(case, [Rung()], seed, possible)


def ask(
    case: Case, block_ns: float, budget_ns: int, seed: int, possible: Possible = here
) -> tuple[list[AskedCause], int, list[NotMeasured], list[NotMeasured]]:
    """The causes to measure, the most suspected first, in how many rounds; those that cannot be switched, and those
    that the budget has no room for.

    CannotError where the cell as it is cannot run here, UserError where the budget is too short for a single cause.
    """
    if reason := unable(case, seed, possible):
        raise CannotError(f"the unchanged cell cannot run here: {reason}")
    made: list[AskedCause] = []
    refused: list[NotMeasured] = []
    titles: dict[str, str] = {}
    for one in candidates(case, seed, possible):
        titles[one.cause.id] = one.cause.title
        if one.change is None or one.problem:
            if one.problem != ABSENT:
                refused.append({"cause": one.cause.id, "title": one.cause.title, "why": one.problem})
            continue
        made.append(
            {
                "cause": one.cause.id,
                "suspicion": one.suspect.suspicion,
                "suspected": one.suspect.said,
                "levels": dict(one.change.levels),
                "path": {name: value for name, value in one.change.path if isinstance(value, str | bool | None)},
                "nearest": one.nearest,
            }
        )
    if not made:
        told = "; ".join(f"{each['title']}: {each['why']}" for each in refused)
        raise CannotError(f"no cause of it can be removed here ({told or 'there is none that this cell may have'})")
    near = any(each["nearest"] for each in made)
    count, rounds = budget.chosen([each["suspicion"] for each in made], budget_ns, block_ns, nearest=near)
    if not count:
        blocks = budget.search_blocks(1, nearest=near) * budget.LEAST_ROUNDS
        least_s = (blocks * block_ns + budget.RUN_NS) / budget.SEARCH_SHARE / 1e9
        raise UserError(
            f"option --budget: {budget_ns / 1e9:.0f} s is too short: a block of this cell takes "
            f"{block_ns / 1e9:.1f} s, one cause {blocks} of them; give {least_s:.0f} s or more"
        )
    late: list[NotMeasured] = [
        {
            "cause": each["cause"],
            "title": titles[each["cause"]],
            "why": f"{each['suspected']}, and the budget has no room",
        }
        for each in made[count:]
    ]
    return made[:count], rounds, refused, late


def _where(case: Case, cause: str, change: Change, seed: int, possible: Possible) -> tuple[bool, str]:
    """Whether a cause is removed on the nearest stack, as it cannot be on the cell's own; why it cannot at all."""
    reason = _reason(case, [Rung(), Rung((cause,), change)], seed, possible)
    if not reason or not case.has_nearest:
        return False, reason
    there = [Rung(nearest=True), Rung((cause,), change, nearest=True)]
    return (True, "") if not _reason(case, there, seed, possible) else (False, reason)


def _reason(case: Case, rungs: Sequence[Rung], seed: int, possible: Possible) -> str:
    try:
        return possible(case.study_of(rungs, rounds=budget.LEAST_ROUNDS, seed=seed, title="why"))
    except UserError as error:
        return str(error).removeprefix("study.yaml: ")


def study_of(asked: AskedWhy, case: Case) -> Study:
    """The study of the cell as it is and without each cause."""
    return case.study_of(rungs_of(asked), rounds=asked["rounds"], seed=asked["seed"], title="why-causes")


def measure(asked: AskedWhy, case: Case, folder: Path, run_one: RunOne, stop: Callable[[], bool]) -> str:
    """Measure what is not over into the folder; must run inside the sandbox. Why the largest two could not be measured
    together, which loses nothing of what was measured before; empty where they were.
    """
    from trifecta.conclude.why import result
    from trifecta.store.run import RunDirectory
    from trifecta.workloads.campaign import standing

    budget_ns = int(asked["budget_s"] * 1e9)
    if standing(folder, result.SEARCH) != "over":
        study = study_of(asked, case)
        keys = [cell.key for cell in plan.cells(study)]
        twice = 2 if any(one["nearest"] for one in asked["causes"]) else 1
        run_rounds(study, folder / result.SEARCH, keys[:twice], run_one, budget.search_within_ns(budget_ns))
    if stop() or standing(folder, result.SEARCH) != "over" or standing(folder, result.PAIR) == "over":
        return ""
    pair = result.pair_of(folder, asked)
    if pair is None:
        return ""
    rungs = together_of(case, asked, *pair)
    blocks = len(case.distinct(rungs))
    rounds = budget.pair_rounds(budget_ns, blocks, asked["block_s"] * 1e9)
    spent_ns = int(RunDirectory.open(folder / result.SEARCH).facts.get("elapsed_ns") or 0)
    other = plan.stable_seed(asked["seed"], "together") % 2**31
    try:
        study = case.study_of(rungs, rounds=rounds, seed=other, title="why-together")
        run_rounds(study, folder / result.PAIR, (), run_one, budget.pair_within_ns(budget_ns, spent_ns))
    except TrifectaError as error:
        return f"without {' and '.join(pair[0])}: {error}"
    return ""
