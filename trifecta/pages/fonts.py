"""Web fonts for generated pages: Latin subsets of DejaVu, which matplotlib brings, as WOFF2.

DejaVu may be changed and passed on (Bitstream Vera licence, LICENSE_DEJAVU beside the files).
"""

from __future__ import annotations

import io
import logging
from pathlib import Path

FACES = {
    "sans": "DejaVuSans", "sans-bold": "DejaVuSans-Bold", "serif": "DejaVuSerif", "serif-bold": "DejaVuSerif-Bold",
    "mono": "DejaVuSansMono", "sans-italic": "DejaVuSans-Oblique",
}  # fmt: skip
_CHARACTERS = [*range(0x20, 0x7F), *range(0xA0, 0x250), *range(0x2010, 0x2040), 0x20AC, 0x2122, 0x2190, 0x2192]


def web_font(face: str) -> bytes:
    """A face of ``FACES`` as WOFF2 (W3C), Latin letters only."""
    import matplotlib
    from fontTools import subset

    # It warns that hinting tables of no web font are dropped.
    logging.getLogger("fontTools").setLevel(logging.ERROR)
    file = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / f"{FACES[face]}.ttf"
    options = subset.Options(flavor="woff2", hinting=False, recalc_timestamp=False, notdef_outline=True)
    with subset.load_font(str(file), options) as font:
        cutter = subset.Subsetter(options)
        cutter.populate(unicodes=_CHARACTERS)
        cutter.subset(font)
        out = io.BytesIO()
        font.flavor = "woff2"
        font.save(out)
    return out.getvalue()
