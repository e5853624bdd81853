"""A launcher: starts a program at places it knows, and carries octets to it and from it. It knows nothing of trials.

Places come and go. At most one program runs at a place at a time. It ends when its standard input is closed, which it
is at the latest when the launcher's own process has ended, however that ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Said:
    """What came from a program since it was last asked for."""

    octets: bytes = b""
    """Of its standard output."""
    ended: str | None = None
    """Why nothing more will come, in a few words: how it ended, or what befell its place. None while it runs."""


class Launcher(Protocol):
    """What starts programs elsewhere. Nothing waits, but for `read` as long as it is told, and `close`."""

    @property
    def shared(self) -> bool:
        """Whether its places are on one machine because that was asked for: programs there disturb each other."""

    def places(self) -> Mapping[str, str]:
        """The places that are there now, each with a name that a person knows it by; no two have the same name.

        A place that was away and is back is another place, with the name it had. CannotError when it cannot be known.
        """

    def start(self, place: str, arguments: Sequence[str]) -> None:
        """Start ``python ARGUMENTS`` there, by the Python that is there; what goes wrong, `read` tells."""

    def write(self, place: str, octets: bytes) -> None:
        """Send octets to the standard input of its program, behind those sent before."""

    def read(self, timeout_s: float) -> Mapping[str, Said]:
        """By place what came since the last call, from those where anything did; waits for it, for so long at most."""

    def end(self, place: str) -> None:
        """End the program there and forget it: its input is closed, and soon after it is killed. Not waited for."""

    def close(self) -> None:
        """End all programs, and leave what was connected to as it was found."""
