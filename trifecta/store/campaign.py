"""The folder of a campaign: what was asked when it was made; the runs of its studies are folders below it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from trifecta.contract.invocation import CampaignInvocation
from trifecta.design.campaign import Campaign
from trifecta.design.errors import UserError
from trifecta.store import documents, files

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


def create(folder: Path, campaign: Campaign, invocation: CampaignInvocation) -> Path:
    """Make the folder of a campaign; ``invocation`` is what it takes to read the campaign again."""
    document = {**invocation, "campaign": campaign.name, "studies": list(campaign.studies)}
    return files.make_with(folder, CAMPAIGN_FILE, files.to_document(document))


def is_campaign(folder: Path) -> bool:
    """Whether a folder is that of a campaign."""
    return (folder / CAMPAIGN_FILE).is_file()


def read(folder: Path) -> CampaignInvocation:
    """What was asked when the folder was made."""
    return asked_in(folder / CAMPAIGN_FILE, "start a new campaign")


def asked_in(path: Path, remedy: str) -> CampaignInvocation:
    """What was asked of a campaign, from a file of its folder; UserError with the first field that is not of ours."""
    invocation = cast(CampaignInvocation, documents.read_object(path, remedy, {}))
    check_asked(invocation, path, remedy)
    return invocation


def check_asked(invocation: CampaignInvocation, path: Path, remedy: str, within: str = "") -> None:
    """UserError for the first field of what was asked of a campaign that is missing or of another type."""
    document: Mapping[str, Any] = invocation
    for name, kind in _ASKED.items():
        if name not in document and name not in ("threats_on", "threats_off"):
            raise UserError(f"{path}: field {within + name!r} is missing; {remedy}")
        documents.expect(document.get(name, []), kind, within + name, path, remedy)
        for place, item in enumerate(document.get(name, []) if kind is list else ()):
            documents.expect(item, str, f"{within}{name}[{place}]", path, remedy)
    for name in ("as_published", "with_budget"):
        documents.expect(document.get(name, False), bool, f"{within}{name}", path, remedy)
