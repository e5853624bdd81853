"""The folder of ladders: what was asked for, and a folder below it for each."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from trifecta.contract.ladder import LaddersRequest
from trifecta.design.errors import UserError
from trifecta.store import documents, files

LADDERS_FILE = "ladders.json"
LADDERS_FOLDER = "ladders"
"""Of a reproduction: its page shows the ladders that are there."""
_FIELDS: dict[str, type | tuple[type, ...]] = {
    "ladders": dict,
    "depth": str,
    "blocks": (int, type(None)),
    "seed": int,
    "began": str,
    "argv": list,
}
_REMEDY = "start new ladders with --out"


def create(folder: Path, request: LaddersRequest) -> Path:
    """Make the folder; ``request`` is what it takes to go on later."""
    return files.make_with(folder, LADDERS_FILE, files.to_document(request))


def is_ladders(folder: Path) -> bool:
    """Whether a folder is that of ladders."""
    return (folder / LADDERS_FILE).is_file()


def around(run: Path) -> Path | None:
    """The folder of ladders that a run is part of; None for one that is none's."""
    return next((folder for folder in run.resolve().parents[1:2] if is_ladders(folder)), None)


def require_same(folder: Path, request: LaddersRequest) -> LaddersRequest:
    """What the folder was made for, where that is what is asked for again; UserError where not."""
    there = read(folder)
    if (there["ladders"], there["depth"], there["blocks"]) != (request["ladders"], request["depth"], request["blocks"]):
        raise UserError(
            f"{folder} holds other ladders; choose another folder with --out, or go on with them: "
            f"`trifecta resume {folder}`"
        )
    return there


def read(folder: Path) -> LaddersRequest:
    """What was asked when the folder was made; UserError with the first field that is not of ours."""
    path = folder / LADDERS_FILE
    document = documents.read_object(path, _REMEDY, _FIELDS, complete=True)
    for name, one in document["ladders"].items():
        documents.expect(one, dict, f"ladders.{name}", path, _REMEDY)
        for key in ("file", "text"):
            documents.expect(one.get(key), str, f"ladders.{name}.{key}", path, _REMEDY)
    return cast(LaddersRequest, document)
