"""A folder of which an image is built from nothing: the engine with its libraries, and what a Dockerfile says of it."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

from trifecta.lab.containers.image import image_archive
from trifecta.lab.engine import find_engine


def write(folder: Path, more: str) -> None:
    """Write it; ``more`` are lines of the Dockerfile."""
    with tarfile.open(fileobj=io.BytesIO(image_archive(find_engine()))) as tar:
        for entry in tar:
            content = tar.extractfile(entry) if entry.isfile() else None
            if content is not None:
                path = folder / entry.name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content.read())
                path.chmod(entry.mode)
    (folder / "Dockerfile").write_text(f"FROM scratch\nCOPY . /\n{more}")
