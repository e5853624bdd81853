"""Film strips, made small enough to be embedded."""

from __future__ import annotations

import io
from pathlib import Path

from trifecta.conclude.visits import films
from trifecta.conclude.visits.films import Film
from trifecta.report.figures.filmstrip import Picture, Strip, shown_at, times
from trifecta.report.figures.page_waterfall import Marks

_WIDTH, _QUALITY = 200, 55
MOST_BYTES = 1_500_000  # of all pictures of a report, before base64


def strip(film: Film, marks: Marks, high: float) -> Strip | None:
    """The pictures that a strip until ``high`` ns shows, made small; None when no picture can be read."""
    wanted = [Picture(at, b"") for at, _ in film.frames]
    shown = {picture.at_ns for at in times(high) if (picture := shown_at(wanted, at)) is not None}
    pictures, shape = [], (0, 0)
    for at, file in film.frames:
        if at in shown and (thumbnail := _small(file)) is not None:
            pictures.append(Picture(at, thumbnail[0]))
            shape = thumbnail[1]
    return Strip(pictures, marks, shape) if pictures else None


def _small(file: Path) -> tuple[bytes, tuple[int, int]] | None:
    image = films.picture(file)
    if image is None:
        return None
    wide = min(_WIDTH, image.width)
    small = image.resize((wide, max(1, round(image.height * wide / image.width))))
    buffer = io.BytesIO()
    small.save(buffer, "JPEG", quality=_QUALITY, optimize=True)
    return buffer.getvalue(), small.size
