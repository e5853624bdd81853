"""A statement judged again from what was kept of it: the values of its cells' blocks, or else its interval.

Rows of earlier versions have the interval alone. With the values every state comes out again, open ones too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from trifecta.analysis.deciding import Decided, Rule, Sample, decide, decide_whole, sized, worst
from trifecta.analysis.intervals import Estimate
from trifecta.analysis.judging import NOT_COMPARED, OPEN, State, between_sessions, judge, size_words
from trifecta.analysis.statements import Says, Statement
from trifecta.contract.reproduction import Judged, JudgedCell

_MARGIN = 0.05  # of documents that do not say theirs


def judged(row: Judged, statement: Statement) -> Judged:
    """A row of ``claims`` or ``figures``, with the state, reason and size that today's rule gives it.

    Without the values of blocks what was open stays so: why it was is not all in the interval (places that part, a
    baseline unlike itself). Only a row of the same statement may be judged (`defined`).
    """
    says, state = statement.says, row["state"]
    if says is None or statement.not_compared or state == NOT_COMPARED:
        return {**row}
    found = recomputed(row, says)
    if found is not None:
        now, reason, size = found
        return {**row} if now == state else {**row, "state": now, "reason": reason, "size": size}
    if state == OPEN or says.relation == "whole":
        return {**row}
    value = row.get("difference") if says.by_difference else row.get("ratio")
    ends = [value, row.get("low"), row.get("high")]
    if not says.by_difference:
        ends = [None if end is None or end <= 0 else math.log(end) for end in ends]
    state, reason = judge(
        says, Estimate(ends[0], ends[1], ends[2], row["blocks"]), _margin(row, says), between_sessions(says)
    )
    return {**row, "state": state, "reason": reason, "size": size_words(says, state, ends[0])}


def recomputed(row: Judged, says: Says) -> tuple[State, str, str] | None:
    """State, reason and size from the values of the blocks; None where they are not kept, or none was judged.

    Where a run might end when it was decided its own verdict was judged, which the values are not.
    """
    confidence = row.get("confidence")
    if confidence is None:
        return None
    if says.relation == "whole":
        state, reason, _ = decide_whole(says, [(asked, ok) for asked, ok in row.get("rates", ())], confidence)
        return state, reason, ""
    one = decided(row, says, confidence)
    return None if one is None else (one.state, one.reason, sized(says, one))


def decided(row: Judged, says: Says, confidence: float) -> Decided | None:
    """The answer from the values of the blocks, with its interval; None where a cell has none."""
    cells = row.get("cells") or []
    if not cells or not all(cell.get("values") for cell in cells):
        return None
    rule = Rule(_margin(row, says), confidence)
    found = []
    for side in says.sides:
        samples = [_sample(cell, says) for cell in cells if cell.get("to", "") == side]
        if samples:
            found.append(decide(says, samples, side, rule))
        else:
            found.append(Decided(side, OPEN, row["reason"]))
    return worst(says, found)


def _sample(cell: JudgedCell, says: Says) -> Sample:
    values = tuple(_plain(side, by_difference=says.by_difference) for side in cell["values"])
    retest = _plain(cell.get("again", ()), by_difference=says.by_difference)
    return Sample(cell["run"], cell["cell"], cell.get("against", ""), values, retest)


def _plain(values: Sequence[float | str], *, by_difference: bool) -> tuple[float, ...]:
    """As they are judged: a difference, or the log of a ratio; what lies among failures is infinite."""
    made = []
    for told in values:
        value = float(told)
        made.append(value if by_difference or isinstance(told, str) else math.log(value))
    return tuple(made)


def _margin(row: Judged, says: Says) -> float:
    if says.margin is not None:
        return says.margin
    margin = row.get("margin")
    return _MARGIN if margin is None else margin
