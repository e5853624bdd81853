"""Runs the studies of a campaign one after the other, each into a folder of its own below the campaign's."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from trifecta.contract.asked import Asked
from trifecta.design.campaign import Campaign
from trifecta.design.errors import CannotError, UserError
from trifecta.design.model import Study
from trifecta.store import documents, files
from trifecta.store.run import RunDirectory, clear_unmade

CAMPAIGN_FILE = "campaign.json"
_ASKED = {
    "text": str,
    "file": str,
    "depth": str,
    "overrides": list,
    "only": list,
    "threats_on": list,
    "threats_off": list,
}
_OVER = ("decided", "budget", "blocks", "unmeasurable", "captured")  # states of a run that needs nothing more


def create(folder: Path, campaign: Campaign, asked: Asked) -> Path:
    """Make the folder of a campaign; ``asked`` is what it takes to read the campaign again."""
    folder = folder.resolve()
    files.make_empty(folder)
    with files.disk_errors(folder):
        document = {**asked, "campaign": campaign.name, "studies": list(campaign.studies)}
        files.write_text(folder / CAMPAIGN_FILE, json.dumps(document, indent=2) + "\n")
    return folder


def is_campaign(folder: Path) -> bool:
    """Whether a folder is that of a campaign."""
    return (folder / CAMPAIGN_FILE).is_file()


def read(folder: Path) -> Asked:
    """What was asked when the folder was made."""
    return asked_in(folder / CAMPAIGN_FILE, "start a new campaign")


def asked_in(path: Path, remedy: str) -> Asked:
    """What was asked of a campaign, from a file of its folder; UserError with the first field that is not of ours."""
    document = documents.read_object(path, remedy, {})
    check_asked(document, path, remedy)
    return cast(Asked, document)


def check_asked(document: Mapping[str, Any], path: Path, remedy: str, within: str = "") -> None:
    """UserError for the first field of what was asked of a campaign that is missing or of another type."""
    for name, kind in _ASKED.items():
        if name not in document and name not in ("threats_on", "threats_off"):
            raise UserError(f"{path}: field {within + name!r} is missing; {remedy}")
        documents.expect(document.get(name, []), kind, within + name, path, remedy)
        for place, item in enumerate(document.get(name, []) if kind is list else ()):
            documents.expect(item, str, f"{within}{name}[{place}]", path, remedy)


def standing(folder: Path, name: str) -> str:
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
        state = standing(folder, name)
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
