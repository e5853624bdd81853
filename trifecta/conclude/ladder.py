"""What the runs of a ladder say: its rungs, steps and ends, the order of its two largest steps, and its answer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np

from trifecta.analysis.intervals import Estimate, linear
from trifecta.analysis.judging import between_sessions
from trifecta.analysis.ladder import LadderEstimate, OrderComparison, answer, climb, compare_orders
from trifecta.analysis.places import Place, log_ratios
from trifecta.analysis.statements import Assertion, Statement
from trifecta.conclude.reproduction import places
from trifecta.contract.ladder import (
    LadderDocument,
    LadderEndDocument,
    RatioInterval,
    RungDocument,
    StepDocument,
    StepOrderDocument,
)
from trifecta.design import metrics, plan
from trifecta.design.ladder import Ladder, Rung, cells_of, keys_of, pairs_of, ranked
from trifecta.design.metric import Metric
from trifecta.design.model import Study
from trifecta.design.study_file import parse_study
from trifecta.store.run import RunDirectory
from trifecta.studies import ladder_files

STEPS, ORDERS = "steps", "orders"
"""The runs of a ladder: its rungs, and the two largest steps in the other order."""


def read(folder: Path, ladder: Ladder, why: str = "") -> LadderDocument:
    """The ladder measured in ``folder``; of one that was interrupted, what its finished rounds say.

    ``why``: why the two largest steps are not in both orders, where they cannot be.
    """
    statement = ladder_files.claims()[ladder.claim]
    run = RunDirectory.open(folder / STEPS)
    rounds = _study(run.path).min_blocks
    rungs_run = _Run(folder / STEPS, ladder, ladder.rungs())
    assertion = _of_pair(statement, ladder)
    estimate = climb(rungs_run.values, rounds, rungs_run.confidence)
    ends = [_pooled(rungs_run.values[place], rungs_run.confidence) for place in (0, -1)]
    margin = rungs_run.margin if assertion.margin is None else assertion.margin
    published = answer(
        assertion, ends[0], ends[1], estimate.end_to_end, margin=margin, sessions=between_sessions(assertion)
    )
    orders, no_orders = _orders(folder, ladder, estimate, why)
    return {
        "ladder": ladder.id,
        "title": ladder.title,
        "claim": ladder.claim,
        "study": ladder.study,
        "text": statement.text,
        "source": statement.source,
        "quote": statement.quote,
        "arm": ladder.arm,
        "to": ladder.to,
        "metric": ladder.metric,
        "published": ladder.published,
        "published_range": None if assertion.size is None else list(assertion.size),
        "lacks": list(ladder.lacks),
        "answer": published[0],
        "reason": published[1],
        "then": cast(LadderEndDocument, {"state": published[2], **ends_of(ends[0])}),
        "now": cast(LadderEndDocument, {"state": published[3], **ends_of(ends[1])}),
        "rungs": [rungs_run.rung(place, one) for place, one in enumerate(estimate.rungs)],
        "steps": _steps(ladder, estimate, rungs_run.confidence),
        "whole": ends_of(estimate.end_to_end),
        "sum": ends_of(estimate.summed),
        "left": ends_of(estimate.left),
        "meets": estimate.meets,
        "rounds": estimate.rounds,
        "complete": estimate.complete,
        "orders": orders,
        "no_orders": no_orders,
        "margin": margin,
        "confidence": rungs_run.confidence,
        "seed": int(run.facts.get("seed", 0)),
        "runs": [name for name in (STEPS, ORDERS) if (folder / name / "run.json").is_file()],
    }


def ranked_pairs(folder: Path, ladder: Ladder) -> list[tuple[int, int]]:
    """The pairs of steps that can be in either order, the largest two first, from the finished run of the steps."""
    rounds = _study(folder / STEPS).min_blocks
    run = _Run(folder / STEPS, ladder, ladder.rungs())
    estimate = climb(run.values, rounds, run.confidence)
    return _ranked(ladder, estimate)


def _ranked(ladder: Ladder, estimate: LadderEstimate) -> list[tuple[int, int]]:
    return ranked([step.change.value for step in estimate.steps], pairs_of(ladder))


def rungs_of_orders(ladder: Ladder, pair: tuple[int, int]) -> list[Rung]:
    """What two steps in both orders need: below both, the first alone, the second alone, all but the first, up to
    before the second, and all; some of them are one where the steps follow each other.
    """
    first, second = pair
    other = ladder.other_order(first, second)
    if other is None:
        raise ValueError("one of these steps needs the other")
    every = ladder.rungs()
    return [every[first], every[first + 1], other[0], other[1], every[second], every[second + 1]]


class _Run:
    """The values of rungs in a run, by block."""

    def __init__(self, run: Path, ladder: Ladder, rungs: Sequence[Rung]) -> None:
        keys = keys_of(_study(run), rungs)
        tolerated = [ladder_files.tolerated(ladder, rung) for rung in rungs]
        read = {checks: places.read(run, run.name, checks) for checks in dict.fromkeys(tolerated)}
        found_places = [place for one in read.values() for place in one]
        here = {checks: {place.cell: place for place in one} for checks, one in read.items()}
        self.rungs = rungs
        self.places = [here[checks].get(keys[rung.cell]) for checks, rung in zip(tolerated, rungs, strict=True)]
        self.values = [_logs(place, rung, ladder) for place, rung in zip(self.places, rungs, strict=True)]
        first = next((place for place in found_places), None)
        self.confidence = 0.95 if first is None else first.confidence
        self.margin = 0.05 if first is None else first.margin

    def rung(self, place: int, estimate: Estimate) -> RungDocument:
        """A rung as data; a round that lacks its block is a trial that did not count."""
        here, rung = self.places[place], self.rungs[place]
        about = {"cell": rung.cell, "metric": rung.metric, "trials": 0, "valid": 0, "checks": {}}
        if here is not None:
            about |= {"trials": here.trials, "valid": len(here.rows), "checks": dict(here.checks)}
        return cast(RungDocument, {**about, **ends_of(estimate)})


def _study(run: Path) -> Study:
    return parse_study(RunDirectory.open(run).study_text, str(run / "study.yaml"))


def _metric(name: str) -> Metric:
    metric = metrics.find(name)
    if metric is None:
        raise ValueError(f"no metric {name}")
    return metric


def _logs(place: Place | None, rung: Rung, ladder: Ladder) -> dict[int, float]:
    """By block the log of arm / reference, turned where the rung's metric is better the other way than the claim's."""
    if place is None:
        return {}
    alike = _metric(rung.metric).lower_is_better == _metric(ladder.metric).lower_is_better
    sign = 1.0 if alike else -1.0
    return {block: sign * value for block, value in log_ratios(place, rung.metric, ladder.arm, ladder.to).items()}


def _of_pair(statement: Statement, ladder: Ladder) -> Assertion:
    """What the claim says of the ladder's two protocols."""
    assert statement.says is not None
    return replace(statement.says, arms=(ladder.arm,), to=(ladder.to,))


