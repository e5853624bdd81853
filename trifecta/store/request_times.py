"""How long the requests of a run took to succeed or to fail, trial by trial."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import duckdb
import numpy as np
from numpy.typing import NDArray

# How long a request that failed took to fail: known where it ended, or ran into one of its time limits; else until the
# last that was seen of it.
_SAMPLES = """
SELECT t.block, t.arm, t.trial, s.success,
       coalesce(s.latency_ns, CASE s.error WHEN 'timeout' THEN {request} WHEN 'connect_timeout' THEN {connect} END,
                greatest(s.done_ns, s.first_byte_ns, s.request_sent_ns, s.secured_ns, s.started_ns) - s.started_ns)
           AS took_ns
FROM samples AS s JOIN trials AS t USING (trial)
WHERE t.valid AND NOT s.warmup AND t.cell = ?
ORDER BY t.block, t.trial, s.success, took_ns
"""


@dataclass(frozen=True)
class TrialTimes:
    """One valid trial, without its warm-up; times in ns, ascending."""

    block: int
    arm: str
    """As in the table of trials: the baseline's second run ends with ``#aa``."""
    done_ns: NDArray[np.float64]
    failed_ns: NDArray[np.float64]


def of_cell(connection: duckdb.DuckDBPyConnection, cell: str, request_ns: int, connect_ns: int) -> Iterator[TrialTimes]:
    """The valid trials of a cell, block by block; the limits are those of a request and of its connection, in ns."""
    limits = {"request": int(request_ns), "connect": int(connect_ns)}
    columns = connection.execute(_SAMPLES.format(**limits), [cell]).fetchnumpy()
    trials = np.asarray(columns["trial"])
    if not len(trials):
        return
    took, success = np.asarray(columns["took_ns"], dtype=np.float64), np.asarray(columns["success"], dtype=bool)
    _, starts = np.unique(trials, return_index=True)
    starts = np.sort(starts)
    for start, end in zip(starts, [*starts[1:], len(trials)], strict=True):
        own, good = took[start:end], success[start:end]
        yield TrialTimes(int(columns["block"][start]), str(columns["arm"][start]), own[good], own[~good])
