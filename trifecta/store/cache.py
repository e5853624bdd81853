"""Trifecta's own cache: a folder in it is there whole, of the right version, or it does not count."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from trifecta.design.errors import CannotError

CACHE_VARIABLE = "TRIFECTA_CACHE"
STAMP = ".whole"
_PARTIAL = ".partial-"


def cache_folder() -> Path:
    """Where what was fetched or made once lives: ``TRIFECTA_CACHE``, or the user's (XDG base directories)."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "trifecta"


def digest_of(files: Iterable[Path], *words: str) -> str:
    """SHA-256 over the content of ``files`` and over ``words``: what an installation was made from."""
    total = hashlib.sha256()
    for piece in [*(file.read_bytes() for file in files), *(word.encode() for word in words)]:
        total.update(hashlib.sha256(piece).digest())
    return total.hexdigest()


def is_whole(folder: Path, digest: str) -> bool:
    """Whether ``folder`` was completed from just this."""
    try:
        return (folder / STAMP).read_text(encoding="ascii") == digest
    except (OSError, UnicodeDecodeError):
        return False


def make_whole(folder: Path, digest: str, fill: Callable[[Path], None], say: Callable[[str], None]) -> None:
    """Let ``fill`` work in a new folder beside ``folder``, then put that in its place; on any error all is as before.

    One process at a time: what an installation that was killed left behind is removed by the next. CannotError when
    the cache cannot be written.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder, say):
            for left in folder.parent.glob(f".{folder.name}{_PARTIAL}*"):
                shutil.rmtree(left)
            partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}{_PARTIAL}", dir=folder.parent))
            try:
                partial.chmod(0o755)  # the cache may be shared; mkdtemp's 0700 would shut its other users out
                fill(partial)
                (partial / STAMP).write_text(digest, encoding="ascii")
                os.sync()  # the rename must not reach the disk before what it names
                _replace(folder, partial)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
    except OSError as error:
        raise CannotError(
            f"cannot complete {folder} ({error}); make room, or name another cache with TRIFECTA_CACHE"
        ) from error


@contextmanager
def locked(folder: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of ``folder``; the kernel lets go of it when this process ends, however it ends."""
    with (folder.parent / f".{folder.name}.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another installation of {folder.name} to end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _replace(folder: Path, partial: Path) -> None:
    """Put ``partial`` in the place of ``folder``: rename(2) replaces no folder with content, so that one goes aside."""
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}{_PARTIAL}", dir=folder.parent)) / "former"
    try:
        with suppress(FileNotFoundError):
            folder.rename(aside)
        partial.rename(folder)
    finally:
        shutil.rmtree(aside.parent, ignore_errors=True)
