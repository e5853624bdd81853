"""Where the pictures come from: a real clip, a synthetic one of any length, or a file of the user's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trifecta.contract.digest import sha256_of
from trifecta.design.errors import UserError
from trifecta.video import ffmpeg
from trifecta.video.playlists import FRAME_RATE
from trifecta.video.recipes import BBB_FILE, BBB_LICENCE, CLIP_BBB

# A test card on which something moves in every frame, with a running clock, and a tone (ffmpeg-filters(1)).
_TEST_CARD = f"testsrc2=size=1280x720:rate={FRAME_RATE}"
_TONE = "sine=frequency=440:sample_rate=48000"


@dataclass(frozen=True)
class Clip:
    """What ffmpeg is to read."""

    name: str
    kind: str
    """``generated``, ``package`` or ``folder``: where it is from, as in a page archive."""
    licence: str
    identity: str
    """Other pictures have another one."""
    inputs: tuple[str, ...]
    """Options of ffmpeg that open it, without an end: it is repeated as long as is asked."""
    sound: str | None
    """The stream of its sound, None: it has none."""


def find_clip(name: str) -> Clip:
    """The clip of a study: ``synthetic``, ``bbb``, or a file's path. Unsupported or UserError when it is missing."""
    if name == "synthetic":
        inputs = ("-f", "lavfi", "-i", _TEST_CARD, "-f", "lavfi", "-i", _TONE)
        return Clip(name, "generated", "none needed", f"{_TEST_CARD} {_TONE}", inputs, "1:a")
    if name == "bbb":
        path = CLIP_BBB.file(BBB_FILE)
        return Clip(name, "package", BBB_LICENCE, _digest(path), _repeated(path), "0:a")
    path = Path(name)
    if not path.is_file():
        raise UserError(f"{path}: no such clip; give synthetic, bbb, or the path of a video")
    streams = ffmpeg.probe(path, "-show_entries", "stream=codec_type").get("streams", [])
    types = [stream.get("codec_type") for stream in streams if isinstance(stream, dict)]
    if "video" not in types:
        raise UserError(f"{path}: has no pictures; give a video")
    sound = "0:a:0" if "audio" in types else None
    return Clip("own", "folder", "the user's own", _digest(path), _repeated(path), sound)


def _repeated(path: Path) -> tuple[str, ...]:
    return ("-stream_loop", "-1", *ffmpeg.LOCAL_ONLY, "-i", str(path))


def _digest(path: Path) -> str:
    try:
        return sha256_of(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); give a file that can") from None
