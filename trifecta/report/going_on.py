"""What to type so that an open verdict gets the blocks it lacks: ``trifecta resume RUN --blocks N``."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable
from pathlib import Path
from statistics import median

from trifecta.analysis.bets import fewest_blocks
from trifecta.report import numbers
from trifecta.report.comparisons import Comparison
from trifecta.report.facts import RunFacts


def blocks(facts: RunFacts, one: Comparison) -> int | None:
    """How many more blocks to ask for: the upper end of the forecast, else as many again as there were.

    None where more blocks are no help: of a decided verdict, of one without a valid block, and in a map.
    """
    done = int(one.row["blocks"] or 0)
    if one.decided or not done or facts.is_map:
        return None
    low, high = one.blocks_more or (done, done)
    ask = high if high is not None else max(low, done)
    return max(ask, fewest_blocks(facts.confidence) - done)


def asked(facts: RunFacts, found: Iterable[Comparison]) -> int | None:
    """Blocks that decide half of the open verdicts or more, and without which none of them can be; None: no help."""
    helped = [(more, int(one.row["blocks"])) for one in found if (more := blocks(facts, one)) is not None]
    if not helped:
        return None
    fewest = fewest_blocks(facts.confidence) - min(done for _, done in helped)
    return max(math.ceil(median(more for more, _ in helped)), fewest)


def command(facts: RunFacts, more: int | None) -> str | None:
    """The command line that asks for so many more blocks; None for none."""
    return None if more is None else f"trifecta resume {shlex.quote(near(facts.folder))} --blocks {more}"


def estimate(facts: RunFacts, found: Iterable[Comparison], trials: int) -> str:
    """How long that takes if nothing is decided before: ``about 4 min at most``; empty where it cannot be known."""
    opened = [one for one in found if blocks(facts, one) is not None]
    elapsed_ns, more = facts.rest.get("elapsed_ns"), asked(facts, opened)
    if more is None or not trials or not isinstance(elapsed_ns, int | float):
        return ""
    each_ns = elapsed_ns / trials * (len(facts.arms) + 1)
    return f"about {numbers.wall(more * len({one.cell for one in opened}) * each_ns)} at most"


def sentence(facts: RunFacts, found: Iterable[Comparison], trials: int) -> str:
    """``More blocks: `trifecta resume runs/race --blocks 12` (about 4 min at most).``; empty where they are no help."""
    ones = list(found)
    line, took = command(facts, asked(facts, ones)), estimate(facts, ones, trials)
    return f"More blocks: `{line}`{took and f' ({took})'}." if line else ""


def near(folder: Path) -> str:
    """The folder as it is typed from here, where it lies below."""
    full, here = folder.resolve(), Path.cwd()
    return str(full.relative_to(here)) if full.is_relative_to(here) and full != here else str(full)
