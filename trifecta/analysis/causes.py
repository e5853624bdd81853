"""The difference between two protocols by cause: what each part of a request's time has of it.

Parts add up to the whole of every trial, so their differences add up to the whole difference. A part's share is what
it has of that. There are causes only of a difference: where the verdict's interval excludes a ratio of 1 and that of
the difference of the means excludes 0. Parts that go the other way have a negative share.

The intervals of differences are confidence sequences of a mean (`mean_ratio`), so they hold whenever the planner
stopped; Student's are wrong at some look in 29 % of runs of 60 blocks. That of a share is Fieller's (1954) for the
ratio of two means of paired values, with the same test: every share at which it does not reject that the part is that
share of the whole. It is bounded just where the interval of the whole does not hold 0. Resampling blocks (percentile or
BCa bootstrap) covers 77 to 83 % instead of 95 with 4 to 6 blocks (tests/analysis/test_causes.py), so it is not used.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.mean_ratio import half_width
from trifecta.analysis.transport.differences import Difference, PartDifference, difference
from trifecta.design.model import AA_SUFFIX

# Of a request. Set-up is connecting with TCP and TLS, or with QUIC.
LATE, ROUND_TRIPS, SETUP, SEND, WAIT, TRANSFER = (
    "late start",
    "round trips of set-up",
    "set-up besides its round trips",
    "sending the request",
    "wait for the first octet",
    "transfer of the response",
)
# Where a client does not report when it had sent a request, or which TLS it spoke.
ASK, WHOLE_SETUP = "sending the request and wait for the first octet", "set-up of connections"


@dataclass(frozen=True)
class TrialParts:
    """One trial: the mean time of a request by part, in ns."""

    arm: str
    block: int
    parts: Mapping[str, float]


@dataclass(frozen=True)
class Cause:
    """A part of the difference, in ns (negative: the arm has less of it), and its share of the whole difference.

    The share's interval is for this part alone, as that of the difference is.
    """

    part: str
    found: PartDifference
    share: float | None
    share_low: float | None = None
    share_high: float | None = None


@dataclass(frozen=True)
class Causes:
    """The causes, the largest first; none without ``told_apart``: the whole is no difference to share out."""

    whole: Difference
    causes: tuple[Cause, ...]
    told_apart: bool


def causes(
    trials: Sequence[TrialParts],
    arm: str,
    reference: str,
    names: Sequence[str],
    confidence: float,
    *,
    excludes_one: bool = True,
) -> Causes | None:
    """Compare two arms block by block; of the baseline's two runs the mean. None where no block has both.

    ``excludes_one``: whether the interval of the verdict does; without that there is nothing to find a cause of.
    """
    by_block = (_by_block(trials, arm, names), _by_block(trials, reference, names))
    shared = sorted(by_block[0].keys() & by_block[1].keys())
    estimate = difference(
        [(by_block[0][block], by_block[1][block]) for block in shared], confidence, names, anytime=True
    )
    if estimate is None:
        return None
    low, high = estimate.whole.low_ns, estimate.whole.high_ns
    if not excludes_one or low is None or high is None or low <= 0 <= high:
        return Causes(estimate, (), told_apart=False)
    shared_parts = estimate.whole.difference_ns
    each = np.array([[by_block[0][block][name] - by_block[1][block][name] for name in names] for block in shared])
    ends = [share_interval(each[:, at], each.sum(axis=1), confidence) for at in range(len(names))]
    all_causes = [
        Cause(one.part, one, one.difference_ns / shared_parts, *end)
        for one, end in zip(estimate.parts, ends, strict=True)
    ]
    all_causes = [
        one for one in all_causes if one.found.arm_ns or one.found.reference_ns
    ]  # a part that neither has is no cause
    return Causes(estimate, tuple(sorted(all_causes, key=lambda one: -abs(one.found.difference_ns))), told_apart=True)


def share_interval(
    part: NDArray[np.float64], total: NDArray[np.float64], confidence: float, *, half: float | None = None
) -> tuple[float, float] | tuple[None, None]:
    """Between which shares of ``total`` the ``part`` lies, both by block (Fieller); none where it is not bounded.

    The share s is in it when 0 is in the interval of the mean of ``part - s * whole``: a quadratic in s. ``half``: half
    the length of a mean's interval in standard deviations, where it need not hold at every look.
    """
    reach = (half_width(len(total), 1 - confidence) if half is None else half) ** 2
    if not math.isfinite(reach):
        return None, None
    (own, covariance), (_, all_) = reach * np.cov(part, total)
    means = float(part.mean()), float(total.mean())
    square, cross, rest = means[1] ** 2 - all_, means[0] * means[1] - covariance, means[0] ** 2 - own
    if square <= 0:
        return None, None
    root = math.sqrt(max(cross**2 - square * rest, 0.0))  # not negative but by rounding: the share itself is inside
    return float((cross - root) / square), float((cross + root) / square)


def _by_block(trials: Sequence[TrialParts], arm: str, names: Sequence[str]) -> dict[int, dict[str, float]]:
    parts_by_block: dict[int, list[Mapping[str, float]]] = {}
    for trial in trials:
        if trial.arm in (arm, arm + AA_SUFFIX):
            parts_by_block.setdefault(trial.block, []).append(trial.parts)
    return {
        block: {name: sum(parts.get(name, 0.0) for parts in here) / len(here) for name in names}
        for block, here in parts_by_block.items()
    }


def split_setup(setup_ns: float, round_trips: float, rtt_ns: float | None) -> dict[str, float]:
    """Set-up as its round trips and the rest. A handshake cannot have waited longer than it took.

    ``round_trips`` is what the protocol needs at least (`least_setup_round_trips`), as the mean over requests: 0 where
    a request found its connection open.
    """
    waited = min(setup_ns, round_trips * (rtt_ns or 0.0))
    return {ROUND_TRIPS: waited, SETUP: setup_ns - waited}


def least_setup_round_trips(protocol: str, tls_version: str | None, *, resumed: bool, zero_rtt: bool) -> int | None:
    """Round trips before a request can be sent on a new connection; None where the version of TLS is not known.

    TCP 1 (RFC 9293, 3.5); TLS 1.3 1 (RFC 8446, 2), none with early data; TLS 1.2 2, resumed 1 (RFC 5246, 7.3); QUIC 1
    for both together (RFC 9000, 7), none with 0-RTT.
    """
    if protocol == "h3":
        return 0 if zero_rtt else 1
    if tls_version == "1.3":
        return 1 if zero_rtt else 2
    if tls_version == "1.2":
        return 2 if resumed else 3
    return None
