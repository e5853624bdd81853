"""What one side sees of a path that nobody here made: the least round trips of the arms, and what of ours was lost.

The part of the check `path` for servers elsewhere. Loss and rate of the other direction stay unseen.
"""

from __future__ import annotations

from trifecta.analysis.checks.evidence import Evidence, Finding, duration
from trifecta.contract.stored import Load

APART_SHARE, APART_FLOOR_NS = 0.2, 2_000_000  # of the least round trips of two arms of a block, whichever allows more
_REMEDY = "read it as a comparison of two routes: TCP and UDP may be routed differently, or end at different places"


def findings(evidence: Evidence) -> list[Finding]:
    """Warn where an arm's least round trip is not that of the other arms of its block, to one address."""
    own = least_round_trip_ns(evidence.load)
    if own is None:
        return [Finding("unknown", "not observable from here")]
    lost = _lost(evidence.load)
    text = f"from here: minimum RTT {duration(own)}, {lost} of our packets lost; the rest is not observable"
    for sibling in evidence.siblings:
        other = least_round_trip_ns(sibling.load)
        if other is None or not _one_address(evidence, sibling):
            continue
        apart, limit = abs(own - other), max(APART_FLOOR_NS, APART_SHARE * min(own, other))
        if apart > limit:
            sentence = (
                f"minimum RTT {duration(own)} here, {duration(other)} in {sibling.trial.arm}, to the same address"
            )
            return [Finding("warn", sentence, float(apart), limit, _REMEDY)]
    return [Finding("pass", text, float(own))]


def least_round_trip_ns(load: Load | None) -> int | None:
    """As TCP_INFO or QUIC has it; None where nothing was measured."""
    used = (load or {}).get("tcp") or (load or {}).get("quic") or {}
    return used.get("min_rtt_ns")


def _lost(load: Load | None) -> int:
    """Retransmissions of TCP, lost packets of QUIC."""
    tcp, quic = (load or {}).get("tcp") or {}, (load or {}).get("quic") or {}
    return int(tcp.get("retransmits") or 0) + int(quic.get("lost_packets") or 0)


def _one_address(evidence: Evidence, other: Evidence) -> bool:
    return (evidence.server or {}).get("address") == (other.server or {}).get("address")
