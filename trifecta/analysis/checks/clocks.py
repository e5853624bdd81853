"""Are all times from one clock and in order?

## Fails when
Clock readings of client and runner are out of order by more than 1 ms. A client on another host has its own clock: by
that clock it took over 1 ms longer than the runner waited for it.

## Warns when
The kernel's clock source takes a system call to read. Between hosts that both run chronyd: its clock offset contradicts
the probe's packets.

## Why
A duration is the difference of two readings of one clock. Between hosts, latencies use the client's clock alone, and
the probe's one-way times are known up to a bound: half the shortest round trip, or less. Where chronyd bounds both
clocks and agrees, the offset is what both bounds allow; where it disagrees, that of the packets.

## Sources
RFC 5905, 8 (the bound); chronyc(1), tracking (chronyd's).
"""

from __future__ import annotations

from trifecta.analysis.checks.evidence import Evidence, Finding, duration, worst
from trifecta.analysis.clock_offsets import Offset, agree
from trifecta.contract.stored import Probe
from trifecta.design.model import CheckResult

DISORDER_LIMIT_NS = 1_000_000
SLOW_SOURCES = ("hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit")  # microseconds a reading, or ticks


def check(evidence: Evidence) -> list[CheckResult]:
    """The client's clock readings lie within the runner's, where both read CLOCK_MONOTONIC of one machine."""
    if evidence.study.hosts or evidence.workload.distant:
        of_hosts = _of_its_own(evidence)
        return worst(evidence, "clocks", of_hosts + _by_chrony(evidence) if of_hosts else [])
    findings = []
    began, ended = evidence.row.get("started_ns"), evidence.row.get("ended_ns")
    load = evidence.load or {}
    load_began, load_ended = load.get("started_ns"), load.get("ended_ns")
    if None not in (began, ended, load_began, load_ended):
        early = int(began or 0) - int(load_began or 0)
        late = int(load_ended or 0) - int(ended or 0)
        off = max(early, late, int(load_began or 0) - int(load_ended or 0), 0)
        if off > DISORDER_LIMIT_NS:
            text = (
                f"the client's clock readings lie {duration(off)} outside the trial: two clocks, or the clock was set"
            )
            remedy = "run client and server on one machine, or measure the offset of their clocks"
            findings.append(Finding("fail", text, off, DISORDER_LIMIT_NS, remedy))
        else:
            text = "all times are from one CLOCK_MONOTONIC and in order"
            findings.append(Finding("pass", text, off, DISORDER_LIMIT_NS))
    source = evidence.facts.get("clocksource") if evidence.facts else None
    if source in SLOW_SOURCES:
        text = f"the kernel's clock source is {source}, which is slow and coarse"
        findings.append(Finding("warn", text, remedy="boot with clocksource=tsc where the processor allows it"))
    return worst(evidence, "clocks", findings)


def _of_its_own(evidence: Evidence) -> list[Finding]:
    """Latencies are differences on the client's clock; how far the server's is apart, the probe says with its bound."""
    load, probe = evidence.load or {}, evidence.probe or {}
    began, ended = load.get("started_ns"), load.get("ended_ns")
    if began is None or ended is None:
        return []
    # Clocks count alike within 1 part in 1,000: what the client says it took lies within what it was waited for.
    took, waited = ended - began, int(evidence.row.get("ended_ns") or 0) - int(evidence.row.get("started_ns") or 0)
    off = max(-took, took - waited - waited // 1000, 0)
    if off > DISORDER_LIMIT_NS:
        text = (
            f"by its own clock the client took {duration(off)} longer than the runner waited for it: its clock was set"
        )
        return [Finding("fail", text, off, DISORDER_LIMIT_NS, "do not set the clocks of hosts while a study runs")]
    text = "all latencies are from the client's CLOCK_MONOTONIC"
    if evidence.workload.outside:  # the server's clock is in nothing
        return [Finding("pass", text, off, DISORDER_LIMIT_NS)]
    whose, of = "the server's clock", ""
    if way := probe.get("wire"):  # among services: the first way between two hosts
        near, _, far = way.partition("-")
        whose, of = f"the clock of {far}'s host", f" of that of {near}'s"
    apart, bound = probe.get("clock_offset_ns"), probe.get("clock_bound_ns")
    if apart is None or bound is None:
        return [Finding("pass", f"{text}; the offset of {whose} is not known", off, DISORDER_LIMIT_NS)]
    text += f"; {whose} is {duration(apart)} ahead{of}, give or take {duration(bound)}"
    return [Finding("pass", text, off, DISORDER_LIMIT_NS)]


def _by_chrony(evidence: Evidence) -> list[Finding]:
    """Whether chronyd and the packets of the probe can both be right; nothing where there is one of them only."""
    probe = evidence.probe or Probe()
    packets = _claim(probe.get("clock_exchange_offset_ns"), probe.get("clock_exchange_bound_ns"))
    chrony = _claim(probe.get("clock_chrony_offset_ns"), probe.get("clock_chrony_bound_ns"))
    if packets is None or chrony is None:
        return []
    off, limit = abs(packets.offset_ns - chrony.offset_ns), packets.bound_ns + chrony.bound_ns
    sentences = [f"{one.offset_ns / 1e9:.6f} s, give or take {duration(one.bound_ns)}" for one in (packets, chrony)]
    if agree(packets, chrony):
        return [Finding("pass", f"chronyd on both hosts agrees ({sentences[1]})", off, limit)]
    text = (
        f"the far clock is ahead by {sentences[0]} according to the probe's packets, by {sentences[1]} according to "
        "chronyd"
    )
    remedy = "check the time servers of both hosts (`chronyc sources`); one-way times use the packets alone"
    return [Finding("warn", f"{text}: they contradict each other", off, limit, remedy)]


def _claim(offset_ns: int | None, bound_ns: int | None) -> Offset | None:
    return None if offset_ns is None or bound_ns is None else Offset(offset_ns, bound_ns)
