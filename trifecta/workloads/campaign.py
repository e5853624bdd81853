"""Runs the studies of a campaign one after the other, each into a folder of its own below the campaign's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from trifecta.design.campaign import Campaign
from trifecta.design.errors import CannotError
from trifecta.design.model import Study
from trifecta.store.run import RunDirectory, clear_unmade

_OVER = ("decided", "budget", "blocks", "unmeasurable", "captured")  # states of a run that needs nothing more


def study_state(folder: Path, name: str) -> str:
    """How far a study of the campaign is: ``new``, ``begun``, or ``over``."""
    run = folder / name
    if not (run / "run.json").is_file():
        return "new"
    return "over" if RunDirectory.open(run).facts.get("state") in _OVER else "begun"


def run_all(
    campaign: Campaign,
    folder: Path,
    run_one: Callable[[Study, Path, bool], Any],
    stop: Callable[[], bool],
) -> Iterator[tuple[str, Any, str | None]]:
    """Run what is not over: name, outcome, and the reason where a study cannot run here, which ends none of the others.

    ``run_one`` gets the study, its folder, and whether it is resumed.
    """
    for name, study in campaign.studies.items():
        if stop():
            return
        state = study_state(folder, name)
        if state == "over":
            continue
        clear_unmade(folder / name)
        try:
            yield name, run_one(study, folder / name, state == "begun"), None
        except CannotError as error:
            yield name, None, str(error)


def finished(folder: Path, names: Sequence[str]) -> list[str]:
    """The studies that have a run, in the campaign's order."""
    return [name for name in names if (folder / name / "run.json").is_file()]
