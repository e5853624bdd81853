"""What a command wants of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trifecta.lab.launcher import StreamLauncher


@dataclass(frozen=True)
class Cluster:
    """On whose nodes blocks are run, and where what they leave goes."""

    launch: Callable[[], StreamLauncher]
    """Makes the launcher of its nodes."""
    store: str | None = None
    """URL of a place in an object store, into which nodes put it themselves; None: the head takes it."""
