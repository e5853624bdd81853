"""Film strips from a run's folder: read, made small enough to be embedded, and how complete the page was when."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trifecta.analysis import speed_index
from trifecta.report.figures.filmstrip import Picture, Strip, shown_at, times
from trifecta.report.figures.page_waterfall import Marks

_NAME = re.compile(r"(\d{1,9})\.jpg")
_WIDTH, _QUALITY = 200, 55
MOST_BYTES = 1_500_000  # of all pictures of a report, before base64


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
    found = [(int(match[1]) * 1e6, file) for file in folder.iterdir() if (match := _NAME.fullmatch(file.name))]
    return Film(folder, sorted(found)) if found else None


def strip(film: Film, marks: Marks, high: float) -> Strip | None:
    """The pictures that a strip until ``high`` ns shows, made small; None when no picture can be read."""
    wanted = [Picture(at, b"") for at, _ in film.frames]
    shown = {picture.at_ns for at in times(high) if (picture := shown_at(wanted, at)) is not None}
    pictures, shape = [], (0, 0)
    for at, file in film.frames:
        if at in shown and (made := _small(file)) is not None:
            pictures.append(Picture(at, made[0]))
            shape = made[1]
    return Strip(pictures, marks, shape) if pictures else None


def _open(file: Path) -> Any:
    """A picture, or None when it is none: a browser that was killed may have left half of one."""
    from PIL import Image

    try:
        with Image.open(file, formats=("JPEG",)) as image:
            image.draft("RGB", (400, 400))
            return image.convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None


def _small(file: Path) -> tuple[bytes, tuple[int, int]] | None:
    image = _open(file)
    if image is None:
        return None
    wide = min(_WIDTH, image.width)
    small = image.resize((wide, max(1, round(image.height * wide / image.width))))
    buffer = io.BytesIO()
    small.save(buffer, "JPEG", quality=_QUALITY, optimize=True)
    return buffer.getvalue(), small.size


def progress(film: Film) -> list[tuple[float, float]]:
    """(ns, share) of the curve that Speed Index is the area above; empty when a picture cannot be read."""
    if any(_open(file) is None for _, file in film.frames):
        return []
    pictures = [(round(at), file.read_bytes()) for at, file in film.frames]
    return [(float(at), share) for at, share in speed_index.progress(pictures)]
