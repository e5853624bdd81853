"""How far apart two clocks are, from the four times of packets that went to and fro, with its bound (RFC 5905, 8).

A packet cannot arrive before it was sent. So what the far clock is ahead of the near one is at most the least time that
a packet seems to have taken there, and at least minus the least that one seems to have taken back: half the shortest
round trip either way of the middle, whatever the path does. Clocks drift by some 50 µs a second at most between two
packets, which a probe of a second leaves out.

Where chronyd runs at both ends there is a second bound: each clock is off by no more than chronyd says (chronyc(1)). If
both are right the truth lies in both, so what they have in common is the tighter bound; if they have nothing in common,
one is wrong, and the packets, which need no server's word, are believed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trifecta.contract.common import Quantiles

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class FourTimes:
    """Of packets, in ns: when each was sent, came in at the far end, left there, and came back."""

    sent_ns: Sequence[int]
    reflected_in_ns: Sequence[int]
    reflected_out_ns: Sequence[int]
    received_ns: Sequence[int]


@dataclass(frozen=True)
class Offset:
    """The far clock is ahead of the near one by ``offset_ns``, give or take ``bound_ns``."""

    offset_ns: int
    bound_ns: int


@dataclass(frozen=True)
class WallClock:
    """A machine's CLOCK_REALTIME: how far it is ahead of its CLOCK_MONOTONIC, and off by at most, reading included."""

    ahead_ns: int
    bound_ns: int


def by_wall_clocks(near: WallClock, far: WallClock) -> Offset:
    """How far apart the clocks of two machines are whose wall clocks show the same time, within their bounds."""
    return Offset(near.ahead_ns - far.ahead_ns, near.bound_ns + far.bound_ns)


def agree(offset: Offset, other: Offset) -> bool:
    """Whether both can be right."""
    return abs(offset.offset_ns - other.offset_ns) <= offset.bound_ns + other.bound_ns


def tighter(packets: Offset, chrony: Offset | None) -> Offset:
    """What both allow; that of the packets where there is no other, or the two contradict each other."""
    if chrony is None or not agree(packets, chrony):
        return packets
    least = max(packets.offset_ns - packets.bound_ns, chrony.offset_ns - chrony.bound_ns)
    most = min(packets.offset_ns + packets.bound_ns, chrony.offset_ns + chrony.bound_ns)
    return Offset((most + least) // 2, (most - least + 1) // 2)


def offset(times: FourTimes) -> Offset | None:
    """How far apart the clocks are; None without a packet, and where no offset fits all packets: a clock was set."""
    there, back = _raw_one_way(times)
    if not len(there):
        return None
    most, least = int(there.min()), -int(back.min())
    return Offset((most + least) // 2, (most - least + 1) // 2) if least <= most else None


def one_way(times: FourTimes, apart: Offset) -> tuple[Quantiles, Quantiles]:
    """How long packets took there, and back, if the clocks are apart by the middle: all of it by the same bound off."""
    there, back = _raw_one_way(times)
    return _quantiles(there - apart.offset_ns), _quantiles(back + apart.offset_ns)


def _raw_one_way(times: FourTimes) -> tuple[Ints, Ints]:
    sent, came, left, received = (
        np.asarray(column, dtype=np.int64)
        for column in (times.sent_ns, times.reflected_in_ns, times.reflected_out_ns, times.received_ns)
    )
    return came - sent, received - left


def _quantiles(values: Ints) -> Quantiles:
    """By nearest rank, as the engine has them."""
    ranked = np.sort(values)
    p50, p90, p99 = (int(ranked[int(np.ceil(share * len(ranked))) - 1]) for share in (0.5, 0.9, 0.99))
    return Quantiles(min=int(ranked[0]), p50=p50, p90=p90, p99=p99, max=int(ranked[-1]))
