"""How a gate stands to the last good state: what it warns of, and whether it takes its place.

Two sessions are no experiment, so the verdict stays as it is. Nor does every gate that passes become the last good
state: ten of them, each a little slower than the one before, would never be told from each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis import two_runs
from trifecta.analysis.gate import PASSES
from trifecta.analysis.intervals import Estimate, linear
from trifecta.analysis.judging import over_sessions
from trifecta.analysis.sessions import between_starts
from trifecta.contract.gate import GateDocument, MeasurementSetup, OutcomeDocument
from trifecta.design import numbers
from trifecta.design.gate import GatePlan
from trifecta.design.metric import Metric

_STAYS = "the last good state stays as it is; --accept puts this one in its place"


def compare_to_last_good(
    gate: GatePlan,
    document: GateDocument,
    last: GateDocument | None,
    *,
    file: str,
    others: int = 0,
    accept: bool = False,
) -> tuple[GateDocument, bool]:
    """The document with what the last good state says of it, and whether it is that from now on.

    ``file`` is where it is kept, ``others`` how many there are of the same study and factor beside it: of other
    questions, or of other machines. ``accept``: whatever is said against it.
    """
    passes = document["state"] == PASSES
    if last is None:
        beside_it = f" (but {others} of other questions or machines)" if others else ""
        warnings: list[str] = []
        notes = [f"there is no last good state of this question on this machine{beside_it}"]
        replaces = passes
    else:
        warnings, notes, better = _against(gate, document, last)
        replaces = passes and (accept or better)
        if passes and not replaces and (warnings or _unlike(document["made_by"], last["made_by"])):
            notes.append(_STAYS)
    if replaces:
        notes.append(f"it is the last good state from now on: {file}")
    elif accept:
        notes.append("--accept: it is not the last good state, since it does not pass")
    return {**document, "warnings": warnings, "notes": notes}, replaces


def _against(gate: GatePlan, document: GateDocument, last: GateDocument) -> tuple[list[str], list[str], bool]:
    """Warnings, notes, and whether it is better: somewhere by more than a limit and than sessions differ, and nowhere
    worse at all, or several steps that are better here and worse there would add up unseen.
    """
    since = f"the last good state ({last['candidate']}, {last['started_utc']})"
    other = _unlike(document["made_by"], last["made_by"])
    if other:
        return [], [f"not compared with {since}: {', '.join(other)} differ"], False
    metrics = {one.text: one.metric for one in gate.conditions}
    before = {(one["cell"], one["metric"]): one for one in last["tests"]}
    warnings, notes, moved = list[str](), list[str](), list[tuple[Estimate, float]]()
    for one in document["tests"]:
        then = before.get((one["cell"], one["metric"]))
        if then is None:
            notes.append(f"{one['place']}: {one['label']} has no value in {since}")
            continue
        worse, limit = _change(one, then, metrics[one["condition"]], document["confidence"]), math.log1p(one["limit"])
        moved.append((worse, limit))
        if worse.low is not None and worse.low > limit:
            now, was = (numbers.in_unit(each["candidate"], each["unit"]) for each in (one, then))
            beyond = f"by more than {one['condition']} and than sessions differ"
            warnings.append(f"{one['place']}: {one['label']} is {now}, and was {was} in {since}: worse {beyond}")
        notes.extend(_censored(one, then, since))
    better = any(worse.high is not None and worse.high < -limit for worse, limit in moved)
    nowhere_worse = len(moved) == len(document["tests"]) and all(
        worse.value <= 0 if worse.value is not None else worse.high is not None and worse.high < 0 for worse, _ in moved
    )
    return warnings, notes, better and nowhere_worse


def _unlike(here: MeasurementSetup, then: MeasurementSetup) -> list[str]:
    """What keeps the values of two sessions from being compared, in words."""
    other_question = here["asked_sha256"] != then["asked_sha256"]
    programs = [(one["trifecta"], one["engine"], one["clients"]) for one in (here, then)]
    machine = here["machine"] != then["machine"]
    differences = (
        (other_question, "what is asked"),
        (machine, "machines"),
        (programs[0] != programs[1], "versions of what measures"),
    )
    return [words for differs, words in differences if differs]


def _change(outcome: OutcomeDocument, then: OutcomeDocument, metric: Metric, confidence: float) -> Estimate:
    """The log of now by then, above zero where that is worse, with the spread of both sessions and what lies between
    them.
    """
    sign, sessions = 1.0 if metric.lower_is_better else -1.0, between_starts(metric)
    now, was = (_logs(each["candidate_values"], sign) for each in (outcome, then))
    if np.isfinite(now).all() and np.isfinite(was).all():
        return over_sessions(linear([(1.0, now), (-1.0, was)], confidence), math.sqrt(2) * sessions)
    # No mean holds a trial without a value, but its median may; that is far from the middle then, not from 1 ns.
    finite = np.concatenate([values[np.isfinite(values)] for values in (was, now)])
    middle = float(np.median(finite)) if finite.size else 0.0
    before, after = (linear([(1.0, values - middle)], confidence) for values in (was, now))
    return two_runs.ratio_of_ratios(before, after, sessions, confidence, 1).alone


def _logs(values: Sequence[float | None], sign: float) -> NDArray[np.float64]:
    """Logs that are the larger the worse; a trial without a finite value, or with a rate of 0, is worse than all."""
    return np.array([sign * math.log(value) if value else math.inf for value in values], dtype=np.float64)


def _censored(outcome: OutcomeDocument, then: OutcomeDocument, since: str) -> Iterator[str]:
    """That more of the trials have no value than had none."""
    now, was = (each["candidate_values"] for each in (outcome, then))
    none = [sum(not value for value in values) for values in (now, was)]
    if none[0] / max(1, len(now)) > none[1] / max(1, len(was)):
        trials = f"{none[0]} of {len(now)} trials have no value, and {none[1]} of {len(was)} had none in {since}"
        yield f"{outcome['place']}: {outcome['label']}: {trials}"
