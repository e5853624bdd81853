"""Which verdicts stay open, how far off they are, and what a median of several modes hides."""

from __future__ import annotations

from collections.abc import Sequence

from trifecta.analysis.verdict import SAME_BLOCKS
from trifecta.conclude.comparisons import Comparison, levels
from trifecta.conclude.facts import RunFacts
from trifecta.design import numbers
from trifecta.design.phrases import counted, listed
from trifecta.report import verdict_words
from trifecta.report.figures.style import name
from trifecta.report.verdict_words import place_words


def words(facts: RunFacts, comparisons: Sequence[Comparison]) -> str:
    """Say which verdicts are open, and where a decided one is of a median that hides a mode."""
    return " ".join(part for part in (_open(facts, comparisons), _modes(comparisons)) if part)


def _open(facts: RunFacts, comparisons: Sequence[Comparison]) -> str:
    if len(facts.arms) == 1:
        return "Nothing: one protocol alone gives no verdict."
    undecided = [one for one in comparisons if not one.decided]
    if not undecided:
        if len(comparisons) == 1:
            return "The one verdict is decided."
        return f"All {len(comparisons)} verdicts are decided." if comparisons else "There is no verdict yet."
    places = list(dict.fromkeys(one.cell for one in undecided))
    stay = "stays" if len(undecided) == 1 else "stay"
    opening = f"{len(undecided)} of {counted(len(comparisons), 'verdict')} {stay} open"
    fewest, most = facts.fewest_blocks, facts.study.get("max_blocks")
    if most is not None and most < fewest:
        ends = f"and this study ends at {counted(most, 'block')}"
        return f"{opening}: none can be decided before a cell's block {fewest}, {ends}."
    if len(places) > 3:
        return f"{opening}, in {len(places)} cells. {reach(undecided)}"
    sentences = []
    for cell in places:
        here = [one for one in undecided if one.cell == cell]
        pairs = [
            f"{name(one.arm)} against {name(one.reference)} {verdict_words.ratio_interval(one)} "
            f"{verdict_words.needed_blocks(one)}"
            for one in here
        ]
        where = ", ".join(part for part in (levels(cell).get("path", ""), place_words(cell)) if part)
        sentences.append(f"{where}: {listed(pairs)}")
    return f"{opening}. In {'; '.join(sentences)}."


def _modes(comparisons: Sequence[Comparison]) -> str:
    """Trials that fall into modes, by cell: a median does not see the smaller one."""
    notes: dict[str, list[str]] = {}
    for one in comparisons:
        for mode in (one.row["modes"] or "").split("; "):
            if mode and not mode.startswith("1 of "):
                notes.setdefault(mode, [one.cell])
    if not notes:
        return ""
    parts = [
        f"{', '.join(part for part in (levels(cell).get('path', ''), place_words(cell)) if part)}: {mode}"
        for mode, (cell,) in notes.items()
    ]
    more = f"; and {len(parts) - 4} more" if len(parts) > 4 else ""
    return f"A median hides the smaller of two modes. {'; '.join(parts[:4])}{more}."


def reach(undecided: Sequence[Comparison]) -> str:
    """How far off the open verdicts are, when they are too many to name."""
    within = sum(one.likely == "same" and one.row["blocks"] < SAME_BLOCKS for one in undecided)
    likely = sum(one.likely is not None for one in undecided) - within
    reach = [one.blocks_more for one in undecided if one.blocks_more is not None]
    empty = sum(not one.row["blocks"] and one.begun for one in undecided)
    ahead = sum(not one.begun for one in undecided)
    early = sum(one.too_early for one in undecided) - empty - ahead
    far = len(undecided) - len(reach) - empty - ahead - early
    sentences = []
    if likely:
        alone = "it were" if likely == 1 else "each were"
        sentences.append(f"{likely} would be decided if {alone} the only comparison (likely).")
    if within:
        lie, need = ("lies", "needs") if within == 1 else ("lie", "need")
        sentences.append(
            f"{within} {lie} within the margin but {need} {SAME_BLOCKS} blocks to be called the same (likely)."
        )
    if reach:
        first = min(low for low, _ in reach)
        ends = [high for _, high in reach if high is not None]
        last = f" to {numbers.count(max(ends))}" if len(ends) == len(reach) and max(ends) > first else ""
        more = "more" if len(ends) == len(reach) else "or more further"
        block = "block" if first == 1 and not last and more == "more" else "blocks"
        each = " each" if len(reach) > 1 else ""
        sentences.append(f"{len(reach)} would need an estimated {numbers.count(first)}{last} {more} {block}{each}.")
    if far:
        sentences.append(f"{far} would need more than ten times the blocks so far.")
    if early:
        has = "has" if early == 1 else "have"
        sentences.append(f"{early} {has} too few blocks for a forecast.")
    if empty:
        has = "has" if empty == 1 else "have"
        sentences.append(f"{empty} {has} no valid block at all.")
    if ahead:
        has = "has" if ahead == 1 else "have"
        sentences.append(f"{ahead} {has} not been measured yet.")
    return " ".join(sentences)
