"""Files that are there whole or not at all, and disk errors in one clear line."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trifecta.design.errors import CannotError, UserError

TEMPORARY_PREFIX = ".tmp-"
_PAGES = 16_384  # less than that is nothing: what fails then fails for it
TRIAL_BYTES = 100_000  # what a trial leaves, and a little more
_RETRY_HINT = "free some space, or choose another folder with --out, then run this again, or `trifecta resume` a run"
_REMEDIES = {
    errno.ENOSPC: f"the disk is full; {_RETRY_HINT}",
    errno.EDQUOT: f"the disk quota is used up; {_RETRY_HINT}",
    errno.EROFS: "the file system is read-only; choose another folder with --out",
    errno.EACCES: "permission denied; choose another folder with --out",
    errno.EPERM: "not permitted; choose another folder with --out",
    errno.EIO: "the disk reports an input/output error",
}


def full(error: OSError, folder: Path | None = None) -> CannotError | None:
    """What to say of a disk that is full or cannot be written at all, wherever it was met; None of another error.

    ``folder``: what was written to, where the error itself names no file.
    """
    number = error.errno
    if isinstance(error, shutil.Error) and "[Errno 28]" in str(error):  # of a whole tree, with a text for each file
        number = errno.ENOSPC
    if number not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
        return None
    return CannotError(f"cannot write {error.filename or folder or 'a file'}: {_REMEDIES[number]}")


def free_bytes(folder: Path) -> int | None:
    """The room on the disk of a folder; None where it does not say."""
    try:
        space = os.statvfs(folder)
    except OSError:
        return None
    if space.f_files and not space.f_favail:
        return 0  # every name is taken
    return space.f_bavail * space.f_frsize


def check_room(folder: Path, needed: int = TRIAL_BYTES) -> None:
    """CannotError where the disk of a folder has no room for so many octets."""
    free = free_bytes(folder)
    if free is not None and free < needed:
        sentence = f"{free // 1000} kB are free, and a trial needs {needed // 1000} kB"
        raise CannotError(f"cannot write {folder}: the disk is full ({sentence}); {_RETRY_HINT}")


@contextmanager
def full_disk(folder: Path) -> Iterator[None]:
    """Name a full disk where it is why something else fails: a server that cannot start, a copy that stops."""
    try:
        yield
    except OSError as error:
        disk_error = full(error, folder)
        if disk_error is None:
            raise
        raise disk_error from error
    except CannotError as error:
        free = free_bytes(folder)
        if free is None or free >= _PAGES or "disk" in str(error):
            raise
        raise CannotError(f"cannot write {folder}: {_REMEDIES[errno.ENOSPC]}") from error


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


def make_with(folder: Path, name: str, text: str) -> Path:
    """Make a folder, or take an empty one, and keep a text there in a file; the folder in full."""
    folder = folder.resolve()
    make_empty(folder)
    with disk_errors(folder):
        write_text(folder / name, text)
    return folder


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
    if len(waiting) == 1:
        sync(waiting[0])
        return
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
    with drafts_of([path]) as (draft,):
        yield draft


@contextmanager
def drafts_of(
    paths: Sequence[Path], announce: Callable[[Sequence[Path]], None] | None = None
) -> Iterator[Sequence[Path]]:
    """As `draft_of`, for several files of one folder: they share waits for the disk, and get their names in turn.

    ``announce`` is called with the drafts when they are on the disk, before they get their names; from then on they
    are kept.
    """
    drafts, announced = [temporary(path) for path in paths], False
    with disk_errors(paths[0]):
        try:
            yield drafts
            sync_all(drafts)
            if announce is not None:
                announce(drafts)
                announced = True
            for draft, path in zip(drafts, paths, strict=True):
                draft.replace(path)
            sync(paths[0].parent)
        except BaseException:
            if not announced:
                for draft in drafts:
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


def to_document(value: Any) -> str:
    """JSON that a person can read, with a line end."""
    return json.dumps(value, indent=2) + "\n"


def to_json(value: Any) -> str:
    """Compact JSON with stable key order; refuses NaN, which is not JSON (RFC 8259)."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True, allow_nan=False, ensure_ascii=False)
