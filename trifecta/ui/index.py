"""What lies in a folder: its runs, maps, ladders and reproductions, each with its answer in a line.

An answer takes a second to work out, so it is kept in the user's cache, never in a run's folder, and holds as long as
the files that it rests on are untouched. Whoever asks gets what is known; what is not is worked out meanwhile.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from trifecta import __version__
from trifecta.design.errors import TrifectaError, UserError
from trifecta.store import cache, files

RUN = "run.json"
_KINDS = {
    "reproduce.json": "reproduction",
    "reproduction.json": "reproduction",
    "ladder.json": "ladder",
    "map.json": "map",
    RUN: "run",
}
"""What makes a folder one of a kind, the first that is there. A map that goes on is a run."""
_RESTS_ON = (*_KINDS, "verdicts.parquet", "manifest.sha256", "study.yaml")
DEEPEST = 6
_HELD = ("pki", "samples", "trials", "link", "logs", "resources", "spans", "captures", "qlog", "har", "frames")


@dataclass(frozen=True)
class Entry:
    """A folder with something in it. ``answer`` None: not worked out yet; ``seal`` changes when it no longer holds."""

    name: str
    kind: str
    seal: str
    title: str
    words: str
    """What a search finds it by, beside name, title and answer: levels, servers, the compared factor."""
    began_utc: str
    state: str
    answer: str | None = None
    problem: str = ""


Answers = Callable[[Path, str], str]
"""(folder, kind) to the line that is its answer; UserError or CannotError where it has none."""


class Index:
    """The entries of one folder, by name. Names from outside are looked up here, never joined to a path."""

    def __init__(self, folder: Path) -> None:
        """Of ``folder``, with what the cache knows of it."""
        self.folder = folder.resolve()
        self._entries: dict[str, Entry] = {}
        key = hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:24]
        self._cache_file = cache.cache_folder() / "ui" / f"{key}.json"
        self._known = _read(self._cache_file)

    def look(self) -> list[Entry]:
        """What is there now, the latest first."""
        entries: dict[str, Entry] = {}
        for name, path, seals in _walk(self.folder):
            seal = ";".join(seals.values())
            known = self._entries.get(name) or self._known.get(name)
            entries[name] = known if known and known.seal == seal else _brief(name, path, seals, seal)
        self._entries = entries
        return sorted(entries.values(), key=lambda one: (one.began_utc, one.name), reverse=True)

    def path(self, name: str) -> Path:
        """The folder of an entry; UserError for a name that is none."""
        if name not in self._entries:
            self.look()
        if name not in self._entries:
            raise UserError(f"{self.folder} has no {name!r}")
        return self.folder if name == "." else self.folder / name

    def entry(self, name: str) -> Entry:
        """An entry; UserError for a name that is none."""
        self.path(name)
        return self._entries[name]

    def unanswered(self) -> list[Entry]:
        """Entries whose answers are to be worked out, the latest first."""
        open_ones = (one for one in self._entries.values() if one.answer is None and not one.problem)
        return sorted(open_ones, key=lambda one: one.began_utc, reverse=True)

    def answer(self, one: Entry, work_out: Answers) -> Entry:
        """Work out the answer of an entry; what keeps it from being read is its ``problem``."""
        try:
            entry = replace(one, answer=work_out(self.path(one.name), one.kind))
        except TrifectaError as error:
            entry = replace(one, problem=str(error))
        except OSError as error:
            entry = replace(one, problem=f"{error.filename}: {error.strerror}")
        if self._entries.get(one.name) == one:  # else it changed meanwhile, and comes again
            self._entries[one.name] = entry
        return entry

    def keep(self) -> None:
        """Leave what is known in the cache; a cache that cannot be written is no cache."""
        document = {"version": __version__, "entries": [asdict(one) for one in self._entries.values() if one.answer]}
        try:
            self._cache_file.parent.mkdir(parents=True, exist_ok=True)
            files.write_text(self._cache_file, json.dumps(document))
        except (OSError, TrifectaError):
            return


def _read(path: Path) -> dict[str, Entry]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["version"] != __version__:
            return {}
        return {one["name"]: Entry(**one) for one in document["entries"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _walk(folder: Path) -> Iterator[tuple[str, Path, dict[str, str]]]:
    """(name, path, seals by file) of every folder that is of a kind. Links are not followed: they may lead out."""
    waiting = [(".", os.fspath(folder), 0)]
    while waiting:
        name, path, depth = waiting.pop()
        seals: dict[str, str] = {}
        below: list[tuple[str, str, int]] = []
        try:
            with os.scandir(path) as there:
                for one in there:
                    if one.name in _RESTS_ON and one.is_file(follow_symlinks=False):
                        state = one.stat(follow_symlinks=False)
                        seals[one.name] = f"{one.name}:{state.st_mtime_ns}:{state.st_size}:{state.st_ino}"
                    elif one.name not in _HELD and one.name[0] != "." and one.is_dir(follow_symlinks=False):
                        below.append((one.name if name == "." else f"{name}/{one.name}", one.path, depth + 1))
        except OSError:
            continue  # gone meanwhile, or not ours to read
        if any(kind in seals for kind in _KINDS):
            yield name, Path(path), {one: seals[one] for one in _RESTS_ON if one in seals}
        if depth < DEEPEST and RUN not in seals:
            waiting += below


def _brief(name: str, path: Path, seals: dict[str, str], seal: str) -> Entry:
    """What ``run.json`` says at once."""
    kind = next(kind for file, kind in _KINDS.items() if file in seals)
    about = _object(path / RUN) if RUN in seals else {}
    raw = about.get("study")
    study: dict[str, Any] = raw if isinstance(raw, dict) else {}
    title = str(study.get("title") or study.get("name") or (path.name if name == "." else name.rpartition("/")[2]))
    parts = [study.get("name"), study.get("metric"), *(about.get("cells") or []), *(about.get("servers") or {})]
    words = " ".join(dict.fromkeys(str(one) for one in parts if one))
    began = about.get("started_utc") or _object(path / "reproduction.json").get("reproduction", {}).get("began", "")
    return Entry(name, kind, seal, title, words, str(began), str(about.get("state") or ""))


def _object(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}  # whoever opens it is told
    return document if isinstance(document, dict) else {}
