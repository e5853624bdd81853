"""A statement that was judged by an earlier rule, judged again from the interval that was kept of it."""

from __future__ import annotations

import math

from trifecta.analysis.intervals import Estimate
from trifecta.analysis.judging import NOT_COMPARED, OPEN, between_sessions, judge, size_words
from trifecta.analysis.statements import Statement
from trifecta.contract.reproduction import Judged

_MARGIN = 0.05  # of documents that do not say theirs


def judged(row: Judged, statement: Statement) -> Judged:
    """A row of ``claims`` or ``figures``, with the state, reason and size that today's rule gives it.

    What was open stays so: why it was is not all in the interval (places that part, a baseline unlike itself). Only a
    row of the same statement may be judged (`defined`).
    """
    says, state = statement.says, row["state"]
    if says is None or statement.not_compared or state in (OPEN, NOT_COMPARED) or says.relation == "whole":
        return {**row}
    value = row.get("difference") if says.by_difference else row.get("ratio")
    ends = [value, row.get("low"), row.get("high")]
    if not says.by_difference:
        ends = [None if end is None or end <= 0 else math.log(end) for end in ends]
    margin = says.margin if says.margin is not None else row.get("margin", _MARGIN)
    state, reason = judge(says, Estimate(ends[0], ends[1], ends[2], row["blocks"]), margin, between_sessions(says))
    return {**row, "state": state, "reason": reason, "size": size_words(says, state, ends[0])}
