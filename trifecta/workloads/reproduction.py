"""The folder of a reproduction: what was asked for, a campaign's folder a study, and the threats' experiments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trifecta.design.errors import UserError
from trifecta.store import files

REPRODUCTION_FILE = "reproduce.json"
THREATS_FOLDER = "threats"


def create(folder: Path, asked: Mapping[str, Any]) -> Path:
    """Make the folder; ``asked`` is what it takes to go on later."""
    folder = folder.resolve()
    files.make_empty(folder)
    write(folder, asked)
    return folder


def write(folder: Path, asked: Mapping[str, Any]) -> None:
    """Keep what was asked for, and how long its parts took so far."""
    with files.disk_errors(folder):
        files.write_text(folder / REPRODUCTION_FILE, json.dumps(asked, indent=2) + "\n")


def same(folder: Path, asked: Mapping[str, Any]) -> dict[str, Any]:
    """What the folder of a reproduction was made for, where that is what is asked for again; UserError where not."""
    there = read(folder)
    for name in ("studies", "all", "depth", "threats"):
        if there.get(name) != asked[name]:
            raise _other(folder, name)
    for study, one in asked["campaigns"].items():
        for name, value in one.items():
            if there.get("campaigns", {}).get(study, {}).get(name) != value:
                raise _other(folder, f"{name} of {study}" if name != "text" else f"the campaign {study} itself")
    return there


def _other(folder: Path, what: str) -> UserError:
    return UserError(
        f"{folder} holds another reproduction ({what} differs); choose another folder with --out, "
        f"or go on with it: `trifecta resume {folder}`"
    )


def is_reproduction(folder: Path) -> bool:
    """Whether a folder is that of a reproduction."""
    return (folder / REPRODUCTION_FILE).is_file()


def read(folder: Path) -> dict[str, Any]:
    """What was asked when the folder was made."""
    path = folder / REPRODUCTION_FILE
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(
            f"{folder} holds no reproduction (no {REPRODUCTION_FILE}); give one of `trifecta reproduce`"
        ) from None
    except ValueError as error:
        raise UserError(f"{path} is not valid JSON ({error}); start a new reproduction") from error
    if not isinstance(document, dict) or not isinstance(document.get("studies"), list):
        raise UserError(f"{path}: 'studies' is missing; start a new reproduction")
    return document
