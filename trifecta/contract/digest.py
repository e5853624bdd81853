"""SHA-256 of a file, as ``sha256sum`` has it: what manifests, archives and facts hold of it."""

from __future__ import annotations

import hashlib
from pathlib import Path


def sha256_of(path: Path) -> str:
    """Of its content, in hexadecimal digits; OSError when it cannot be read."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
