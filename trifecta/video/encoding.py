"""The renditions of a clip, one file a rung: encoded once, kept in the cache, repeated without encoding again.

A file lasts for a whole number of segments, and where that is possible of frames of sound as well (1,024 samples at
48 kHz), so that repeated it goes on without a step.
"""

from __future__ import annotations

import json
import math
import string
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trifecta.design.errors import CannotError
from trifecta.design.model import VideoWorkload
from trifecta.implementations.server import Unsupported
from trifecta.store.cache import cache_folder, digest_of, is_whole, make_whole
from trifecta.video import ffmpeg
from trifecta.video.clips import Clip, find_clip
from trifecta.video.playlists import FRAME_RATE, Rendition

Say = Callable[[str], None]
_FORMAT = "1"  # of what is made here: a new one makes what is in the cache count as missing
_FACTS = "renditions.json"
_UNIT_LEAST_NS = 15_000_000_000
_UNIT_MOST_NS = 60_000_000_000
_SOUND_BITS_PER_S = 64_000
_ENCODERS = {"h264": ("libx264", "aac"), "vp9": ("libvpx-vp9", "libopus")}


@dataclass(frozen=True)
class Ladder:
    """The renditions of a clip, in files."""

    folder: Path
    clip: str
    kind: str
    licence: str
    codec: str
    segment_ns: int
    unit_ns: int
    """How long a file lasts."""
    renditions: tuple[Rendition, ...]
    ffmpeg: str

    def files(self) -> list[Path]:
        """The file of each rung, the lowest first."""
        return [self.folder / f"{rung}.mp4" for rung in range(len(self.renditions))]


