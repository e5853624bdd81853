"""Are all times from one clock and in order?

## Fails when
Readings of client and runner are out of order by more than 1 ms.

## Warns when
The clock is one that takes a system call to read.

## Why
A duration is a difference of two readings of one clock.
"""

from __future__ import annotations

from trifecta.analysis.checks.evidence import Evidence, Finding, duration, worst
from trifecta.design.model import CheckResult

DISORDER_LIMIT_NS = 1_000_000
SLOW_SOURCES = ("hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit")  # microseconds a reading, or ticks


def check(evidence: Evidence) -> list[CheckResult]:
    """The client's clock readings lie within the runner's: both read CLOCK_MONOTONIC of one machine."""
    findings = []
    began, ended = evidence.row.get("started_ns"), evidence.row.get("ended_ns")
    load = evidence.load or {}
    load_began, load_ended = load.get("started_ns"), load.get("ended_ns")
    if None not in (began, ended, load_began, load_ended):
        early = int(began or 0) - int(load_began or 0)
        late = int(load_ended or 0) - int(ended or 0)
        off = max(early, late, int(load_began or 0) - int(load_ended or 0), 0)
        if off > DISORDER_LIMIT_NS:
            text = f"the client's clock readings lie {duration(off)} outside the trial: not one clock, or it was set"
            remedy = "run client and server on one machine, or measure the offset of their clocks"
            findings.append(Finding("fail", text, off, DISORDER_LIMIT_NS, remedy))
        else:
            text = "all times are of one CLOCK_MONOTONIC and in order"
            findings.append(Finding("pass", text, off, DISORDER_LIMIT_NS))
    source = evidence.facts.get("clocksource") if evidence.facts else None
    if source in SLOW_SOURCES:
        text = f"the kernel's clock source is {source}, which is slow and coarse"
        findings.append(Finding("warn", text, remedy="boot with clocksource=tsc where the processor allows it"))
    return worst(evidence, "clocks", findings)
