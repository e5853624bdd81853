"""What is said between a place of a launcher and `trifecta.lab.engine_agent`, the program that stands there.

Each message is a length of four octets, the most significant first, and a tagged struct in MessagePack.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import msgspec

_LENGTH = 4
_LONGEST = 1 << 29
"""Octets of a message; four letters, from a program that prints what it should not, are a larger length."""


class Put(msgspec.Struct, tag=True, frozen=True):
    """Lay an archive of `trifecta.lab.staged_files` where programs find it; without one make the folder of ``path``."""

    path: str
    archive: bytes | None
    writable: bool


class Begin(msgspec.Struct, tag=True, frozen=True):
    """Start a program of the engine in a role, and call it by this number from now on."""

    program: int
    role: str


class Tell(msgspec.Struct, tag=True, frozen=True):
    """For the standard input of a program."""

    program: int
    octets: bytes


class Signal(msgspec.Struct, tag=True, frozen=True):
    """Send a program this signal, where it still runs."""

    program: int
    number: int


class Get(msgspec.Struct, tag=True, frozen=True):
    """Bring a file or folder that was written there; a file is then gone there."""

    path: str


class Stands(msgspec.Struct, tag=True, frozen=True):
    """The program stands, and files are below ``folder``."""

    folder: str


class Heard(msgspec.Struct, tag=True, frozen=True):
    """From the standard output of a program, or from its standard error."""

    program: int
    octets: bytes
    diagnostics: bool


class Ended(msgspec.Struct, tag=True, frozen=True):
    """How a program ended: its exit code, negative for a signal. Nothing more comes from it."""

    program: int
    code: int


class Done(msgspec.Struct, tag=True, frozen=True):
    """A `Put` is done, or a `Get`: with what was asked for."""

    archive: bytes = b""


class Refused(msgspec.Struct, tag=True, frozen=True):
    """What was asked last cannot be done, in a few words; or the engine cannot be used there at all."""

    reason: str


Order: TypeAlias = Put | Begin | Tell | Signal | Get
Answer: TypeAlias = Stands | Heard | Ended | Done | Refused


def framed(message: Order | Answer) -> bytes:
    """A message as it is sent. ValueError for one of 512 MB or more."""
    text = msgspec.msgpack.encode(message)
    if len(text) >= _LONGEST:
        raise ValueError(f"{len(text) / 1e6:.0f} MB are more than the {_LONGEST / 1e6:.0f} that go at once")
    return len(text).to_bytes(_LENGTH, "big") + text


class Frames:
    """Puts messages together from octets as they come."""

    def __init__(self) -> None:
        """Nothing has come."""
        self._come = bytearray()

    def feed(self, octets: bytes) -> Iterator[bytes]:
        """The messages that are whole now, each without its length. ValueError for what is no message."""
        self._come += octets
        while len(self._come) >= _LENGTH:
            length = int.from_bytes(self._come[:_LENGTH], "big")
            if length >= _LONGEST:
                raise ValueError(f"it begins with {bytes(self._come[:40])!r}")
            end = _LENGTH + length
            if len(self._come) < end:
                return
            message = bytes(self._come[_LENGTH:end])
            del self._come[:end]
            yield message
