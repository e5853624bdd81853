"""Speed Index of film strips whose value is known."""

from __future__ import annotations

import io

import pytest
from PIL import Image, ImageDraw

from trifecta.analysis.speed_index import visual

MS = 1_000_000


def picture(share: float) -> bytes:
    """White, with the left part of it in colour."""
    image = Image.new("RGB", (100, 100), "white")
    if share:
        ImageDraw.Draw(image).rectangle((0, 0, round(100 * share) - 1, 99), fill=(200, 30, 30))
    held = io.BytesIO()
    image.save(held, "PNG")
    return held.getvalue()


@pytest.mark.parametrize(
    ("strip", "index", "complete"),
    [
        ([(-5, 0), (400, 1)], 400, 400),  # at once: when it comes
        ([(0, 0), (200, 0.5), (1000, 1)], 200 + 800 * 0.5, 1000),
        ([(300, 1)], 300, 300),  # what was before is taken for white
        ([(1000, 1), (0, 0), (200, 0.5)], 200 + 800 * 0.5, 1000),  # in any order
        ([(0, 0), (100, 1), (500, 1)], 100, 100),
        ([(0, 0)], 0, 0),  # a page that stays white
    ],
)
def test_known_strips(strip, index, complete):
    assert visual([(at * MS, picture(share)) for at, share in strip]) == (index * MS, complete * MS)


def test_no_picture_no_index():
    assert visual([]) is None
