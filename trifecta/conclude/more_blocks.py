"""How many more blocks an open verdict asks for, and how long they take."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import mean, median

from trifecta.analysis.forecast import HORIZON
from trifecta.conclude.comparisons import Comparison
from trifecta.conclude.facts import RunFacts


def of(facts: RunFacts, comparison: Comparison) -> int | None:
    """How many more blocks to ask for: the forecast's upper end, else its middle, else as many again as there were.

    An end beyond the forecast's horizon, as the first blocks have it, is a range to be told, not a number to ask for.
    A cell that has not had its turn needs the fewest that a verdict takes. None where more blocks are no help: of a
    decided verdict, of one without a valid block, and in a map.
    """
    done = int(comparison.row["blocks"] or 0)
    if comparison.decided or facts.is_map:
        return None
    if not done:
        return None if comparison.begun else facts.fewest_blocks
    low, high = comparison.blocks_more or (done, done)
    middle = comparison.row["blocks_needed"]
    if high is not None and done + high <= HORIZON * done:
        ask = high
    else:
        ask = max(low, done) if middle is None else middle - done
    return max(ask, facts.fewest_blocks - done)


def blocks_needed(facts: RunFacts, comparisons: Iterable[Comparison]) -> int | None:
    """Blocks that decide half of the open verdicts or more, and without which none of them can be; None: no help.

    Half of those with a forecast: as many blocks again as there were, for one that is far off, may decide none.
    """
    helped = [(more, one) for one in comparisons if (more := of(facts, one)) is not None]
    if not helped:
        return None
    foreseen = [more for more, one in helped if one.blocks_more is not None] or [more for more, _ in helped]
    fewest = facts.fewest_blocks - min(int(one.row["blocks"]) for _, one in helped)
    return max(math.ceil(median(foreseen)), fewest)


def estimated_ns(facts: RunFacts, comparisons: Iterable[Comparison], trials: int) -> float | None:
    """How long that takes at most, of a run that took what it did for ``trials``; None where it cannot be known.

    What a block took on the mean is shared out among the cells as it was expected of them: those that are open may be
    the slow ones, or not begun.
    """
    ones = list(comparisons)
    opened = [one for one in ones if of(facts, one) is not None]
    elapsed_ns, more = facts.rest.get("elapsed_ns"), blocks_needed(facts, opened)
    if more is None or not trials or not isinstance(elapsed_ns, int | float):
        return None
    done: dict[str, int] = {}
    for one in ones:
        done[one.cell] = max(done.get(one.cell, 0), int(one.row["blocks"] or 0), int(one.begun))
    expected_ns = {cell: facts.block_ns.get(cell, 1) for cell in done}  # alike where nothing is known
    ran_ns = [expected_ns[cell] for cell, blocks in done.items() for _ in range(blocks)] or [*expected_ns.values()]
    each_ns = elapsed_ns / trials * (len(facts.arms) + 1)
    return more * each_ns * sum(expected_ns[cell] for cell in {one.cell for one in opened}) / mean(ran_ns)
