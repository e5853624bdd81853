"""What a run kept of a trial beside its samples: HAR files, film strips, what was dissected of its packets."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import duckdb

from trifecta.conclude.visits import films
from trifecta.contract.values import JsonObject
from trifecta.design import numbers
from trifecta.design.errors import UserError
from trifecta.store import digest_cache, manifest
from trifecta.ui import tables

MOST_MESSAGES = 200
_TRIAL = re.compile(r"t\d{5,9}")


def listing(folder: Path, trial: str) -> JsonObject:
    """The HAR files of a trial, and the pictures of each of its visits."""
    hars = [name for name in _below(folder, "har", trial) if name.endswith(".har")]
    strips: list[JsonObject] = []
    for visit in sorted({int(name.split("/")[0]) for name in _below(folder, "frames", trial) if name[0].isdigit()}):
        film = films.find(folder, trial, visit)
        if film is not None:
            pictures = [{"at": numbers.duration(at), "file": f"{visit}/{file.name}"} for at, file in film.frames]
            strips.append({"visit": visit, "pictures": pictures})
    return {"har": hars, "films": strips}


def read(folder: Path, trial: str, kind: str, name: str) -> bytes:
    """A file of a trial that `listing` has, as the run wrote it; UserError for any other name."""
    if kind not in ("har", "frames") or name not in _below(folder, kind, trial):
        raise UserError(f"{folder} keeps no {kind} {name!r} of trial {trial!r}")
    path = folder / kind / trial / name
    listed = manifest.Manifest(folder)
    if listed.exists() and digest_cache.digest(path) not in listed.entries().get(f"{kind}/{trial}/{name}", []):
        raise UserError(f"{path}: was changed after the run wrote it; {manifest.COPY}")
    return path.read_bytes()


def _below(folder: Path, kind: str, trial: str) -> list[str]:
    """Names of the regular files below a trial's folder; a link, which may lead out of the run, is none of them."""
    place = folder / kind / trial
    if not _TRIAL.fullmatch(trial) or any(part.is_symlink() for part in (place, place.parent)):
        return []
    files = []
    for there, folders, names in os.walk(place, followlinks=False):
        folders.sort()
        for name in sorted(names):
            path = Path(there) / name
            if stat.S_ISREG(path.lstat().st_mode) and not name.startswith("."):
                files.append(path.relative_to(place).as_posix())
    return files


def trace(connection: duckdb.DuckDBPyConnection, trial: str) -> list[JsonObject]:
    """What `trifecta trace` found in the packets of a trial: its connections and its messages."""
    documents = []
    for view in ("connections", "messages"):
        cursor = connection.execute(
            f"SELECT * FROM {view} WHERE regexp_extract(capture, '^t[0-9]+') = ? LIMIT {MOST_MESSAGES}",  # noqa: S608
            [trial],
        )
        names = [column[0] for column in cursor.description or ()]
        rows = cursor.fetchall()
        shown = [number for number in range(len(names)) if any(row[number] is not None for row in rows)]
        if rows:
            more = f" (the first {MOST_MESSAGES})" if len(rows) == MOST_MESSAGES else ""
            columns = [names[number].replace("_", " ") for number in shown]
            texts = [
                [numbers.NO_VALUE if row[number] is None else str(row[number]) for number in shown] for row in rows
            ]
            documents.append(tables.table(f"{view.capitalize()} on the wire{more}", columns, texts))
    return documents
