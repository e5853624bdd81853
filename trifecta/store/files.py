"""Files that are there whole or not at all, and disk errors in one clear line."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trifecta.design.errors import CannotError, UserError

TEMPORARY_PREFIX = ".tmp-"
_REMEDIES = {
    errno.ENOSPC: "the disk is full; free some space, then run this again, or `trifecta resume` a run",
    errno.EDQUOT: "the disk quota is used up; free some space, then run this again, or `trifecta resume` a run",
    errno.EROFS: "the file system is read-only; choose another folder with --out",
    errno.EACCES: "permission denied; choose another folder with --out",
    errno.EPERM: "not permitted; choose another folder with --out",
    errno.EIO: "the disk reports an input/output error",
}


def full(error: OSError) -> CannotError | None:
    """What to say of a disk that is full or cannot be written at all, wherever it was met; None of another error."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
        return None
    return CannotError(f"cannot write {error.filename or 'a file'}: {_REMEDIES[error.errno]}")


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn what a full, read-only or forbidden disk raises into a CannotError that names ``path``."""
    try:
        yield
    except OSError as error:
        if error.errno in _REMEDIES:
            raise CannotError(f"cannot write {path}: {_REMEDIES[error.errno]}") from error
        raise


def make_empty(folder: Path) -> None:
    """Make a folder, or take one that is empty; UserError for one that holds something, CannotError on a bad disk.

    Drafts of ours, left by a process that was killed, count for nothing.
    """
    with disk_errors(folder):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            taken = any(not entry.name.startswith(TEMPORARY_PREFIX) for entry in folder.iterdir())
        except (FileExistsError, NotADirectoryError) as error:
            raise UserError(f"{folder} is not a folder; choose another with --out") from error
        except FileNotFoundError as error:  # below /proc, say
            raise CannotError(f"{folder} cannot be made ({error.strerror}); choose another with --out") from error
    if taken:
        raise UserError(f"{folder} is not empty; choose another with --out, or `trifecta resume {folder}`")


def temporary(path: Path) -> Path:
    """The name a file has until it is whole."""
    return path.with_name(TEMPORARY_PREFIX + path.name)


def sync(path: Path) -> None:
    """Bring a file, or a folder's list of names, to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_all(paths: Iterable[Path]) -> None:
    """Bring several to the disk at the same time: they share the waits for the journal."""
    waiting = list(paths)
    with ThreadPoolExecutor(max_workers=min(16, max(1, len(waiting)))) as pool:
        for _ in pool.map(sync, waiting):
            pass


def replace_synced(temporary_path: Path, path: Path) -> None:
    """Give a synced temporary file its name, and sync the folder."""
    temporary_path.replace(path)
    sync(path.parent)


@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """The name to write a file under; the file gets its own at the end. After an error nothing is left of it."""
    draft = temporary(path)
    with disk_errors(path):
        try:
            yield draft
            sync(draft)
            replace_synced(draft, path)
        except BaseException:
            draft.unlink(missing_ok=True)  # a half is of no use, and the disk may be full
            raise


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    with draft_of(path) as draft:
        draft.write_text(text, encoding="utf-8")


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    with draft_of(path) as draft:
        draft.write_bytes(content)


def to_json(value: Any) -> str:
    """Compact JSON with stable key order; refuses NaN, which is not JSON (RFC 8259)."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True, allow_nan=False, ensure_ascii=False)
