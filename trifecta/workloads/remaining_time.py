"""What of several runs is left, and how long it will take: from what they are asked to do and what they took so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trifecta.design import duration
from trifecta.design.model import Study
from trifecta.store.run import RunDirectory
from trifecta.workloads.campaign import study_state

_ENOUGH_NS = 20_000_000_000  # a forecast is corrected by runs that took so long together


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
    took = forecast = left = done = runs = 0
    trials: int | None = 0
    for folder, study in parts.items():
        state, planned = study_state(folder.parent, folder.name), duration.trials(study)
        expected = duration.study_ns(study)
        there = 0 if state == "new" else _committed(folder)
        done += there
        if state == "over":
            took += int(RunDirectory.open(folder).facts.get("elapsed_ns") or 0)
            forecast += expected
            continue
        runs += 1
        share = 1 - min(1.0, there / planned) if planned else 1.0
        left += round(expected * share)
        trials = None if planned is None or trials is None else trials + max(0, planned - there)
    pace = min(4.0, max(0.25, took / forecast)) if forecast and took >= _ENOUGH_NS else 1.0
    return Remaining(runs, len(parts), done, trials, round(left * pace))


def _committed(folder: Path) -> int:
    """Trials that are finished, without reading any."""
    try:
        return sum(one.suffix == ".parquet" and one.name[0] != "." for one in (folder / "trials").iterdir())
    except FileNotFoundError:
        return 0
