"""Were the frames small enough for a wire?

## Fails when
Never.

## Warns when
Frames on loopback average more than 1,514 octets, the most that Ethernet carries.

## Why
Loopback has an MTU of 65,536 octets, which TCP fills and QUIC does not: counts, sizes and gaps of frames differ there
for reasons that are not the protocol's.
"""

from __future__ import annotations

from trifecta.analysis.checks.evidence import Evidence, Finding, worst
from trifecta.design.capacity import ETHERNET_FRAME_BYTES
from trifecta.design.model import CheckResult

FEW_FRAMES = 20  # fewer say nothing of a trial
_REMEDY = "put client and server on separate hosts (`--without loopback-offload`), and count packets on a wire"


def check(evidence: Evidence) -> list[CheckResult]:
    """Warn where loopback carried frames that no wire has, on the mean; no result where nothing crossed it."""
    if evidence.study.hosts:
        text = "the frame sizes on the loopback that services of one host share were not observed"
        return worst(evidence, "frames", [Finding("unknown", text)]) if _calls_at_home(evidence) else []
    findings = []
    for name, host in evidence.hosts.items():
        loopback = host.get("loopback")
        frames = int((loopback or {}).get("rx_packets") or 0)
        if loopback is None or frames < FEW_FRAMES:
            continue
        mean = int(loopback["rx_bytes"]) / frames
        text = f"host {name}: {frames} frames over loopback, {mean:.0f} B each on average"
        if mean > ETHERNET_FRAME_BYTES:
            text += f", where Ethernet carries at most {ETHERNET_FRAME_BYTES} B"
            findings.append(Finding("warn", text, mean, float(ETHERNET_FRAME_BYTES), _REMEDY))
        else:
            findings.append(Finding("pass", text, mean, float(ETHERNET_FRAME_BYTES)))
    return worst(evidence, "frames", findings) if findings else []


def _calls_at_home(evidence: Evidence) -> bool:
    """Whether services of one host call each other."""
    services = (evidence.server or {}).get("services") or {}
    at = {name: one.get("host") for name, one in services.items()}
    return any(at.get(callee) == at[name] for name, one in services.items() for callee in one.get("asked") or ())
