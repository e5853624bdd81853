"""What stays the same within a session and differs between two: the part of a value that no block of a run repeats.

A start of a program draws its addresses in memory, its place on the cores and more, and keeps them until it ends
(Kalibera & Jones 2013). Blocks under one start share that draw, so their spread does not hold it.

The sizes are standard deviations of ratios (logs) from two runs of all quick reproductions on one machine (Paule and
Mandel 1982; of the 6 statements and 8 cells of times that are known to 2 % or better 0.9 and 0.5 %, of 28 cells of CPU
time 1.7 %, of memory and octets 0), rounded up; docs/reproduce.md.

Those are of ratios of two arms of a block, in which what the machine does at that minute cancels. The level of an arm
keeps it, and two runs of a session, measured one after the other, differ by it. Of times, CPU shares and memory these
are the standard deviations between the means of six consecutive blocks of a cell, beyond what the spread within them
explains, of three kept reproductions with a budget (`bench/reproductions`, 2026-11-25 to 27: 21 cells of times 10 %, 7
of CPU shares 6 %, 12 of memory 0.3 %), times the root of two, since two runs are held against each other.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from trifecta.analysis.estimate import Row
from trifecta.design.metric import Metric

OF_TIMES = 0.01
OF_CPU = 0.02
OF_LEVELS_OF_TIMES = 0.15
OF_LEVELS_OF_CPU_SHARES = 0.08
OF_LEVELS_OF_MEMORY = 0.005


def between_starts(metric: Metric) -> float:
    """The standard deviation between starts of a program, as a log ratio; 0 for shares."""
    if metric.unit == "share":
        return 0.0
    return OF_CPU if "_cpu_" in metric.name else OF_TIMES


def starts_of(rows: Sequence[Row]) -> int:
    """How many starts of its server the trials of a cell met; 1 where it was never started again, or none tells."""
    starts = set()
    for text in {str(row.get("server_json") or "{}") for row in rows if row.get("valid")}:
        document = json.loads(text)
        if isinstance(document, dict):
            starts.add((document.get("restarts"), document.get("renewals")))
    return max(1, len(starts))
