"""Is the capture complete, and may a captured trial count?

## Fails when
The trial was captured and the study does not say `captured_trials_count: true`.

## Warns when
Packets are missing from the capture, it has no TLS keys, or the link captured nothing.

## Why
Writing every packet twice, and TLS keys and events, costs the client, the link and the disk time.
"""

from __future__ import annotations

from collections.abc import Iterator

from trifecta.analysis.checks.evidence import Evidence, Finding, worst
from trifecta.contract.stored import OneLink
from trifecta.design.model import CheckResult


def check(evidence: Evidence) -> list[CheckResult]:
    """Fail where captured trials do not count; warn where packets are missing in the capture or nothing opens it."""
    if not evidence.study.capture:
        return []
    findings = [finding for wire, link in evidence.links.items() for finding in _of_wire(wire, link)]
    if not findings:
        findings = [Finding("unknown", "nothing was captured: this trial had no link to capture on")]
    if not evidence.study.gives_verdicts:
        remedy = "run the study without --capture for verdicts, or set captured_trials_count: true"
        findings.append(Finding("fail", "captured: a captured trial is not used for verdicts", remedy=remedy))
    return worst(evidence, "capture", findings)


def _of_wire(wire: str, link: OneLink) -> Iterator[Finding]:
    of = f" of {wire}" if wire else ""
    captured, capture = link.get("captured_packets"), link.get("capture") or {}
    if captured is None:
        yield Finding("warn", f"the link{of} captured nothing")
        return
    missed = int(link.get("capture_missed") or 0)
    directions = (link.get("a_to_b"), link.get("b_to_a"))
    unread = sum(int((way or {}).get("device_drops") or 0) for way in directions)
    unlogged = int(link.get("log_rows_dropped") or 0)
    if missed or unread or unlogged or not capture.get("whole", False):
        text = (
            f"the capture{of} lacks packets: {missed} because the disk was too slow, {unread} that the device dropped; "
            f"{unlogged} rows of the log are missing"
        )
        yield Finding("warn", text, float(missed + unread), 0.0, "write to a faster disk, or reduce the load")
    elif not capture.get("keys"):
        yield Finding("warn", f"the capture{of} has no keys: the client writes none, so nothing in it can be decrypted")
    else:
        text = f"{captured} packets captured{of} on both sides, none missing, with keys"
        # Only over HTTP/3 was one asked for.
        text += "; the client wrote no qlog" if capture.get("client_qlog") == 0 else ""
        yield Finding("pass", text, float(missed), 0.0)
