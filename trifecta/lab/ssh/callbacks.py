"""Who hears what a program at the other end says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Callbacks:
    """Functions that are called in the thread of the event loop, so none may wait."""

    output: Callable[[bytes], object]
    diagnostics: Callable[[bytes], object]
    ended: Callable[[int | None, str], object]
    """Once, at its end: the exit code, negative for a signal, and how the channel ended in words.

    Without a code it is not known how it ended: it could not be started, or the connection is gone.
    """
