"""Speed Index and visual completeness of a film strip.

Speed Index (WebPageTest, Lighthouse) is the area above the curve of visual progress: how long, on average, a piece of
the viewport had not its final look. Progress is taken from colour histograms, as Lighthouse's ``speedline`` does: the
share of the pixels' move from the first picture's histogram to the last one's that a picture has made. Pixels that
are (nearly) white are nothing, as there.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Histogram = NDArray[np.int64]

_WHITE = 249  # from here on a channel is white, as in speedline
_COMPLETE = 0.999  # what remains is noise of the picture's coding


def visual(frames: Sequence[tuple[int, bytes]]) -> tuple[int, int] | None:
    """Speed Index and the time of visual completeness in ns after the navigation began; None without a picture.

    ``frames``: times in ns after the navigation began, and pictures. One from before it counts as the first look; else
    that is white.
    """
    curve = progress(frames)
    if not curve:
        return None
    index = 0.0
    at, reached = 0, 0.0
    for time, share in curve:
        index += (time - at) * (1 - reached)
        at, reached = time, share
    return round(index), next(time for time, share in curve if share >= _COMPLETE)


def progress(frames: Sequence[tuple[int, bytes]]) -> list[tuple[int, float]]:
    """The curve that Speed Index is the area above: times in ns, and the share of the way that was made by then."""
    if not frames:
        return []
    ordered = sorted(frames, key=lambda frame: frame[0])
    times = [max(0, at) for at, _ in ordered]
    histograms = [_histogram(picture) for _, picture in ordered]
    first = histograms[0] * 0
    before = [number for number, (at, _) in enumerate(ordered) if at <= 0]
    if before:
        first = histograms[before[-1]]
        times, histograms = times[before[-1] :], histograms[before[-1] :]
    shares = [_progress(first, histogram, histograms[-1]) for histogram in histograms]
    return list(zip(times, shares, strict=True))


def _histogram(picture: bytes) -> Histogram:
    """Counts by channel and value of the pixels that are not white."""
    import numpy as np
    from PIL import Image

    with Image.open(io.BytesIO(picture)) as image:
        pixels = np.asarray(image.convert("RGB")).reshape(-1, 3)
    coloured = pixels[(pixels < _WHITE).any(axis=1)]
    return np.stack([np.bincount(coloured[:, channel], minlength=256) for channel in range(3)])


def _progress(first: Histogram, current: Histogram, last: Histogram) -> float:
    to_go = abs(last - first)
    total = int(to_go.sum())
    done = int(_least(abs(current - first), to_go).sum())
    return done / total if total else 1.0


def _least(histogram: Histogram, other: Histogram) -> Histogram:
    import numpy as np

    return np.minimum(histogram, other)
