"""A statement judged again from what was kept of it: the values of its cells' blocks, or else its interval.

Rows of earlier versions have the interval alone. With the values every state comes out again, open ones too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from trifecta.analysis.deciding import Decided, Rule, Sample, decide, decide_whole, guarded, sized, worst
from trifecta.analysis.intervals import Estimate
from trifecta.analysis.judging import NOT_COMPARED, OPEN, State, size_words
from trifecta.analysis.statements import Assertion, Statement
from trifecta.contract.reproduction import Judged, JudgedCell

_MARGIN = 0.05  # of documents that do not say theirs


def rejudge(row: Judged, statement: Statement) -> Judged:
    """A row of ``claims`` or ``figures``, with the state, reason and size that today's rule gives it.

    Without the values of blocks what was open stays so: why it was is not all in the interval (places that part, a
    baseline unlike itself). Only a row of the same statement may be judged (`defined`).
    """
    assertion, state = statement.says, row["state"]
    if assertion is None or statement.not_compared or state == NOT_COMPARED:
        return {**row}
    decision = recomputed(row, assertion)
    if decision is not None:
        now, reason, size = decision
        return {**row} if now == state else {**row, "state": now, "reason": reason, "size": size}
    if state == OPEN or assertion.relation == "whole":
        return {**row}
    value = row.get("difference") if assertion.by_difference else row.get("ratio")
    ends = [value, row.get("low"), row.get("high")]
    if not assertion.by_difference:
        ends = [None if end is None or end <= 0 else math.log(end) for end in ends]
    cells = [(cell["run"], cell.get("against", "")) for cell in row.get("cells") or ()]
    estimate = Estimate(ends[0], ends[1], ends[2], row["blocks"])
    state, reason = guarded(assertion, estimate, _margin(row, assertion), cells)
    return {**row, "state": state, "reason": reason, "size": size_words(assertion, state, ends[0])}


def recomputed(row: Judged, assertion: Assertion) -> tuple[State, str, str] | None:
    """State, reason and size from the values of the blocks; None where they are not kept, or none was judged.

    Where a run might end when it was decided its own verdict was judged, which the values are not.
    """
    confidence = row.get("confidence")
    if confidence is None:
        return None
    if assertion.relation == "whole":
        state, reason, _ = decide_whole(assertion, [(rate, ok) for rate, ok in row.get("rates", ())], confidence)
        return state, reason, ""
    one = decided(row, assertion, confidence)
    return None if one is None else (one.state, one.reason, sized(assertion, one))


def decided(row: Judged, assertion: Assertion, confidence: float) -> Decided | None:
    """The answer from the values of the blocks, with its interval; None where a cell has none."""
    cells = row.get("cells") or []
    if not cells or not all(cell.get("values") for cell in cells):
        return None
    rule = Rule(_margin(row, assertion), confidence)
    decisions = []
    for side in assertion.sides:
        samples = [_sample(cell, assertion) for cell in cells if cell.get("to", "") == side]
        if samples:
            decisions.append(decide(assertion, samples, side, rule))
        else:
            decisions.append(Decided(side, OPEN, row["reason"]))
    return worst(assertion, decisions)


def _sample(cell: JudgedCell, assertion: Assertion) -> Sample:
    values = tuple(_as_judged(side, by_difference=assertion.by_difference) for side in cell["values"])
    retest = _as_judged(cell.get("again", ()), by_difference=assertion.by_difference)
    return Sample(cell["run"], cell["cell"], cell.get("against", ""), values, retest)


def _as_judged(values: Sequence[float | str], *, by_difference: bool) -> tuple[float, ...]:
    """As they are judged: a difference, or the log of a ratio; what lies among failures is infinite."""
    ratios = []
    for text in values:
        value = float(text)
        ratios.append(value if by_difference or isinstance(text, str) else math.log(value))
    return tuple(ratios)


def _margin(row: Judged, assertion: Assertion) -> float:
    if assertion.margin is not None:
        return assertion.margin
    margin = row.get("margin")
    return _MARGIN if margin is None else margin
