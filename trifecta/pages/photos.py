"""Pictures from a seed that look like photographs, decode, and have the size in octets that is asked for."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

Floats = NDArray[np.float32]
_GRAIN = 9.0  # standard deviation of the sensor's noise, of 255: what makes a photograph hard to compress
_PALETTES = (
    ((24, 44, 92), (238, 174, 120), (32, 58, 60)),
    ((70, 130, 190), (226, 232, 226), (40, 84, 50)),
    ((96, 60, 110), (250, 190, 140), (48, 32, 64)),
    ((40, 96, 120), (200, 224, 220), (20, 56, 72)),
    ((160, 110, 70), (248, 226, 180), (120, 72, 40)),
    ((60, 74, 96), (200, 206, 214), (30, 40, 44)),
)


def landscape(seed: int, width: int, height: int) -> Image.Image:
    """Sky, sun, ridges one behind the other, and grain."""
    random = np.random.RandomState(seed)  # its streams are frozen for good, unlike those of numpy's Generator
    sky, light, ground = (np.array(each, np.float32) for each in _PALETTES[random.randint(len(_PALETTES))])
    down = np.linspace(0, 1, height, dtype=np.float32)[:, None, None]
    scene: Floats = np.broadcast_to(sky + (light - sky) * down**0.8, (height, width, 3)).copy()
    x, y = np.arange(width, dtype=np.float32)[None, :], np.arange(height, dtype=np.float32)[:, None]
    sun_x, sun_y = random.uniform(0.15, 0.85) * width, random.uniform(0.2, 0.5) * height
    distance = np.hypot(x - sun_x, y - sun_y) / (0.05 * width + 8)
    scene += (np.exp(-((distance / 4) ** 2)) * 60 + (distance < 1) * 40)[..., None]
    scene += (_noise(random, width, height, 3)[..., None] - 0.5) * 70 * (1 - down)
    rock = _noise(random, width, height, 6)
    for ridge in range(4):
        depth = (ridge + 1) / 4
        line = (0.42 + 0.13 * ridge + 0.34 * (1 - 0.6 * depth) * (_line(random, width) - 0.5)) * height
        colour = light + (ground - light) * depth**0.7
        shade = (0.72 + 0.56 * rock * depth)[..., None] * colour
        inside = np.clip(y - line[None, :], 0, 1)[..., None]
        scene = scene * (1 - inside) + shade * inside
    return _developed(random, scene)


def portrait(seed: int, width: int, height: int) -> Image.Image:
    """Head and shoulders before a wall."""
    random = np.random.RandomState(seed)
    wall, _, cloth = _PALETTES[random.randint(len(_PALETTES))]
    skin = [(236, 200, 172), (208, 158, 122), (150, 104, 74), (104, 70, 50)][random.randint(4)]
    hair = [(40, 28, 22), (98, 66, 38), (190, 150, 90), (120, 120, 124)][random.randint(4)]
    picture = Image.new("RGB", (width, height), wall)
    draw = ImageDraw.Draw(picture)

    def oval(x: float, y: float, across: float, high: float, colour: tuple[int, int, int]) -> None:
        box = ((x - across) * width, (y - high) * height, (x + across) * width, (y + high) * height)
        draw.ellipse(box, fill=colour)

    oval(0.5, 1.08, 0.42, 0.36, cloth)
    oval(0.5, 0.36, 0.22 + 0.04 * random.rand(), 0.25, hair)
    draw.rounded_rectangle((0.43 * width, 0.5 * height, 0.57 * width, 0.8 * height), 0.06 * width, fill=skin)
    oval(0.5, 0.43, 0.165, 0.21, skin)
    for side in (-1, 1):
        oval(0.5 + side * 0.065, 0.42, 0.018, 0.014, (30, 26, 26))
    draw.arc((0.44 * width, 0.46 * height, 0.56 * width, 0.55 * height), 25, 155, fill=(130, 60, 60), width=3)
    soft = np.asarray(picture.filter(ImageFilter.GaussianBlur(width / 160)), np.float32)
    light = np.linspace(1.15, 0.8, width, dtype=np.float32)[None, :, None]
    return _developed(random, soft * light + (_noise(random, width, height, 4)[..., None] - 0.5) * 26)


def _noise(random: np.random.RandomState, width: int, height: int, octaves: int) -> Floats:
    """Fractal value noise, 0 to 1."""
    total = np.zeros((height, width), np.float32)
    for octave in range(octaves):
        grid = random.rand(3 * 2**octave, 4 * 2**octave).astype(np.float32)
        smooth = Image.fromarray(grid).resize((width, height), Image.Resampling.BICUBIC)
        total += np.asarray(smooth, np.float32) * 0.5**octave
    return _spread(total)


def _line(random: np.random.RandomState, width: int) -> Floats:
    total = np.zeros(width, np.float32)
    for octave in range(7):
        points = random.rand(3 * 2**octave + 1)
        total += (np.interp(np.linspace(0, len(points) - 1, width), np.arange(len(points)), points)) * 0.55**octave
    return _spread(total)


def _spread(values: Floats) -> Floats:
    low, high = float(values.min()), float(values.max())
    return ((values - low) / max(1e-6, high - low)).astype(np.float32)


def _developed(random: np.random.RandomState, scene: Floats) -> Image.Image:
    grain = random.normal(0, _GRAIN, scene.shape[:2]).astype(np.float32)[..., None]
    return Image.fromarray(np.clip(scene + grain, 0, 255).astype(np.uint8))


def encoded(picture: Image.Image, form: str, size: int) -> bytes:
    """The picture as ``jpeg``, ``webp`` or ``png`` of exactly ``size`` octets.

    The best quality that fits is taken, of PNG the most colours, and a comment of the format fills what is left:
    decoders pass over it. ValueError when it does not fit at all.
    """
    low, high, best = 1, 97, b""
    while low <= high:
        middle = (low + high) // 2
        tried = _encode(picture, form, middle)
        # What is left takes a comment with a head of its own, or nothing.
        if len(tried) == size or len(tried) + _LEAST[form] <= size:
            low, best = middle + 1, tried
        else:
            high = middle - 1
    if not best:
        raise ValueError(f"a {form} of {picture.width}x{picture.height} does not fit in {size} octets")
    return _fill(best, form, size)


_LEAST = {"jpeg": 4, "png": 12, "webp": 8 + 18 + 2}


def _encode(picture: Image.Image, form: str, quality: int) -> bytes:
    out = io.BytesIO()
    if form == "png":
        few = picture.quantize(
            colors=max(2, quality * 256 // 97), method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE
        )
        few.save(out, "PNG", compress_level=6)
    elif form == "webp":
        picture.save(out, "WEBP", quality=quality, method=2)
    else:
        picture.save(out, "JPEG", quality=quality, optimize=False, progressive=True, subsampling=2)
    return out.getvalue()


def _fill(content: bytes, form: str, size: int) -> bytes:
    gap = size - len(content)
    if gap == 0:
        return content
    if form == "jpeg":
        return content[:2] + _jpeg_comments(gap) + content[2:]
    if form == "png":  # an ancillary text chunk before the last one, IEND (PNG, section 11.3.3.3)
        text = b"Comment\0" + b"." * (gap - 12 - 8) if gap >= 20 else b"." * (gap - 12)
        kind = b"tEXt" if gap >= 20 else b"prVt"
        chunk = struct.pack(">I", len(text)) + kind + text + struct.pack(">I", zlib.crc32(kind + text))
        return content[:-12] + chunk + content[-12:]
    return _webp_filled(content, size)


def _jpeg_comments(gap: int) -> bytes:
    """COM segments of ``gap`` octets together; each takes 4 octets at least (ITU-T T.81, B.2.4.5)."""
    pieces = []
    while gap:
        take = min(gap, 65_537)
        if 0 < gap - take < 4:
            take -= 4
        pieces.append(b"\xff\xfe" + struct.pack(">H", take - 2) + b"." * (take - 4))
        gap -= take
    return b"".join(pieces)


def _webp_filled(content: bytes, size: int) -> bytes:
    """An unknown chunk at the end, which needs the extended form of the file (RFC 9649, section 2.7)."""
    if size % 2:
        raise ValueError("a WebP file has an even number of octets")
    with Image.open(io.BytesIO(content)) as picture:
        width, height = picture.size
    extended = b"VP8X" + struct.pack("<I", 10) + bytes(4) + _u24(width - 1) + _u24(height - 1)
    rest = size - len(content) - len(extended) - 8
    chunks = extended + content[12:] + b"FILL" + struct.pack("<I", rest) + b"." * rest
    return b"RIFF" + struct.pack("<I", len(chunks) + 4) + b"WEBP" + chunks


def _u24(value: int) -> bytes:
    return struct.pack("<I", value)[:3]