def unit_ns(segment_ns: int) -> int:
    """How long the repeated part is: whole segments, and frames of sound if that is within a minute."""
    # 125 frames of 1,024 samples at 48 kHz are 8/3 s.
    for count in range(1, _UNIT_MOST_NS // segment_ns + 1):
        if (3 * count * segment_ns) % 8_000_000_000 == 0 and count * segment_ns >= _UNIT_LEAST_NS:
            return count * segment_ns
    return math.ceil(_UNIT_LEAST_NS / segment_ns) * segment_ns


def prepare_ladder(workload: VideoWorkload, say: Say, *, least_ns: int | None = None) -> Ladder:
    """The renditions that a workload asks for, from the cache or made now. ``least_ns``: a shorter unit, for tests.

    Unsupported when ffmpeg or the clip is missing.
    """
    ffmpeg.need_encoders(*_ENCODERS[workload.codec])
    clip = find_clip(workload.clip)
    unit = unit_ns(workload.segment_ns) if least_ns is None else least_ns
    inputs = json.dumps([clip.identity, workload.codec, workload.ladder, workload.segment_ns, unit, FRAME_RATE])
    digest = digest_of([], _FORMAT, ffmpeg.version(), inputs)
    folder = cache_folder() / "video" / f"ladder-{clip.name}-{workload.codec}-{digest[:16]}"
    if not is_whole(folder, digest):
        rungs = ", ".join(f"{height}p" for height, _ in workload.ladder)
        say(f"encoding {unit / 1e9:g} s of the clip {clip.name} ({rungs}); it stays in {folder}")
        make_whole(folder, digest, lambda draft: _fill(draft, clip, workload, unit), say)
    return _read(folder)


def _fill(folder: Path, clip: Clip, workload: VideoWorkload, unit: int) -> None:
    encode(clip, workload, unit, folder)
    renditions = [
        _measure(folder / f"{rung}.mp4", rate, workload.segment_ns, unit)
        for rung, (_, rate) in enumerate(workload.ladder)
    ]
    facts = {
        "clip": clip.name,
        "kind": clip.kind,
        "licence": clip.licence,
        "codec": workload.codec,
        "segment_ns": workload.segment_ns,
        "unit_ns": unit,
        "renditions": [asdict(rendition) for rendition in renditions],
        "ffmpeg": ffmpeg.version(),
    }
    (folder / _FACTS).write_text(json.dumps(facts, indent=2), encoding="utf-8")


def encode(clip: Clip, workload: VideoWorkload, unit: int, folder: Path) -> None:
    """Encode all rungs in one go: the clip is read and decoded once."""
    labels = string.ascii_lowercase[: len(workload.ladder)]
    if len(labels) != len(workload.ladder):
        raise CannotError(f"a ladder of {len(workload.ladder)} rungs; {len(string.ascii_lowercase)} can be encoded")
    parts = [f"[0:v:0]fps={FRAME_RATE},format=yuv420p,split={len(labels)}{''.join(f'[{each}]' for each in labels)}"]
    parts += [
        f"[{label}]scale=-2:{height},setsar=1[{label}{label}]"
        for label, (height, _) in zip(labels, workload.ladder, strict=True)
    ]
    arguments: list[str | Path] = [*clip.inputs, "-filter_complex", ";".join(parts)]
    for rung, (label, (_, rate)) in enumerate(zip(labels, workload.ladder, strict=True)):
        arguments += ["-map", f"[{label}{label}]"]
        if clip.sound:
            arguments += ["-map", clip.sound, *_sound(workload.codec)]
        arguments += ["-t", f"{unit / 1e9:.3f}", *_picture(workload.codec, rate, workload.segment_ns)]
        arguments += [*ffmpeg.BIT_EXACT, folder / f"{rung}.mp4"]
    ffmpeg.run(*arguments, what="encode the clip")


def _picture(codec: str, rate: int, segment_ns: int) -> list[str]:
    # The rate is kept over a second at most (the buffer), so that each segment of a rung has about its rung's size;
    # a key frame begins every segment and stands nowhere else, so that all rungs are cut alike.
    keys = str(round(segment_ns * FRAME_RATE / 1e9))
    shared = ["-b:v", str(rate), "-maxrate", str(rate), "-bufsize", str(rate), "-g", keys]
    if codec == "h264":
        special = ["-c:v", "libx264", "-preset", "veryfast", "-profile:v", "main", "-sc_threshold", "0"]
        return [*special, "-keyint_min", keys, *shared]
    special = ["-c:v", "libvpx-vp9", "-minrate", str(rate), "-deadline", "realtime", "-cpu-used", "8"]
    return [*special, "-row-mt", "1", "-keyint_min", keys, *shared]


def _sound(codec: str) -> list[str]:
    return ["-c:a", _ENCODERS[codec][1], "-ac", "2", "-ar", "48000", "-b:a", str(_SOUND_BITS_PER_S)]


def _measure(path: Path, requested_bits_per_s: int, segment_ns: int, unit: int) -> Rendition:
    """What came out: size of the picture, rates, codecs."""
    entries = "packet=pts_time,size:stream=codec_type,width,height"
    probed = ffmpeg.probe(path, "-show_entries", entries)
    picture = next(stream for stream in probed["streams"] if stream["codec_type"] == "video")
    by_segment: dict[int, int] = defaultdict(int)
    last = unit // segment_ns - 1  # frames of sound neither begin nor end where pictures do
    for packet in probed["packets"]:
        by_segment[max(0, min(last, int(float(packet["pts_time"]) * 1e9 // segment_ns)))] += int(packet["size"])
    return Rendition(
        height=picture["height"],
        width=picture["width"],
        asked_bits_per_s=requested_bits_per_s,
        average_bits_per_s=round(sum(by_segment.values()) * 8e9 / unit),
        peak_bits_per_s=round(max(by_segment.values()) * 8e9 / segment_ns),
        codecs=codecs_of(path.read_bytes()),
    )


def codecs_of(file: bytes) -> str:
    """The codecs of an MP4 file, as RFC 6381 names them, from the boxes that configure its decoders."""
    content = _box(file, b"moov")  # the same letters in the media data mean nothing
    names = []
    avc = content.find(b"avcC")
    vpc = content.find(b"vpcC")
    if avc >= 0 and len(content) >= avc + 8:  # ISO/IEC 14496-15: version, profile, compatibility, level
        names.append("avc1." + content[avc + 5 : avc + 8].hex())
    elif vpc >= 0 and len(content) >= vpc + 11:  # VP Codec ISO Media File Format Binding: flags, profile, level, depth
        profile, level, depth = content[vpc + 8], content[vpc + 9], content[vpc + 10] >> 4
        names.append(f"vp09.{profile:02d}.{level:02d}.{depth:02d}")
    else:
        raise Unsupported("ffmpeg wrote neither H.264 nor VP9; install one that can (Debian's does)")
    if content.find(b"mp4a") >= 0:
        names.append("mp4a.40.2")
    elif content.find(b"Opus") >= 0:
        names.append("opus")
    return ",".join(names)


def _box(file: bytes, wanted: bytes) -> bytes:
    """The content of a box of the top level (ISO/IEC 14496-12, section 4.2); empty when it is not there."""
    at = 0
    while at + 8 <= len(file):
        size, kind = int.from_bytes(file[at : at + 4], "big"), file[at + 4 : at + 8]
        if size == 1:  # the length follows in 64 bits
            size = int.from_bytes(file[at + 8 : at + 16], "big")
        if kind == wanted:
            return file[at + 8 : at + size] if size else file[at + 8 :]
        if size < 8:
            break
        at += size
    return b""


def _read(folder: Path) -> Ladder:
    facts: dict[str, Any] = json.loads((folder / _FACTS).read_text(encoding="utf-8"))
    renditions = tuple(Rendition(**each) for each in facts.pop("renditions"))
    return Ladder(folder=folder, renditions=renditions, **facts)
