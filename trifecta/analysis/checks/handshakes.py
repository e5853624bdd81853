"""Are requests compared, or their handshakes?

## Fails when
Never.

## Warns when
A protocol spends a third or more of a request's median time on its handshake.

## Why
A new connection takes one round trip over QUIC, two over TCP with TLS 1.3, three with TLS 1.2, whatever the request
is.

## Sources
RFC 9000, 7; RFC 9293, 3.5; RFC 8446, 2; RFC 5246, 7.3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from trifecta.analysis.checks.evidence import RunEvidence
from trifecta.analysis.estimate import Row, by_cell, usable
from trifecta.design.arms import arm_words
from trifecta.design.model import AA_SUFFIX, CheckResult

# Share of the median time of a request. From a third on, a protocol with one round trip less looks a third faster.
HANDSHAKE_LIMIT = 1 / 3
_REMEDY = "also compare on reused connections (`--without round-trips`), or read it as a comparison of handshakes"


def check(evidence: RunEvidence) -> list[CheckResult]:
    """Per cell: warn where an arm spends a third or more of a request on its handshake."""
    rows = by_cell(evidence.rows)
    results = []
    for cell in evidence.cells:
        shares = _shares(rows.get(cell.key, []))
        if not shares:
            continue
        words = ", ".join(
            f"{arm_words(evidence.study.compare, arm)} {100 * share:.0f} %" for arm, share in shares.items()
        )
        text = f"the handshake's share of a request's median time: {words}"
        most = max(shares.values())
        if most >= HANDSHAKE_LIMIT:
            results.append(CheckResult("handshakes", cell.key, "warn", text, most, HANDSHAKE_LIMIT, _REMEDY))
        else:
            results.append(CheckResult("handshakes", cell.key, "pass", text, most, HANDSHAKE_LIMIT))
    return results


def _shares(rows: Sequence[Row]) -> dict[str, float]:
    """By arm, where every request opens a connection and the phases are known."""
    shares_by_arm: dict[str, list[float]] = {}
    for row in rows:
        latency, tls = row.get("latency_p50_ns"), row.get("tls_p50_ns")
        if row.get("connection") != "new" or not usable(row) or not latency or tls is None:
            continue
        share = (float(row.get("connect_p50_ns") or 0.0) + float(tls)) / float(latency)
        if math.isfinite(share):
            shares_by_arm.setdefault(str(row["arm"]).removesuffix(AA_SUFFIX), []).append(share)
    return {arm: median(values) for arm, values in sorted(shares_by_arm.items())}
