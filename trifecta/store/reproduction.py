"""The folder of a reproduction: what was asked for, a campaign's folder a study, and the threats' experiments."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from trifecta.contract.invocation import CampaignInvocation, ReproductionInvocation
from trifecta.contract.reproduction import Step
from trifecta.design.errors import UserError
from trifecta.store import documents, files
from trifecta.store.campaign import check_asked

REPRODUCTION_FILE = "reproduce.json"
DATA_FILE = "reproduction.json"
"""What was found, for a program."""
_FIELDS: dict[str, type] = {
    "studies": list,
    "all": bool,
    "depth": str,
    "threats": bool,
    "elapsed_s": dict,
    "campaigns": dict,
}
THREATS_FOLDER = "threats"
AS_PUBLISHED_FOLDER = "as-published"
"""Below a reproduction of today: the same under the conditions of the studies."""
BUDGET_FILE = "budget.jsonl"


def create(folder: Path, invocation: ReproductionInvocation) -> Path:
    """Make the folder; ``invocation`` is what it takes to go on later."""
    return files.make_with(folder, REPRODUCTION_FILE, files.to_document(invocation))


def write(folder: Path, invocation: ReproductionInvocation) -> None:
    """Keep what was asked for, and how long its parts took so far."""
    with files.disk_errors(folder):
        files.write_text(folder / REPRODUCTION_FILE, json.dumps(invocation, indent=2) + "\n")


def require_same(folder: Path, invocation: ReproductionInvocation) -> ReproductionInvocation:
    """What the folder of a reproduction was made for, where that is what is asked for again; UserError where not."""
    there = read(folder)
    before: Mapping[str, object] = there
    wanted: Mapping[str, object] = invocation
    for name in ("studies", "all", "depth", "threats", "budget_ns", "as_published"):
        if (before.get(name) or None) != (wanted.get(name) or None):
            raise _other_folder(folder, name.removesuffix("_ns"))
    for study, one in invocation["campaigns"].items():
        campaign: Mapping[str, object] = there.get("campaigns", {}).get(study, {})
        for name, value in one.items():
            if (campaign.get(name) or None) != (value or None):  # older folders lack what was not asked for
                raise _other_folder(folder, f"{name} of {study}" if name != "text" else f"the campaign {study} itself")
    return there


def _other_folder(folder: Path, what: str) -> UserError:
    return UserError(
        f"{folder} holds another reproduction ({what} differs); choose another folder with --out, "
        f"or continue it: `trifecta resume {folder}`"
    )


def is_reproduction(folder: Path) -> bool:
    """Whether a folder is that of a reproduction."""
    return (folder / REPRODUCTION_FILE).is_file()


def read(folder: Path) -> ReproductionInvocation:
    """What was asked when the folder was made."""
    path, remedy = folder / REPRODUCTION_FILE, "start a new reproduction"
    if not path.is_file():
        raise UserError(f"{folder} holds no reproduction (no {REPRODUCTION_FILE}); give one of `trifecta reproduce`")
    document = documents.read_object(path, remedy, _FIELDS)
    if "studies" not in document:
        raise UserError(f"{path}: 'studies' is missing; {remedy}")
    for name in document["studies"]:
        documents.expect(name, str, "studies", path, remedy)
    for name, took in document.get("elapsed_s", {}).items():
        documents.expect(took, (int, float), f"elapsed_s.{name}", path, remedy)
    if document.get("budget_ns") is not None:
        documents.expect(document["budget_ns"], int, "budget_ns", path, remedy)
    documents.expect(document.get("as_published", False), bool, "as_published", path, remedy)
    return cast(ReproductionInvocation, document)


def read_to_go_on(folder: Path) -> ReproductionInvocation:
    """As `read`, with all that it takes to go on."""
    path, remedy, document = folder / REPRODUCTION_FILE, "start a new reproduction", read(folder)
    for name in _FIELDS:
        if name not in document:
            raise UserError(f"{path}: '{name}' is missing; {remedy}")
    for name in document["studies"]:
        one = document["campaigns"].get(name)
        documents.expect(one, dict, f"campaigns.{name}", path, remedy)
        check_asked(one or CampaignInvocation(), path, remedy, f"campaigns.{name}.")
    return document


def steps(folder: Path) -> list[Step]:
    """What was decided so far about the time of a budget, each with what became of it."""
    path, remedy = folder / BUDGET_FILE, "remove it; what was measured stays, and `trifecta resume` goes on"
    if not path.is_file():
        return []
    all_steps: list[Step] = []
    for number, line in enumerate(documents.read_text(path, remedy).splitlines(), 1):
        try:
            one = json.loads(line)
        except ValueError as error:
            raise UserError(f"{path}: line {number} is no JSON ({error}); {remedy}") from None
        documents.expect(one, dict, f"line {number}", path, remedy)
        for name, kinds in (("claim", str), ("targets", dict), ("step_s", (int, float))):
            documents.expect(one.get(name), kinds, f"line {number}, {name}", path, remedy)
        all_steps.append(cast(Step, one))
    return all_steps


def write_steps(folder: Path, steps: Sequence[Step]) -> None:
    """Keep them, whole or not at all."""
    with files.disk_errors(folder):
        files.write_text(folder / BUDGET_FILE, "".join(files.to_json(one) + "\n" for one in steps))
