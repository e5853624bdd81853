"""The folder of a search for causes: what was asked for and what was found; and those in the folder of a run."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from trifecta.contract.why import WhyDocument, WhyRequest
from trifecta.store import documents, files, results_manifest

ASKED_FILE, FILE = "why-asked.json", "why.json"
FOLDER = "why"
"""Of a run: its report shows the searches that are there."""
_FIELDS: dict[str, type | tuple[type, ...]] = {
    "run": str,
    "study": str,
    "cell": str,
    "arm": str,
    "to": str,
    "budget_s": (int, float),
    "block_s": (int, float),
    "rounds": int,
    "seed": int,
    "causes": list,
    "not_switched": list,
    "not_measured": list,
    "began": str,
    "argv": list,
}
_CAUSE: dict[str, type | tuple[type, ...]] = {
    "cause": str,
    "suspicion": (int, float),
    "suspected": str,
    "levels": dict,
    "path": dict,
    "nearest": bool,
}
_MISSING: dict[str, type | tuple[type, ...]] = {"cause": str, "title": str, "why": str}
_REMEDY = "ask anew with --out"


def create(folder: Path, request: WhyRequest) -> Path:
    """Make the folder; ``request`` is what it takes to go on later."""
    return files.make_with(folder, ASKED_FILE, files.to_document(request))


def is_why(folder: Path) -> bool:
    """Whether a folder is that of a search for causes."""
    return (folder / ASKED_FILE).is_file()


def around(run: Path) -> Path | None:
    """The search that a run is part of; None for one that is none's."""
    return next((folder for folder in run.resolve().parents[:1] if is_why(folder)), None)


def read(folder: Path) -> WhyRequest:
    """What was asked when the folder was made; UserError with the first field that is not of ours."""
    path = folder / ASKED_FILE
    document = documents.read_object(path, _REMEDY, _FIELDS, complete=True)
    for name, fields in (("causes", _CAUSE), ("not_switched", _MISSING), ("not_measured", _MISSING)):
        for number, one in enumerate(document[name]):
            documents.expect(one, dict, f"{name}[{number}]", path, _REMEDY)
            for key, kinds in fields.items():
                documents.expect(one.get(key), kinds, f"{name}[{number}].{key}", path, _REMEDY)
    return cast(WhyRequest, document)


def write(folder: Path, document: WhyDocument) -> None:
    """Leave ``why.json`` in the folder of the search."""
    with files.disk_errors(folder):
        files.write_text(folder / FILE, files.to_json(document) + "\n")
        results_manifest.note(folder, [FILE])


def load(folder: Path) -> WhyDocument:
    """What was written there; UserError where it is not what was."""
    remedy = "make it again: `trifecta resume` with its folder"
    results_manifest.check(folder, [FILE], remedy)
    fields: dict[str, type | tuple[type, ...]] = {"causes": list, "effect": dict, "planned": int}
    return cast(WhyDocument, documents.read_object(folder / FILE, remedy, fields))


def of_run(run: Path) -> list[tuple[Path, WhyDocument]]:
    """The finished searches in the folder of a run, by name, each with its folder."""
    return [(path.parent, load(path.parent)) for path in sorted((run / FOLDER).glob(f"*/{FILE}"))]
