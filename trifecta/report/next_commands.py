"""Commands: what was typed, and what to type so that an open verdict gets more blocks, or a decided one its causes."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath

from trifecta.conclude import more_blocks
from trifecta.conclude.comparisons import Comparison
from trifecta.conclude.facts import RunFacts
from trifecta.design import numbers
from trifecta.design.metrics import BY_DIFFERENCE, METRICS


def command_line(argv: Sequence[str]) -> str:
    """A command as anybody would type it: without where the program lies on this machine."""
    ours = bool(argv) and PurePath(argv[0]).name in ("trifecta", "__main__.py", "main.py")
    return shlex.join(["trifecta", *argv[1:]] if ours else argv)


def command(facts: RunFacts, more: int | None) -> str | None:
    """The command line that asks for so many more blocks; None for none."""
    return None if more is None else f"trifecta resume {shlex.quote(relative_folder(facts.folder))} --blocks {more}"


def estimate(facts: RunFacts, comparisons: Iterable[Comparison], trials: int) -> str:
    """How long that takes if nothing is decided before: ``about 4 min at most``; empty where it cannot be known.

    ``about 4 min`` where a cell has not begun, of which nothing was measured.
    """
    ones = list(comparisons)
    took_ns = more_blocks.estimated_ns(facts, ones, trials)
    if took_ns is None:
        return ""
    return f"about {numbers.wall(took_ns)}{' at most' if all(one.begun for one in ones) else ''}"


def sentence(facts: RunFacts, comparisons: Iterable[Comparison], trials: int) -> str:
    """``More blocks: `trifecta resume runs/race --blocks 12` (about 4 min at most).``; empty where they are no help."""
    ones = list(comparisons)
    line, took = command(facts, more_blocks.blocks_needed(facts, ones)), estimate(facts, ones, trials)
    return f"More blocks: `{line}`{took and f' ({took})'}." if line else ""


def causes(facts: RunFacts, comparisons: Iterable[Comparison]) -> str | None:
    """The command line that removes causes of the largest difference; None where none to the baseline is decided,
    it has no ratio, or it was seen at a server elsewhere, from which `trifecta why` can remove nothing.
    """
    decided = any(one.kind in ("faster", "slower") and one.reference == facts.baseline for one in comparisons)
    if facts.is_outside or not decided or METRICS[facts.metric].name in BY_DIFFERENCE:
        return None
    return f"trifecta why {shlex.quote(relative_folder(facts.folder))}"


def relative_folder(folder: Path) -> str:
    """The folder as it is typed from here, where it lies below."""
    full, here = folder.resolve(), Path.cwd()
    return str(full.relative_to(here)) if full.is_relative_to(here) and full != here else str(full)
