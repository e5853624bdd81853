"""qlog files of servers, which outlive trials: each file goes to the trial whose connection it tells of."""

from __future__ import annotations

import json
import re
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

from trifecta.store.files import TEMPORARY_PREFIX, temporary
from trifecta.store.run import RunDirectory
from trifecta.trace.qlog import mend

_RECORD = b"\x1e"  # RFC 7464
_NS_PER_MS = 1_000_000
_LEAST_WALL_MS = 1e12  # below, a time is not one since 1970 (in 2001 there was no qlog)
_HEAD_OCTETS = 1 << 16
_RFC_3339 = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,20}))?(Z|[+-]\d\d:\d\d)")


def began_ns(file: Path) -> int | None:
    """CLOCK_REALTIME at which the connection of a qlog file began, where the file says that; formats 0.3 and later."""
    try:
        with file.open("rb") as source:
            head = source.read(_HEAD_OCTETS)
            if head.startswith(_RECORD):
                return _reference(json.loads(head.split(b"\n", 1)[0].removeprefix(_RECORD)).get("trace"))
            source.seek(0)
            document = json.load(source)
        trace = document["traces"][0]
        reference_ns = _reference(trace)
        return reference_ns if reference_ns is not None else _wall(trace["events"][0].get("time"))
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def _reference(trace: Any) -> int | None:
    common = trace.get("common_fields", {}) if isinstance(trace, dict) else {}
    reference_time = common.get("reference_time")
    if isinstance(reference_time, dict):  # as of draft-ietf-quic-qlog-main-schema-11
        reference_time = reference_time.get("wall_clock_time")
        return _since_1970(reference_time) if isinstance(reference_time, str) else None
    return _wall(reference_time)


def _since_1970(text: str) -> int | None:
    """ns of a date and time (RFC 3339), of which Python takes microseconds."""
    match = _RFC_3339.fullmatch(text)
    if not match:
        return None
    try:
        seconds = datetime.fromisoformat(match[1] + match[3].replace("Z", "+00:00"))
    except ValueError:
        return None
    ns = int(seconds.timestamp()) * 1_000_000_000 + int(f"{match[2] or '':0<9}"[:9])
    return None if _wall(ns / _NS_PER_MS) is None else ns


def _wall(value: Any) -> int | None:
    good = isinstance(value, int | float) and not isinstance(value, bool) and _LEAST_WALL_MS <= value < 1e13
    return int(value * _NS_PER_MS) if good else None


class ServerLogs:
    """Where the servers of a run write qlog, and the trials so far. A file without a time is of the latest trial.

    Files get their names, and their lines in the manifest, when the servers are over: until then one may write to a
    connection that it takes for open.
    """

    def __init__(self, run: RunDirectory, *, wanted: bool) -> None:
        """Nothing is written anywhere unless ``wanted``."""
        self._run = run
        self._root = run.path / "qlog"
        self._wanted = wanted
        self._drafts: list[Path] = []
        self._folders: dict[Path, str] = {}
        self._trials: list[tuple[int, str]] = []
        self._of: dict[Path, str | None] = {}

    def folder(self, label: str, program: str) -> Path | None:
        """A server's folder; None: it is not asked to write."""
        if not self._wanted:
            return None
        path = self._root / f"{TEMPORARY_PREFIX}{label}"
        path.mkdir(parents=True, exist_ok=True)
        self._folders[path] = program
        return path

    def begin(self, trial: str, wall_ns: int) -> None:
        """A trial begins; connections before the first one only showed that a server answers."""
        if not self._trials:
            for file in self._files():
                file.unlink()
        self.sort()
        self._trials.append((wall_ns, trial))

    def sort(self, *, over: bool = False) -> None:
        """Put files into the folders of their trials and programs, as drafts: those that were there a trial before;
        all when the servers are ``over``. Those of trials that came to nothing are removed.
        """
        for file in self._files():
            known = file in self._of
            trial = self._of.setdefault(file, self._trial_of(file))
            if not known and not over:
                continue
            if trial is None or not self._run.is_committed(trial):
                file.unlink()
                continue
            folder = self._root / trial / self._folders[file.parent]
            folder.mkdir(parents=True, exist_ok=True)
            if file.suffix == ".sqlog":
                mend(file, "server")
            self._drafts.append(file.rename(temporary(folder / file.name)))

    def close(self) -> None:
        """The servers have ended: what they wrote last."""
        self.sort(over=True)
        self._run.add_files([(one, one.with_name(one.name.removeprefix(TEMPORARY_PREFIX))) for one in self._drafts])
        self._drafts.clear()
        for folder in self._folders:
            shutil.rmtree(folder, ignore_errors=True)
        if self._folders and self._root.is_dir() and not any(self._root.iterdir()):
            self._root.rmdir()

    def _trial_of(self, file: Path) -> str | None:
        began = began_ns(file)
        if began is None:
            return self._trials[-1][1] if self._trials else None
        return next((name for wall_ns, name in reversed(self._trials) if wall_ns <= began), None)

    def _files(self) -> list[Path]:
        return [
            file for folder in self._folders for file in sorted(folder.iterdir()) if file.suffix in (".qlog", ".sqlog")
        ]
