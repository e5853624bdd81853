"""What adapters need to read a program's output: content against the pattern, lines, times of another clock."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

from trifecta.implementations.client import Output

MOST_STORED_BYTES = 64 << 20
"""So much of a trial's responses may be stored for comparison: they are kept in memory until the client has ended."""
_PATTERN = bytes(0x61 + i % 26 for i in range(26)) * 2521  # whole patterns


def is_pattern(path: Path) -> bool:
    """Whether a file holds the content of ``/bytes/N`` from its start: octet i is 0x61 + i % 26; an empty file does."""
    with path.open("rb") as file:
        return all(_PATTERN.startswith(chunk) for chunk in iter(lambda: file.read(len(_PATTERN)), b""))


def whole_lines(path: Path, output: Output) -> Iterator[str]:
    """The lines of a file, without one that was cut short because the program was killed; none without a file."""
    if not path.exists():
        return
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.endswith("\n") or output.code >= 0:
                yield line.rstrip("\n")


def span_ns(seconds: str) -> int:
    """Seconds in decimal digits as ns, exactly; ValueError when they are none."""
    try:
        return int(Decimal(seconds) * 10**9)
    except ArithmeticError as error:
        raise ValueError(f"{seconds!r} is not a time in seconds") from error


def monotonic_ns(wall_ns: int, output: Output) -> int:
    """A reading of CLOCK_REALTIME during the program's run as CLOCK_MONOTONIC; both were read together at its start."""
    return output.began_ns + wall_ns - output.began_wall_ns


def quoted(text: str) -> str:
    """A text within double quotes of a configuration file with backslash escapes (curl(1), --config)."""
    return text.replace("\\", "\\\\").replace('"', '\\"')
