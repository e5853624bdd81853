"""What is kept after a failure: log, configuration, keys, qlog, and a capture of a second attempt."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TypedDict

from trifecta.design.conformance import ConformanceResult, Outcome
from trifecta.store import files

LOG_TAIL_BYTES = 1 << 20
_LARGEST_CONFIGURATION_BYTES = 1 << 20


class SecondAttempt(TypedDict):
    """What came of a second attempt at what had failed."""

    outcome: Outcome
    error: str | None
    reason: str


def safe_name(*parts: str) -> str:
    """A file name made of these parts: adapters come from anywhere, a name never leads out of its folder."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", "-".join(parts)).lstrip(".") or "_"


def private_folder(path: Path) -> Path:
    """Make a folder that only its owner reads: keys and captures lie in it."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def keep_configuration(state: Path, folder: Path) -> None:
    """Copy what an implementation was configured with; sockets and large files are left out."""
    for source in sorted(state.rglob("*")) if state.is_dir() else ():
        if source.is_symlink() or not source.is_file() or source.stat().st_size > _LARGEST_CONFIGURATION_BYTES:
            continue
        target = folder / "configuration" / source.relative_to(state)
        target.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):  # it still runs, and removes files of its own
            shutil.copyfile(source, target)


def keep_log(log: Path, target: Path, start: int = 0) -> None:
    """Copy the end of a log, of what was written since ``start``."""
    if not log.exists():
        return
    with log.open("rb") as file:
        end = file.seek(0, 2)
        file.seek(max(start, end - LOG_TAIL_BYTES))
        target.write_bytes(file.read(LOG_TAIL_BYTES))


def write_result(folder: Path, result: ConformanceResult, second: SecondAttempt | None) -> None:
    """Write the row, and what came of the second attempt, beside the evidence."""
    document = {"result": dataclasses.asdict(result), "second_attempt": second}
    files.write_text(folder / "result.json", json.dumps(document, indent=2, ensure_ascii=False) + "\n")
