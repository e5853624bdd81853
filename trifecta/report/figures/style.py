"""What a protocol looks like, everywhere: colour, marker and line style together, so that colour never stands alone.

Figures are drawn with stand-in colours that no design would use; ``svg.py`` turns each into a CSS variable, so the page
decides what it looks like in light, in dark and on paper. The real values are in ``templates/report.css``: Okabe and
Ito's vermillion, blue and bluish green, lightened for a dark page.
"""

from __future__ import annotations

from dataclasses import dataclass

from trifecta.design.model import AA_SUFFIX
from trifecta.report import numbers

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
}


@dataclass(frozen=True)
class Look:
    """How an arm is drawn: a stand-in colour, a matplotlib marker, a dash pattern (on, off, ... in points)."""

    colour: str
    marker: str
    dashes: tuple[float, ...]

    @property
    def line(self) -> str | tuple[int, tuple[float, ...]]:
        """The line style as matplotlib takes it."""
        return (0, self.dashes) if self.dashes else "-"


_LOOKS = {
    "h1": Look(_PROTOCOL_STAND_IN["h1"], "^", (1.2, 1.6)),
    "h2": Look(_PROTOCOL_STAND_IN["h2"], "s", (5.0, 2.0)),
    "h3": Look(_PROTOCOL_STAND_IN["h3"], "o", ()),
}


def look(arm: str) -> Look:
    """The look of an arm; the baseline's second run is grey."""
    if arm.endswith(AA_SUFFIX):
        return Look(OTHER, "D", (3.0, 1.5, 1.0, 1.5))
    return _LOOKS.get(arm, Look(OTHER, "D", (3.0, 1.5, 1.0, 1.5)))


def name(arm: str) -> str:
    """``HTTP/3``; the baseline's second run is ``HTTP/2 again``."""
    return numbers.protocol(arm)
