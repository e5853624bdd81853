"""What of several runs is left, and how long it will take: from what they are asked to do and what they took so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trifecta.design import duration
from trifecta.design.model import Study
from trifecta.store.run import RunDirectory
from trifecta.workloads.campaign import study_state

_TRUSTED_NS = 30_000_000_000  # what the forecast itself weighs, beside what runs of the same workload took


@dataclass(frozen=True)
class Remaining:
    """``runs`` of ``of`` runs are left, with at most ``trials`` trials (None: no run says), about ``left_ns`` of wall
    time; ``done`` trials are finished."""

    runs: int
    of: int
    done: int
    trials: int | None
    left_ns: int


def remaining(parts: Mapping[Path, Study]) -> Remaining:
    """What is left of these runs, by their folders; nothing is kept but what lies there."""
    took, forecast, left = Counter[str](), Counter[str](), Counter[str]()
    done = runs = 0
    trials: int | None = 0
    for folder, study in parts.items():
        state, planned = study_state(folder.parent, folder.name), duration.trials(study)
        expected, kind = duration.study_ns(study), study.workload.family
        there = 0 if state == "new" else _committed(folder)
        done += there
        if state == "over":
            took[kind] += int(RunDirectory.open(folder).facts.get("elapsed_ns") or 0)
            forecast[kind] += expected
            continue
        runs += 1
        share = 1 - min(1.0, there / planned) if planned else 1.0
        left[kind] += round(expected * share)
        trials = None if planned is None or trials is None else trials + max(0, planned - there)
    # How long browsers take says nothing of services, so each workload is corrected by its own.
    paced = (left[kind] * (took[kind] + _TRUSTED_NS) / (forecast[kind] + _TRUSTED_NS) for kind in left)
    return Remaining(runs, len(parts), done, trials, round(sum(paced)))


def _committed(folder: Path) -> int:
    """Trials that are finished, without reading any."""
    try:
        return sum(one.suffix == ".parquet" and one.name[0] != "." for one in (folder / "trials").iterdir())
    except FileNotFoundError:
        return 0
