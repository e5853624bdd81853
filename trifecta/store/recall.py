"""What the files of a large run held when this user read them last, so that nobody reads all of them again.

A digest counts while a file's device, number, size and both times are what they were, as in git's index: who edits a
file moves the time of its change (st_ctime of stat(2)), which no program sets. What was changed shortly before it was
read is not noted, because the clock of a file system may tick slowly (gitformat-index(5): entries that are racy).
"""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path

from trifecta.store import files, manifest
from trifecta.store.cache import cache_folder

FOLDER = "digests"
_WORTH_BYTES = 50_000_000  # in a run with less, reading takes no time that anybody notices
_SETTLED_NS = 2_000_000_000
_KEPT_S = 90 * 86_400.0


def load(run: Path) -> None:
    """Have `manifest.digest` know what is noted of a run; what does not fit its files any more does not count there."""
    try:
        noted = json.loads(_file(run).read_text(encoding="utf-8"))
        for name, (state, digest) in noted.items():
            manifest.recall(run / name, tuple(map(int, state)), str(digest))
    except (OSError, ValueError, TypeError, AttributeError):
        return  # it is read anew, and noted anew


def keep(run: Path) -> None:
    """Note what this process knows of a run's files; nothing of a small run, nor where the cache cannot be written."""
    now = time.time_ns()
    known = {name: one for name in manifest.Manifest(run).entries() if (one := manifest.recalled(run / name))}
    settled = {
        name: (state, digest)
        for name, (state, digest) in known.items()
        if max(state.mtime_ns, state.ctime_ns) < now - _SETTLED_NS
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
