"""An arm of which more trials were left out than of others, in words."""

from __future__ import annotations

from trifecta.conclude.exclusions import UnevenExclusions
from trifecta.design import numbers
from trifecta.report.figures.style import name


def text(one: UnevenExclusions) -> str:
    """Two sentences for the headline, with the remedy."""
    where = "in one cell" if one.cells == 1 else f"in {one.cells} cells"
    said = (
        f"Trials of {name(one.arm)} were excluded more often than others: {numbers.count(one.excluded)} of "
        f"{numbers.count(one.trials)}, against {numbers.count(one.others_excluded)} of "
        f"{numbers.count(one.others)} ({where}"
    )
    said += f", mostly by the check {one.check.replace('_', ' ')})" if one.check else ")"
    said += ", so its results rest on the remaining trials."
    return f"{said} To fix this: {one.remedy}." if one.remedy else said
