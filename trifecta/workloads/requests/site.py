"""What servers of requests serve: files of every size that is asked for."""

from __future__ import annotations

from pathlib import Path

_PATTERN = bytes(0x61 + i % 26 for i in range(26))


def write_site(folder: Path, sizes: set[int]) -> None:
    """Write ``bytes/N`` for every size: N octets, octet i is 0x61 + i % 26."""
    (folder / "bytes").mkdir(parents=True, exist_ok=True)
    for size in sizes:
        pattern = _PATTERN * 4096
        with (folder / "bytes" / str(size)).open("wb") as file:
            left = size
            while left > 0:
                left -= file.write(pattern[: min(left, len(pattern))])
