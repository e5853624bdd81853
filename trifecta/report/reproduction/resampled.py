"""Threats without traffic of their own: the published procedure carried out on the samples of a study's runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from trifecta.report import numbers
from trifecta.report.explain.resampled import conclusions

Data = dict[str, Any]


def concluded(runs: Sequence[Path]) -> dict[str, list[Data]]:
    """By procedure, which has the name of its threat, what it would have concluded of every comparison of the runs."""
    found: dict[str, list[Data]] = {}
    for run in runs:
        for one in conclusions(run):
            found.setdefault(str(one.procedure), []).append({"run": run.name, **vars(one)})
    return found


def measured(threat: Mapping[str, Any], found: Sequence[Data]) -> Data:
    """A threat as the experiments of others leave it, with what was concluded."""
    return {**threat, "outcome": "resampled", "reason": words(found), "resampled": list(found)}


def words(found: Sequence[Data]) -> str:
    """How often it would have named the wrong protocol: where our blocks name one, and where they name none."""
    known = [one for one in found if one["rate"] is not None]
    if not known:
        return "it could not be carried out on the samples of these runs"
    said = f"carried out {known[0]['draws']} times on each of {len(known)} comparisons of our runs"
    named = [one for one in known if one["winner"]]
    if named:
        rates = [float(one["rate"]) for one in named]
        worst = max(named, key=lambda one: float(one["rate"]))
        ends = f"[{numbers.percent(worst['low'])}, {numbers.percent(worst['high'])}]"
        said += (
            f"; where our blocks name a faster one ({len(named)}) it names another in {numbers.percent(median(rates))} "
            f"of its conclusions at the median, in {numbers.percent(worst['rate'])} {ends} where it is worst "
            f"({worst['run']}, {numbers.protocol(str(worst['arm']))} against "
            f"{numbers.protocol(str(worst['reference']))})"
        )
    unnamed = len(known) - len(named)
    if unnamed:
        said += f"; in {unnamed} our blocks name none, and it names one every time"
    return said
