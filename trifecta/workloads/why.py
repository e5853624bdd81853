"""Searches for causes: which can be removed here, and the runs without each, and without the largest two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from trifecta.contract.why import CauseRequest, NotMeasured, WhyRequest
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


def why_not_here(study: Study) -> str:
    """Why one of the cells of a study cannot run on this machine."""
    from trifecta.lab.engine import find_engine
    from trifecta.workloads.executors import executor_of
    from trifecta.workloads.session import Adapters

    try:
        supported = executor_of(study).cells(study, find_engine(), Adapters().for_study(study))
    except CannotError as error:
        return str(error)
    if len(supported.cells) == len(plan.cells(study)):
        return ""
    return "; ".join(dict.fromkeys(item["reason"] for item in supported.left_out))


def candidates(case: Case, seed: int, possible: Possible = why_not_here) -> list[Candidate]:
    """The causes that the cell may have, the most suspected first, and whether each can be removed here."""
    changes = [(cause, suspect, case.change(suspect)) for cause, suspect in suspects(case.evidence)]
    removed = [Rung((cause.id,), change) for cause, _, change in changes if isinstance(change, Change)]
    all_possible = not _reason(case, [Rung(), *removed], seed, possible)  # else each is asked about by itself
    found_candidates = []
    for cause, suspect, change in changes:
        if isinstance(change, str):
            found_candidates.append(Candidate(cause, suspect, None, change))
            continue
        nearest, reason = (False, "") if all_possible else _where_possible(case, cause.id, change, seed, possible)
        found_candidates.append(Candidate(cause, suspect, change, reason, nearest, case.only(change)))
    return found_candidates


def unable(case: Case, seed: int, possible: Possible = why_not_here) -> str:
    """Why the cell as it is cannot run here; empty where it can."""
    return _reason(case, [Rung()], seed, possible)


def ask(
    case: Case, block_ns: float, budget_ns: int, seed: int, possible: Possible = why_not_here
) -> tuple[list[CauseRequest], int, list[NotMeasured], list[NotMeasured]]:
    """The causes to measure, the most suspected first, in how many rounds; those that cannot be switched, and those
    that the budget has no room for.

    CannotError where the cell as it is cannot run here, UserError where the budget is too short for a single cause.
    """
    if reason := unable(case, seed, possible):
        raise CannotError(f"the unchanged cell cannot run here: {reason}")
    causes: list[CauseRequest] = []
    refused: list[NotMeasured] = []
    titles: dict[str, str] = {}
    for one in candidates(case, seed, possible):
        titles[one.cause.id] = one.cause.title
        if one.change is None or one.problem:
            if one.problem != ABSENT:
                refused.append({"cause": one.cause.id, "title": one.cause.title, "why": one.problem})
            continue
        causes.append(
            {
                "cause": one.cause.id,
                "suspicion": one.suspect.suspicion,
                "suspected": one.suspect.reason,
                "levels": dict(one.change.levels),
                "path": {name: value for name, value in one.change.path if isinstance(value, str | bool | None)},
                "nearest": one.nearest,
            }
        )
    if not causes:
        sentence = "; ".join(f"{each['title']}: {each['why']}" for each in refused)
        raise CannotError(f"no cause of it can be removed here ({sentence or 'there is none that this cell may have'})")
    near = any(each["nearest"] for each in causes)
    count, rounds = budget.chosen([each["suspicion"] for each in causes], budget_ns, block_ns, nearest=near)
    if not count:
        blocks = budget.search_blocks(1, nearest=near) * budget.LEAST_ROUNDS
        least_s = (blocks * block_ns + budget.RUN_NS) / budget.SEARCH_SHARE / 1e9
        raise UserError(
            f"option --budget: {budget_ns / 1e9:.0f} s is too short: a block of this cell takes "
            f"{block_ns / 1e9:.1f} s, one cause {blocks} of them; give {least_s:.0f} s or more"
        )
    causes, count = _with_free(case, causes, count)
    late: list[NotMeasured] = [
        {
            "cause": each["cause"],
            "title": titles[each["cause"]],
            "why": f"{each['suspected']}, and the budget has no room",
        }
        for each in causes[count:]
    ]
    return causes[:count], rounds, refused, late


def _with_free(case: Case, causes: Sequence[CauseRequest], count: int) -> tuple[list[CauseRequest], int]:
    """The causes with those first that are measured, and how many: where some are removed on the nearest stack, that
    stack as it is is measured, too, and without a foreign server a cell is just that.
    """
    chosen, rest = list(causes[:count]), list(causes[count:])
    if not any(each["nearest"] for each in chosen):
        return [*chosen, *rest], count
    stack = case.key(Rung(nearest=True))
    free = [each for each in rest if case.key(_rung(each)) == stack]
    return [*chosen, *free, *(each for each in rest if each not in free)], count + len(free)


def _rung(one: CauseRequest) -> Rung:
    return Rung((one["cause"],), Change(tuple(one["levels"].items()), tuple(one["path"].items())), one["nearest"])


def _where_possible(case: Case, cause: str, change: Change, seed: int, possible: Possible) -> tuple[bool, str]:
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


def study_of(request: WhyRequest, case: Case) -> Study:
    """The study of the cell as it is and without each cause."""
    return case.study_of(rungs_of(request), rounds=request["rounds"], seed=request["seed"], title="why-causes")


def measure(request: WhyRequest, case: Case, folder: Path, run_one: RunOne, stop: Callable[[], bool]) -> str:
    """Measure what is not over into the folder; must run inside the sandbox. Why the largest two could not be measured
    together, which loses nothing of what was measured before; empty where they were.
    """
    from trifecta.conclude.why import result
    from trifecta.store.run import RunDirectory
    from trifecta.workloads.campaign import study_state

    budget_ns = int(request["budget_s"] * 1e9)
    if study_state(folder, result.SEARCH) != "over":
        study = study_of(request, case)
        keys = [cell.key for cell in plan.cells(study)]
        twice = 2 if any(one["nearest"] for one in request["causes"]) else 1
        tolerated = result.tolerated_in(case, rungs_of(request), request, keys)
        run_rounds(
            study, folder / result.SEARCH, keys[:twice], run_one,
            tolerated=tolerated, within_ns=budget.search_within_ns(budget_ns),
        )  # fmt: skip
    if stop() or study_state(folder, result.SEARCH) != "over" or study_state(folder, result.PAIR) == "over":
        return ""
    pair = result.pair_of(folder, request)
    if pair is None:
        return ""
    rungs = together_of(case, request, *pair)
    blocks = len(case.distinct(rungs))
    rounds = budget.pair_rounds(budget_ns, blocks, request["block_s"] * 1e9)
    spent_ns = int(RunDirectory.open(folder / result.SEARCH).facts.get("elapsed_ns") or 0)
    other = plan.stable_seed(request["seed"], "together") % 2**31
    try:
        study = case.study_of(rungs, rounds=rounds, seed=other, title="why-together")
        tolerated = result.tolerated_in(case, rungs, request, [cell.key for cell in plan.cells(study)])
        within_ns = budget.pair_within_ns(budget_ns, spent_ns)
        run_rounds(study, folder / result.PAIR, (), run_one, tolerated=tolerated, within_ns=within_ns)
    except TrifectaError as error:
        return f"without {' and '.join(pair[0])}: {error}"
    return ""
