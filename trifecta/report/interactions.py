"""A protocol that is slow behind one server only, in words."""

from __future__ import annotations

from collections.abc import Sequence

from trifecta.analysis.interactions import Interaction, ServerGap
from trifecta.analysis.programs import OWN_CLIENT
from trifecta.conclude.comparisons import levels
from trifecta.design import naming, numbers
from trifecta.design.metrics import METRICS
from trifecta.report.figures.style import name
from trifecta.report.verdict_words import place_words

MOST_SHOWN = 6


def sentence(interaction: Interaction, metric: str, *, place: bool = True) -> str:
    """What stands apart, by how much, and in which phase; ``place``: say where, too."""
    path = levels(interaction.place).get("path", "")
    rest = place_words(interaction.place) if "," in interaction.place or not path else ""
    where = ", ".join(part for part in (path, rest) if part)
    who = f" asked by {interaction.client}" if interaction.client != OWN_CLIENT else ""
    begin = f"{where}: " if place and where else ""
    odd, even = interaction.odd, interaction.even
    phase = ""
    if odd.part is not None and odd.more and 0.5 <= odd.part_ns / odd.more <= 1.5:
        phase = f", most of it {METRICS[odd.part].phase}"
    effect = (
        f"{begin}{name(odd.arm)} {_differs(odd, metric)} behind {interaction.server}{who} than behind "
        f"{interaction.other}{phase}; {name(even.arm)} {_differs(even, metric)}"
    )
    ratios = f"{numbers.ratio(interaction.ratio)} {numbers.interval((interaction.low, interaction.high))}"
    return (
        f"{effect}. That is a difference of programs, not of {naming.noun(2)}: the ratio of {name(interaction.arm)} to "
        f"{name(interaction.reference)} is {ratios} times as large there, over {interaction.blocks} blocks."
    )


def sentences(interactions: Sequence[Interaction], metric: str) -> list[str]:
    """The largest ones, each in a sentence, and how many more there are."""
    texts = [sentence(one, metric) for one in interactions[:MOST_SHOWN]]
    if len(interactions) > MOST_SHOWN:
        texts.append(f"{len(interactions) - MOST_SHOWN} more such differences: see `trifecta explain`.")
    return texts


def _differs(gap: ServerGap, metric: str) -> str:
    if METRICS[metric].unit == "ns":
        return f"takes {numbers.duration(abs(gap.more))} {'longer' if gap.more >= 0 else 'less'}"
    return f"has {numbers.ratio(gap.ratio)} times the {METRICS[metric].label}"
