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
    """How often it would have named the wrong protocol."""
    rates = sorted(float(one["rate"]) for one in found if one["rate"] is not None)
    if not rates:
        return "it could not be carried out on the samples of these runs"
    draws = found[0]["draws"]
    worst = max((one for one in found if one["rate"] is not None), key=lambda one: float(one["rate"]))
    ends = f"[{numbers.percent(worst['low'])}, {numbers.percent(worst['high'])}]"
    return (
        f"carried out {draws} times on each of {len(rates)} comparisons of our runs, it names the wrong protocol in "
        f"{numbers.percent(median(rates))} of its conclusions at the median, in {numbers.percent(rates[-1])} {ends} "
        f"where it is worst ({worst['run']}, {numbers.protocol(str(worst['arm']))} against "
        f"{numbers.protocol(str(worst['reference']))})"
    )
