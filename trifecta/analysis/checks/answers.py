"""Did all responses come from one place and one cache state, over the connections requested?

## Fails when
For a server elsewhere: the responses of an arm came from another CDN location than those of another arm of its block
(`cf-ray`, `x-amz-cf-pop`, `x-served-by`, `x-vercel-id`), or a measured request opened a connection where it was to
reuse one.

## Warns when
Caches answered one arm differently from another (`x-cache`, `cf-cache-status`, `cache-status`, Age), or Via, Server or
the names in Server-Timing differ.

## Why
A protocol is not faster because a nearby cache answers it. Not checked for servers in the lab, which have no caches in
front of them.

## Sources
RFC 9110, 7.6.3 (Via); RFC 9111, 5.1 (Age); RFC 9211 (Cache-Status).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trifecta.analysis import far
from trifecta.analysis.checks.evidence import Evidence, Finding, counts, worst
from trifecta.analysis.far import Fields
from trifecta.design.model import CheckResult, CheckStatus

_KEPT = "run more blocks, or choose an address at which one place answers every protocol (--address IP)"
_WARM = "measure again once the cache is warm, or request what is never cached"


@dataclass(frozen=True)
class _Sign:
    """What answers tell: how it is read (empty: they do not), and what it means where two arms differ in it."""

    name: str
    read: Callable[[Fields], tuple[str, ...]]
    status: CheckStatus
    remedy: str


_SIGNS = (
    _Sign("place", far.places, "fail", _KEPT),
    _Sign("cache state", lambda fields: tuple(sorted(far.cache_states(fields))), "warn", _WARM),
    _Sign("proxies (Via)", far.hops, "warn", "read it as a comparison of two routes through the CDN"),
    _Sign("server program (Server)", far.programs, "warn", "read it as a comparison of two server programs"),
    _Sign("Server-Timing", far.timings, "warn", "find out what the server does differently for one protocol"),
)


def check(evidence: Evidence) -> list[CheckResult]:
    """Compare what the answers say of themselves with those of the other arms of the block."""
    if not evidence.workload.outside:
        return []
    findings = _connections(evidence)
    own = (evidence.load or {}).get("response_fields")
    if own is None:
        return worst(
            evidence, "answers", [*findings, Finding("unknown", "no header field of the responses was recorded")]
        )
    for sign in _SIGNS:
        findings += _compare_sign(evidence, sign, own)
    sentences = [f"{sign.name} {', '.join(values)}" for sign in _SIGNS if (values := sign.read(own))]
    states = far.cache_states(own)
    if len(states) > 1:
        findings.append(Finding("warn", f"the responses show several cache states ({counts(states)})", remedy=_WARM))
    findings.append(Finding("pass", "; ".join(sentences) or "the responses name no place and no cache"))
    return worst(evidence, "answers", findings)


def _compare_sign(evidence: Evidence, sign: _Sign, own: Fields) -> list[Finding]:
    """What is told of one sign, where another arm of the block was told otherwise."""
    here = sign.read(own)
    for sibling in evidence.siblings:
        fields = (sibling.load or {}).get("response_fields")
        if fields is None or not evidence.asked_alike(sibling):
            continue
        there = sign.read(fields)
        if here != there:
            words = (", ".join(values) or "none" for values in (here, there))
            text = f"{sign.name} {next(words)} here, {next(words)} in {sibling.trial.arm}"
            return [Finding(sign.status, text, remedy=sign.remedy)]
    return []


def _connections(evidence: Evidence) -> list[Finding]:
    """Whether the connection that was to be reused was."""
    if evidence.samples is None or evidence.trial.connection != "reused":
        return []
    opened = sum(evidence.samples.handshakes.values())
    if not opened:
        return []
    text = f"{opened} of {evidence.samples.samples} measured requests opened a connection where they were to reuse one"
    remedy = "compare new connections (`--set connection=new`): the server closes idle ones before the next request"
    return [Finding("fail", text, float(opened), 0.0, remedy)]
