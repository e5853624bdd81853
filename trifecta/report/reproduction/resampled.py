"""Threats without traffic of their own: the published procedure carried out on the samples of a study's runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import cast

from trifecta.analysis.resampling import SAME
from trifecta.contract.threats import Resampled, ThreatFound
from trifecta.report import numbers
from trifecta.report.explain.resampled import conclusions
from trifecta.report.words import counted, listed

ERRORS = 0.05  # how often a test of the usual kind may be wrong


def concluded(runs: Sequence[Path]) -> dict[str, list[Resampled]]:
    """By procedure, which has the name of its threat, what it would have concluded of every comparison of the runs."""
    found: dict[str, list[Resampled]] = {}
    for run in runs:
        for one in conclusions(run):
            found.setdefault(str(one.procedure), []).append(cast(Resampled, {"run": run.name, **vars(one)}))
    return found


def measured(threat: ThreatFound, found: Sequence[Resampled]) -> ThreatFound:
    """A threat as the experiments of others leave it, with what was concluded."""
    return {**threat, "outcome": outcome(found), "reason": words(found), "resampled": list(found)}


def outcome(found: Sequence[Resampled]) -> str:
    """``effect`` when somewhere it is wrong more often than a test may be, ``no effect`` when nowhere, else open."""
    drawn = [one for one in found if one["draws"]]
    known = [
        (one["low"], one["high"])
        for one in drawn
        if one["rate"] is not None and one["low"] is not None and one["high"] is not None
    ]
    if not drawn:
        return "not measured"
    if any(low > ERRORS for low, _ in known):
        return "effect"
    # A comparison that our own blocks leave open says nothing, neither way.
    return "no effect" if known and all(high <= ERRORS for _, high in known) else "not decided"


def words(found: Sequence[Resampled]) -> str:
    """How often it would have named the wrong protocol, where our verdict says which is the right one."""
    drawn = [one for one in found if one["draws"]]
    if not drawn:
        return "it could not be carried out on the samples of these runs"
    head = f"carried out {drawn[0]['draws']} times on each of {counted(len(drawn), 'comparison')} of our runs"
    named = [(one["rate"], one) for one in drawn if one["rate"] is not None and one["winner"] != SAME]
    same = sum(one["winner"] == SAME for one in drawn)
    rest = [
        f"in {number} {what}"
        for number, what in (
            (same, "there is no difference beyond the margin, and it names one all the same"),
            (len(drawn) - len(named) - same, "our verdict is open, and nothing counts as wrong"),
        )
        if number
    ]
    if not named:
        return f"{head}: {listed(rest)}"
    rates = sorted(float(rate) for rate, _ in named)
    _, worst = max(named, key=lambda one: float(one[0]))
    ends = f"[{numbers.percent(worst['low'])}, {numbers.percent(worst['high'])}]"
    where = f"where our verdict names the faster protocol ({len(named)} of {len(drawn)})"
    return (
        f"{head}; {where}, it names another in {numbers.percent(median(rates))} of its conclusions at the median, in "
        f"{numbers.percent(rates[-1])} {ends} where it is worst ({worst['run']}, "
        f"{numbers.protocol(str(worst['arm']))} against {numbers.protocol(str(worst['reference']))})"
        + (f"; {listed(rest)}" if rest else "")
    )
