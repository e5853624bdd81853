"""Threats without traffic of their own: the published procedure carried out on the samples of a study's runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

from trifecta.analysis.resampling import Concluded
from trifecta.conclude.explain.resampled import conclusions
from trifecta.contract.values import JsonObject

ERRORS = 0.05  # how often a test of the usual kind may be wrong


@dataclass(frozen=True)
class OfRun(Concluded):
    """What a procedure concluded of one comparison of a run."""

    run: str = ""

    def as_data(self) -> JsonObject:
        """As ``threats.json`` has it."""
        document = asdict(self)
        return {"run": document.pop("run"), **document}


def concluded(runs: Sequence[Path]) -> dict[str, list[OfRun]]:
    """By procedure, which has the name of its threat, what it would have concluded of every comparison of the runs."""
    runs_by_procedure: dict[str, list[OfRun]] = {}
    for run in runs:
        for one in conclusions(run):
            runs_by_procedure.setdefault(str(one.procedure), []).append(OfRun(**vars(one), run=run.name))
    return runs_by_procedure


def read_stored(rows: Iterable[JsonObject]) -> list[OfRun]:
    """The same as ``threats.json`` has it."""
    return [msgspec.convert(row, OfRun) for row in rows]


def outcome(resampled: Sequence[OfRun]) -> str:
    """``effect`` when somewhere it is wrong more often than a test may be, ``no effect`` when nowhere, else open."""
    drawn = [one for one in resampled if one.draws]
    ends = [(one.low, one.high) for one in drawn if one.rate is not None]
    known = [(low, high) for low, high in ends if low is not None and high is not None]
    if not drawn:
        return "not measured"
    if any(low > ERRORS for low, _ in known):
        return "effect"
    # A comparison that our own blocks leave open says nothing, neither way.
    return "no effect" if known and all(high <= ERRORS for _, high in known) else "not decided"
