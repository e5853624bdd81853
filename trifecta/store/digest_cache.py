"""Digests of files, each read once: by a process as long as nothing touches it, and of large runs by all of a user's.

A digest counts while a file's device, number, size and both times are what they were, as in git's index: who edits a
file moves the time of its change (st_ctime of stat(2)), which no program sets. What was changed shortly before it was
read is not noted, because the clock of a file system may tick slowly (gitformat-index(5): entries that are racy).
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from trifecta.contract.digest import sha256_of
from trifecta.store import files
from trifecta.store.cache import cache_folder

FOLDER = "digests"
_WORTH_BYTES = 50_000_000  # in a run with less, reading takes no time that anybody notices
_SETTLED_NS = 2_000_000_000
_KEPT_S = 90 * 86_400.0


class State(NamedTuple):
    """What changes of a file whenever its content does (stat(2)); times in ns."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    device: int


_hashed: dict[Path, tuple[State, str]] = {}  # of this process, and what `load` found


def digest(path: Path) -> str:
    """SHA-256 of a file as it is now."""
    now = path.stat()
    state = State(now.st_size, now.st_mtime_ns, now.st_ctime_ns, now.st_ino, now.st_dev)
    known = _hashed.get(path)
    if known is None or known[0] != state:
        known = _hashed[path] = state, sha256_of(path)
    return known[1]


def load(run: Path) -> None:
    """Have `digest` know what is noted of a run; what does not fit its files any more does not count there."""
    try:
        noted = json.loads(_file(run).read_text(encoding="utf-8"))
        for name, (state, known) in noted.items():
            _hashed.setdefault(run / name, (State(*map(int, state)), str(known)))
    except (OSError, ValueError, TypeError, AttributeError):
        return  # it is read anew, and noted anew


def keep(run: Path, names: Iterable[str]) -> None:
    """Note what this process knows of a run's files; nothing of a small run, nor where the cache cannot be written."""
    now = time.time_ns()
    settled = {
        name: known
        for name in names
        if (known := _hashed.get(run / name)) and max(known[0].mtime_ns, known[0].ctime_ns) < now - _SETTLED_NS
    }
    if sum(state.size for state, _ in settled.values()) < _WORTH_BYTES:
        return
    text = json.dumps(settled)
    file = _file(run)
    try:
        if file.exists() and file.read_text(encoding="utf-8") == text:
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        for other in file.parent.iterdir():  # of runs that nobody has opened for long
            if other.stat().st_mtime < time.time() - _KEPT_S:
                other.unlink(missing_ok=True)
        files.write_text(file, text)
    except OSError:
        return


def _file(run: Path) -> Path:
    return cache_folder() / FOLDER / f"{hashlib.sha256(str(run.resolve()).encode()).hexdigest()[:32]}.json"
