"""The pictures that a browser's visits left in a run's folder, and how complete the page was when."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trifecta.analysis import speed_index

_NAME = re.compile(r"(\d{1,9})\.jpg")


@dataclass(frozen=True)
class Film:
    """All pictures of a visit: (ns since the navigation began, file)."""

    folder: Path
    frames: Sequence[tuple[float, Path]]


def find(run: Path, trial: str, visit: int) -> Film | None:
    """The film strip of a visit, if one was kept."""
    folder = run / "frames" / trial / str(visit)
    if not folder.is_dir():
        return None
    frames = [(int(match[1]) * 1e6, file) for file in folder.iterdir() if (match := _NAME.fullmatch(file.name))]
    return Film(folder, sorted(frames)) if frames else None


def picture(file: Path) -> Any:
    """A picture, or None when it is none: a browser that was killed may have left half of one."""
    from PIL import Image

    try:
        with Image.open(file, formats=("JPEG",)) as image:
            image.draft("RGB", (400, 400))
            return image.convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None


def progress(film: Film) -> list[tuple[float, float]]:
    """(ns, share) of the curve that Speed Index is the area above; empty when a picture cannot be read."""
    if any(picture(file) is None for _, file in film.frames):
        return []
    pictures = [(round(at), file.read_bytes()) for at, file in film.frames]
    return [(float(at), share) for at, share in speed_index.progress(pictures)]
