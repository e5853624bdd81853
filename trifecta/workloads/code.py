"""Which code measured: digests of this package and of the engine. A version number outlives many changes."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from trifecta.contract.digest import sha256_of

_PACKAGE = Path(__file__).resolve().parents[1]
_DIGITS = 12  # of 64: enough to distinguish two builds, short enough for a line


def digests(engine: Path) -> dict[str, str]:
    """The first digits of SHA-256 of the package, all of its files with their names, and of the engine's binary."""
    return {"trifecta": of_folder(_PACKAGE), "engine": of_file(engine)}


@cache
def of_folder(folder: Path) -> str:
    """Of every file below it but what Python compiled; the order of the file system does not matter."""
    digest = hashlib.sha256()
    for file in sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"):
        digest.update(f"{file.relative_to(folder).as_posix()}\0{of_file(file)}\0".encode())
    return digest.hexdigest()[:_DIGITS]


@cache
def of_file(file: Path) -> str:
    """Of its content."""
    return sha256_of(file)[:_DIGITS]
