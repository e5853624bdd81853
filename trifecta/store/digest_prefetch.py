"""The digests of a run's files, on all processors at once, for whoever asks for them next."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from trifecta.store import digest_cache
from trifecta.store.digest_cache import digest
from trifecta.store.manifest import Manifest

_ENOUGH = 4  # threads; more wait for the disk


def read(run: Path) -> None:
    """Read every file that the manifest lists: `manifest.check` of this process then knows what each holds.

    It judges nothing, and what cannot be read is left to the check. Not before a lab is entered: it has threads.
    """
    manifest = Manifest(run)
    if not manifest.exists():
        return
    digest_cache.load(run)
    paths = [run / name for name in manifest.entries()]
    with ThreadPoolExecutor(min(_ENOUGH, os.cpu_count() or 1)) as pool:
        for _ in pool.map(_read, _largest_first(paths)):
            pass


def _largest_first(paths: Iterable[Path]) -> list[Path]:
    """So that no thread is left with a large one at the end."""
    sizes = {path: path.stat().st_size for path in paths if path.is_file()}
    return sorted(sizes, key=lambda path: -sizes[path])


def _read(path: Path) -> None:
    with suppress(OSError):
        digest(path)
