"""Ladders that were measured, as ``ladder.json`` of their folders."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from trifecta.contract.ladder import LadderDocument
from trifecta.store import documents, files, results_manifest
from trifecta.store.ladders import LADDERS_FOLDER

FILE = "ladder.json"


def write(folder: Path, document: LadderDocument) -> None:
    """Leave ``ladder.json`` in the folder of the ladder."""
    with files.disk_errors(folder):
        files.write_text(folder / FILE, files.to_json(document) + "\n")
        results_manifest.note(folder, [FILE])


def load(folder: Path) -> LadderDocument:
    """What was written there; UserError where it is not what was."""
    remedy = "make it again: `trifecta resume` with the folder of the ladders"
    results_manifest.check(folder, [FILE], remedy)
    return cast(LadderDocument, documents.read_object(folder / FILE, remedy, {"rungs": list, "steps": list}))


def below(folder: Path) -> list[LadderDocument]:
    """The ladders measured in the folder of a reproduction, by name."""
    files = sorted((folder / LADDERS_FOLDER).glob(f"*/{FILE}"))
    return [load(path.parent) for path in files]