def _pooled(values: Mapping[int, float], confidence: float) -> Estimate:
    return linear([(1.0, np.array([values[block] for block in sorted(values)], dtype=np.float64))], confidence)


def _steps(ladder: Ladder, estimate: LadderEstimate, confidence: float) -> list[StepDocument]:
    rows = []
    for step, one in zip(ladder.steps, estimate.steps, strict=True):
        exchange = {each.factor: [each.before, each.after] for each in step.exchanges}
        if step.metric is not None:
            exchange["metric"] = list(step.metric)
        about = {
            "step": step.id,
            "title": step.title,
            "exchange": exchange,
            "threat": step.threat,
            "source": step.source,
            "why": step.why,
            "p_holm": one.p_holm,
            "counts": one.counts(confidence),
        }
        rows.append(cast(StepDocument, {**about, **ends_of(one.change)}))
    return rows


def _orders(folder: Path, ladder: Ladder, estimate: LadderEstimate, why: str) -> tuple[list[StepOrderDocument], str]:
    """Two steps in both orders, the largest that can be, where that was measured; else why not (``why``)."""
    pairs = _ranked(ladder, estimate)
    if not pairs:
        return [], "no two of its steps can be in either order, or none has a value"
    if not (folder / ORDERS / "run.json").is_file():
        return [], why or "not measured yet"
    keys = [cell.key for cell in plan.cells(_study(folder / ORDERS))]
    pair = next(pair for pair in pairs if _are(keys, rungs_of_orders(ladder, pair)))
    rungs = rungs_of_orders(ladder, pair)
    run = _Run(folder / ORDERS, ladder, rungs)
    below, first, second, without, before_second, top = run.values
    order_pairs = (
        (pair[0], compare_orders(below, first, without, top, run.confidence)),
        (pair[1], compare_orders(below, second, before_second, top, run.confidence)),
    )
    return [_order_document(ladder.steps[place].id, one) for place, one in order_pairs], why


def _are(keys: Sequence[str], rungs: Sequence[Rung]) -> bool:
    """Whether these are the cells of these rungs."""
    cells = cells_of(rungs)
    parts = [set(key.split(",")) for key in keys]
    return len(cells) == len(keys) and all(
        set(cell.split(",")) <= part for cell, part in zip(cells, parts, strict=True) if cell
    )


def _order_document(step: str, orders: OrderComparison) -> StepOrderDocument:
    return {
        "step": step,
        "before": ends_of(orders.before),
        "after": ends_of(orders.after),
        "interaction": ends_of(orders.difference),
    }


def ends_of(estimate: Estimate) -> RatioInterval:
    """A log ratio with its interval, as ratios."""
    return {
        "ratio": _exp(estimate.value),
        "low": _exp(estimate.low),
        "high": _exp(estimate.high),
        "blocks": estimate.blocks,
    }


def _exp(value: float | None) -> float | None:
    return None if value is None or abs(value) > 700 else math.exp(value)
