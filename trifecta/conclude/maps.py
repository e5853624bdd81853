"""The map that was written into a folder, as data."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from trifecta.analysis.mapping.documents import MapDocument
from trifecta.analysis.mapping.result import MapResult, read
from trifecta.design.errors import UserError
from trifecta.store import documents, results_manifest
from trifecta.store import facts as run_facts

FILE = "map.json"


def load(folder: Path) -> MapResult:
    """The map that was written into a folder."""
    path, remedy = folder / FILE, f"run 'trifecta map {folder}' to write it again"
    if not path.is_file():
        raise UserError(f"{path} is not there yet; `trifecta resume {folder}` goes on with the map")
    document = cast(MapDocument, documents.read_object(path, remedy, {}))
    if (folder / run_facts.FILE).is_file():  # a map may be kept without its run
        run_facts.read(folder)
        results_manifest.check(folder, [FILE], remedy)
    return read(document)
