"""Playlists of HLS (RFC 8216): the master playlist that is written here, and what a media playlist says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from trifecta.design.errors import UserError

FRAME_RATE = 25
_DURATION = re.compile(r"#EXTINF:(\d{1,9}(?:\.\d{1,9})?),.*")


@dataclass(frozen=True)
class Rendition:
    """One rung of a ladder, as it was encoded."""

    height: int
    width: int
    asked_bits_per_s: int
    """Of the picture, as in the study."""
    average_bits_per_s: int
    """Of picture and sound, measured."""
    peak_bits_per_s: int
    """Of its largest segment (RFC 8216, section 4.1)."""
    codecs: str
    """RFC 6381."""


def folder_of(rung: int, rendition: Rendition) -> str:
    """Name of a rung's folder, beside the master playlist."""
    return f"{rung}-{rendition.height}p"


def master_text(renditions: Sequence[Rendition], uris: Sequence[str]) -> str:
    """A master playlist (RFC 8216, section 4.3.4), the lowest rung first."""
    lines = ["#EXTM3U", "#EXT-X-VERSION:7", "#EXT-X-INDEPENDENT-SEGMENTS"]
    for rendition, uri in zip(renditions, uris, strict=True):
        attributes = [
            f"BANDWIDTH={rendition.peak_bits_per_s}",
            f"AVERAGE-BANDWIDTH={rendition.average_bits_per_s}",
            f"RESOLUTION={rendition.width}x{rendition.height}",
            f'CODECS="{rendition.codecs}"',
            f"FRAME-RATE={FRAME_RATE}.000",
        ]
        lines += [f"#EXT-X-STREAM-INF:{','.join(attributes)}", uri]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class MediaPlaylist:
    """What a media playlist (RFC 8216, section 4.3.3) names."""

    target_ns: int
    sequence: int
    """Media sequence number of its first segment."""
    segments: tuple[tuple[str, int], ...]
    """URI and length in ns of each."""
    initialization: str | None
    """URI of the initialization section (fMP4)."""
    dated: bool
    """Whether a segment says when it was made (EXT-X-PROGRAM-DATE-TIME)."""
    ended: bool
    """Nothing will be added."""


def read_media_playlist(text: str, name: str) -> MediaPlaylist:
    """Read a media playlist; UserError naming the line. Tags that say nothing of segments are passed over."""
    lines = text.splitlines()
    if not lines or lines[0].strip() != "#EXTM3U":
        raise UserError(f"{name}:1: is not a playlist, #EXTM3U is missing (RFC 8216, section 4.3.1.1)")
    target = sequence = 0
    length: int | None = None
    segments: list[tuple[str, int]] = []
    initialization = None
    dated = ended = False
    for number, raw in enumerate(lines[1:], start=2):
        line = raw.strip()
        tag, _, value = line.partition(":")
        if tag == "#EXTINF":
            length = _nanoseconds(line, name, number)
        elif tag == "#EXT-X-TARGETDURATION":
            target = _as_int(value, name, number) * 1_000_000_000
        elif tag == "#EXT-X-MEDIA-SEQUENCE":
            sequence = _as_int(value, name, number)
        elif tag == "#EXT-X-MAP":
            match = re.search(r'(?:^|,)URI="([^"]+)"', value)
            if not match:
                raise UserError(f"{name}:{number}: EXT-X-MAP has no URI (RFC 8216, section 4.3.2.5)")
            initialization = match[1]
        elif tag == "#EXT-X-PROGRAM-DATE-TIME":
            dated = True
        elif tag == "#EXT-X-ENDLIST":
            ended = True
        elif line and not line.startswith("#"):
            if length is None:
                raise UserError(f"{name}:{number}: a segment without EXTINF (RFC 8216, section 4.3.2.1)")
            segments.append((line, length))
            length = None
    return MediaPlaylist(target, sequence, tuple(segments), initialization, dated, ended)


def _nanoseconds(line: str, name: str, number: int) -> int:
    match = _DURATION.fullmatch(line if "," in line else f"{line},")
    if not match:
        raise UserError(f"{name}:{number}: {line[:60]!r} is not the length of a segment (RFC 8216, section 4.3.2.1)")
    seconds, _, fraction = match[1].partition(".")
    return int(seconds) * 1_000_000_000 + int(fraction.ljust(9, "0"))


def _as_int(value: str, name: str, number: int) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", value.strip()):
        raise UserError(f"{name}:{number}: {value[:40]!r} is not a whole number")
    return int(value)
