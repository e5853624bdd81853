"""A path and how long a trial on it is, as plain records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from trifecta.contract.impairments import ImpairmentDocument


@dataclass(frozen=True)
class TrialLength:
    """How long one trial is: it measures ``requests`` or ``duration_ns`` (0: no limit), whichever is first.

    The warm-up comes before that: its rows are kept and marked, but count for nothing.
    """

    requests: int = 0
    duration_ns: int = 0
    warmup_requests: int = 0
    warmup_ns: int = 0


@dataclass(frozen=True)
class PathSpec:
    """An impaired path between client and server.

    ``forward`` and ``backward`` are impairment documents of the engine's link, client to server and back, in order:
    they are what is carried out. The scalars say the same for reports and checks: ``rtt_ns`` is the constant delay of
    both directions together, ``rate_bits_per_s`` and ``queue_bytes`` are those of the slower direction, ``loss`` is
    the larger independent loss of the two, and ``missing`` the share of packets that chance takes, in bursts and by
    damage too, added up over both. ``trial``, if given, replaces the workload's length on this path: for every
    connection mode, or for the modes it names. ``frames``: what hosts receive: super-packets, as from a device that
    merges frames (the impairments act on wire packets all the same), or every frame at a wire's size. ``emulator``: who
    does to packets what is asked: the engine's link, or the kernel's netem, which knows no seed.
    """

    name: str
    rtt_ns: int = 0
    rate_bits_per_s: int | None = None
    queue_bytes: int | None = None
    loss: float = 0.0
    missing: float = 0.0
    forward: tuple[ImpairmentDocument, ...] = ()
    backward: tuple[ImpairmentDocument, ...] = ()
    trial: TrialLength | Mapping[str, TrialLength] | None = None
    frames: Literal["merged", "wire"] = "merged"
    emulator: Literal["engine", "netem"] = "engine"
    as_is: bool = False
    """Whether it is the network between two machines, of which nothing is asked and nothing is known beforehand."""

    def length(self, connection: str) -> TrialLength | None:
        """How long a trial is here with this connection mode; None: as the workload says."""
        return self.trial.get(connection) if isinstance(self.trial, Mapping) else self.trial

    @property
    def impaired(self) -> bool:
        """Whether anything but the bare link is asked for."""
        return bool(self.forward or self.backward)

    @property
    def linked(self) -> bool:
        """Whether it takes a link to carry out; a lab of two hosts has one always."""
        return self.impaired or self.frames == "wire"
