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


def sentence(one: Interaction, metric: str, *, place: bool = True) -> str:
    """What stands apart, by how much, and in which phase; ``place``: say where, too."""
    path = levels(one.place).get("path", "")
    rest = place_words(one.place) if "," in one.place or not path else ""
    where = ", ".join(part for part in (path, rest) if part)
    who = f" asked by {one.client}" if one.client != OWN_CLIENT else ""
    begin = f"{where}: " if place and where else ""
    odd, even = one.odd, one.even
    effect = (
        f"{begin}{name(odd.arm)} {_differs(odd, metric)} behind {one.server}{who} than behind {one.other}, "
        f"{name(even.arm)} {_differs(even, metric)}"
    )
    phase = ""
    if odd.part is not None and odd.more and 0.5 <= odd.part_ns / odd.more <= 1.5:
        phase = f", most of it {METRICS[odd.part].phase}"
    ratios = f"{numbers.ratio(one.ratio)} {numbers.interval((one.low, one.high))}"
    return (
        f"{effect}{phase}. That is a difference of programs, not of {naming.noun(2)}: the ratio of {name(one.arm)} to "
        f"{name(one.reference)} is {ratios} times as large there, over {one.blocks} blocks."
    )


def sentences(found: Sequence[Interaction], metric: str) -> list[str]:
    """The largest ones, each in a sentence, and how many more there are."""
    said = [sentence(one, metric) for one in found[:MOST_SHOWN]]
    if len(found) > MOST_SHOWN:
        said.append(f"{len(found) - MOST_SHOWN} more such differences: see `trifecta explain`.")
    return said


def _differs(one: ServerGap, metric: str) -> str:
    if METRICS[metric].unit == "ns":
        return f"takes {numbers.duration(abs(one.more))} {'longer' if one.more >= 0 else 'less'}"
    return f"has {numbers.ratio(one.ratio)} times the {METRICS[metric].label}"
