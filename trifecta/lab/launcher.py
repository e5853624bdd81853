"""A launcher: knows places by name, and has programs started there. It knows nothing of trials.

There are three: `trifecta.lab.namespaces` (hosts of a lab), `trifecta.lab.machines` (hosts by SSH) and
`trifecta.lab.ray_launcher` (nodes of a cluster). A program of the engine is told the same, and says the same, wherever
it runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from trifecta.lab.place import Place


class Launcher(Protocol):
    """What knows places, and has programs of the engine started there."""

    def places(self) -> Mapping[str, str]:
        """The places that are there now, each with a name that a person knows it by.

        A place that was away and is back is another place, with the name it had. CannotError when it cannot be known.
        """

    def place(self, key: str) -> Place:
        """Where programs of the engine are started; ``key`` is one of `places`."""


@dataclass(frozen=True)
class Output:
    """What came from a program since it was last asked for."""

    octets: bytes = b""
    """Of its standard output."""
    ended: str | None = None
    """Why nothing more will come, in a few words: how it ended, or what befell its place. None while it runs."""


class StreamLauncher(Launcher, Protocol):
    """A launcher that carries octets to one program at each place, and from it, and waits for none of them.

    Places come and go. The program ends when its standard input is closed, which it is at the latest when the
    launcher's own process has ended, however that ended. Whoever uses `place` leaves `read` to it.
    """

    @property
    def shared(self) -> bool:
        """Whether its places are on one machine because that was asked for: programs there disturb each other."""

    def start(self, place: str, arguments: Sequence[str]) -> None:
        """Start ``python ARGUMENTS`` there, by the Python that is there; what goes wrong, `read` tells."""

    def write(self, place: str, octets: bytes) -> None:
        """Send octets to the standard input of its program, behind those sent before."""

    def read(self, timeout_s: float) -> Mapping[str, Output]:
        """By place what came since the last call, from those where anything did; waits for it, for so long at most."""

    def end(self, place: str) -> None:
        """End the program there and forget it: its input is closed, and soon after it is killed. Not waited for."""

    def close(self) -> None:
        """End all programs, and leave what was connected to as it was found."""
