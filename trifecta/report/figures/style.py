"""What an arm looks like, everywhere: colour, marker and line style together, so that colour never stands alone.

Figures are drawn with stand-in colours that no design would use; ``svg.py`` turns each into a CSS variable, so the page
decides what it looks like in light, in dark and on paper. The real values are in ``templates/report.css``: Okabe and
Ito's vermillion, blue and bluish green, lightened for a dark page; other levels than protocols have others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypedDict

from trifecta.design import naming, numbers
from trifecta.design.model import AA_SUFFIX

INK = "#010001"
MUTED = "#010002"
GRID = "#010003"
PAPER = "#010004"
BAND = "#010005"
TCP = "#010006"
TLS = "#010007"
QUIC = "#010008"
WAIT = "#010009"
TRANSFER = "#01000a"
SEND = "#01000b"
LATE = "#01000c"
CLIENT = "#01000d"
SERVER = "#01000e"
PART_PROTOCOL = "#01000f"
PART_SERVER = "#010010"
PART_CLIENT = "#010011"
PART_CROSSED = "#010012"
PART_NOISE = "#010013"
DNS = "#010014"
QUEUED = "#010015"
GOOD = "#010016"
BAD = "#010017"

_LEVEL_STAND_INS = tuple(f"#03000{number}" for number in range(1, 7))
_PROTOCOL_STAND_IN = {"h1": "#020001", "h2": "#020002", "h3": "#020003"}
OTHER = "#020004"

CSS_VARIABLES = {
    INK: "--ink",
    MUTED: "--muted",
    GRID: "--grid",
    PAPER: "--paper",
    BAND: "--band",
    TCP: "--phase-tcp",
    TLS: "--phase-tls",
    QUIC: "--phase-quic",
    WAIT: "--phase-wait",
    TRANSFER: "--phase-transfer",
    SEND: "--phase-send",
    LATE: "--phase-late",
    CLIENT: "--cpu-client",
    SERVER: "--cpu-server",
    PART_PROTOCOL: "--part-protocol",
    PART_SERVER: "--part-server",
    PART_CLIENT: "--part-client",
    PART_CROSSED: "--part-crossed",
    PART_NOISE: "--part-noise",
    DNS: "--phase-dns",
    QUEUED: "--phase-queued",
    GOOD: "--good",
    BAD: "--bad",
    "#020001": "--h1",
    "#020002": "--h2",
    "#020003": "--h3",
    OTHER: "--other",
    **{colour: f"--level-{number}" for number, colour in enumerate(_LEVEL_STAND_INS, start=1)},
}


class Marked(TypedDict):
    """A line with markers, as the options of ``Axes.plot``."""

    linestyle: str | tuple[int, tuple[float, ...]]
    color: str
    marker: str


@dataclass(frozen=True)
class ArmStyle:
    """How an arm is drawn: a stand-in colour, a matplotlib marker, a dash pattern (on, off, ... in points)."""

    colour: str
    marker: str
    dashes: tuple[float, ...]

    @property
    def line(self) -> str | tuple[int, tuple[float, ...]]:
        """The line style as matplotlib takes it."""
        return (0, self.dashes) if self.dashes else "-"

    @property
    def marked(self) -> Marked:
        """A line with markers."""
        return {"linestyle": self.line, "color": self.colour, "marker": self.marker}


_LOOKS = {
    "h1": ArmStyle(_PROTOCOL_STAND_IN["h1"], "^", (1.2, 1.6)),
    "h2": ArmStyle(_PROTOCOL_STAND_IN["h2"], "s", (5.0, 2.0)),
    "h3": ArmStyle(_PROTOCOL_STAND_IN["h3"], "o", ()),
}


_MARKERS = ("o", "s", "^", "v", "P", "X")
_DASHES: tuple[tuple[float, ...], ...] = ((), (5.0, 2.0), (1.2, 1.6), (7.0, 1.6, 1.2, 1.6), (3.0, 1.2), (9.0, 2.4))
_LEVELS = tuple(
    ArmStyle(colour, marker, dashes) for colour, marker, dashes in zip(_LEVEL_STAND_INS, _MARKERS, _DASHES, strict=True)
)
_RETEST = ArmStyle(OTHER, "D", (3.0, 1.5, 1.0, 1.5))


def arm_style(arm: str) -> ArmStyle:
    """The look of an arm: of a protocol its own, of another level by its place; the baseline's second run is grey."""
    if arm.endswith(AA_SUFFIX):
        return _RETEST
    place = naming.place(arm)
    if place is None:
        return _LOOKS.get(arm, _RETEST)
    return level(place)


def level(place: int) -> ArmStyle:
    """The look of the level with this number, from 0, of a factor."""
    round_, number = divmod(place, len(_LEVELS))
    own = _LEVELS[number]
    return own if not round_ else replace(own, marker=_LEVELS[(number + round_) % len(_LEVELS)].marker)


def mark(arm: str) -> int:
    """The number of the sign that stands beside an arm in text (``tables.html.j2``): protocols 1 to 3, then levels."""
    place = naming.place(arm)
    return {"h1": 1, "h2": 2, "h3": 3}.get(arm, 0) if place is None else 4 + place % len(_LEVELS)


def name(arm: str) -> str:
    """``HTTP/3``; the baseline's second run is ``HTTP/2 again``."""
    return numbers.protocol(arm)
