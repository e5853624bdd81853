"""What is inside a handshake is the same in every arm: the certificates, and the flights of the server they take.

A part of `parity`. A server that shows a longer chain over one protocol makes its handshakes larger, and over QUIC a
round trip longer once they exceed three times what the client has sent (RFC 9000 section 8.1): nothing of that is the
protocol's. With one chain everywhere the round trip is the protocol's own, and is named only.
"""

from __future__ import annotations

from trifecta.analysis.checks.evidence import Evidence, Finding
from trifecta.contract.stored import Load
from trifecta.design.impairments import kind_of
from trifecta.design.model import CheckStatus
from trifecta.design.phrases import counted

_ONE_CHAIN = "configure the server to send one certificate chain over every protocol"


def findings(evidence: Evidence) -> list[Finding]:
    """Fail where a trial of the block was shown other certificates, warn where its handshakes took other flights."""
    own, flights = chain(evidence.load), server_flights(evidence.load)
    if own is None:
        if _reports_handshake(evidence):  # a session that was resumed has none
            return []
        return [Finding("unknown", f"{evidence.client} does not report the certificates it received")]
    others = {each.trial.arm: chain(each.load) for each in evidence.siblings}
    odd = {arm: other for arm, other in others.items() if other is not None and other != own}
    by_arm = {each.trial.arm: server_flights(each.load) for each in evidence.siblings if _comparable(evidence, each)}
    if odd:
        sentence = ", ".join(f"{words}{_took(by_arm.get(arm))} in {arm}" for arm, words in odd.items())
        # What a server of others shows over each protocol is part of what its protocols are.
        status: CheckStatus = "warn" if evidence.workload.outside else "fail"
        return [Finding(status, f"the server sends {own}{_took(flights)} here and {sentence}", remedy=_ONE_CHAIN)]
    chain_findings = [Finding("pass", f"certificate chain: {own}")]
    longer = [f"{other} in {arm}" for arm, other in by_arm.items() if other is not None and other != flights]
    if flights is None:
        return chain_findings
    if longer and not _loses(evidence):
        text = f"handshakes took {flights} server flights here and {', '.join(longer)}, with the same chain ({own})"
        remedy = "read it as what this chain costs over this protocol, or give the server a shorter one"
        return [*chain_findings, Finding("warn", text, remedy=remedy)]
    return [*chain_findings, Finding("pass", f"server flights in a handshake: {flights}")]


def chain(load: Load | None) -> str | None:
    """The certificates of all handshakes in words, octets in DER: ``2 certificates of 1042 B``; None where not told."""
    chains = ((load or {}).get("handshakes") or {}).get("chains") or []
    sentences = [f"{counted(each['certificates'], 'certificate')} of {each['octets']} B" for each in chains]
    return " + ".join(sentences) or None


def server_flights(load: Load | None) -> int | None:
    """In how many flights the server's part of a handshake came, at the median; None on a path too short to tell."""
    counts = ((load or {}).get("handshakes") or {}).get("flights") or {}
    every = sorted(int(flights) for flights, count in counts.items() for _ in range(count))
    return every[len(every) // 2] if every else None


def _reports_handshake(evidence: Evidence) -> bool:
    """Whether the client tells what it was shown; a trial without a summary has its own check."""
    return not evidence.load or "handshakes" in evidence.load or not evidence.foreign


def _took(flights: int | None) -> str:
    return "" if flights is None else f" in {counted(flights, 'flight')}"


def _comparable(evidence: Evidence, other: Evidence) -> bool:
    """TLS 1.2 has two flights of the server, 1.3 has one (RFC 5246 section 7.3, RFC 8446 section 2)."""
    return evidence.workload.tls_version == other.workload.tls_version


def _loses(evidence: Evidence) -> bool:
    """A flight that is lost comes again, which is the path's doing."""
    if evidence.workload.outside:
        return True
    kinds = [kind_of(each) for each in (*evidence.path.forward, *evidence.path.backward)]
    return evidence.path.as_is or any(kind.removes or kind.damages or (kind.queues and kind.wavers) for kind in kinds)
