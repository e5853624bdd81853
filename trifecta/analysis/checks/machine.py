"""Did the machine have CPU time for the trial?

## Fails when
The hypervisor took more than 10 % of the machine's CPU time, or other programs more than half.

## Warns when
At 1 % and 5 %; pressure on memory or disk; cores at different frequencies.

## Why
Other work comes and goes, and hits one arm more than another.

## Sources
Linux: /proc/stat, pressure stall information.
"""

from __future__ import annotations

from trifecta.analysis.checks.evidence import Evidence, Finding, worst
from trifecta.design.model import CheckResult

# Shares of the machine's whole CPU time. Other work makes noise, which the random order turns into wider intervals;
# beyond half of the machine the trial measures the other work.
STEAL_WARN, STEAL_FAIL = 0.01, 0.10
OTHER_WARN, OTHER_FAIL = 0.05, 0.50
MEMORY_PRESSURE_WARN = 0.05  # share of the time in which some task waited for memory (PSI)
IO_PRESSURE_WARN = 0.20
FREQUENCY_SPREAD_WARN = 1.5  # fastest core against slowest


def check(evidence: Evidence) -> list[CheckResult]:
    """Compare what others took with the limits; counters of 10 ms ticks are given their resolution as allowance."""
    machine = evidence.machine
    if not machine:
        return evidence.result("machine", "unknown", "the machine was not monitored")
    cpus = max(1, int(machine.get("cpus") or 1))
    allowance = float(machine.get("resolution") or 0.0) / cpus
    findings = []
    steal = machine.get("steal_share")
    if steal is not None:
        remedy = "use a machine with dedicated processors"
        findings.append(_share("the hypervisor took", float(steal) / cpus, allowance, (STEAL_WARN, STEAL_FAIL), remedy))
    other = machine.get("other_cpu_share")
    if other is not None:
        remedy = "stop other programs while a study runs"
        findings.append(_share("other programs used", float(other) / cpus, allowance, (OTHER_WARN, OTHER_FAIL), remedy))
    pressure = machine.get("pressure_share") or {}
    for name, limit in (("memory", MEMORY_PRESSURE_WARN), ("io", IO_PRESSURE_WARN)):
        share = pressure.get(name)
        if share is not None and share > limit:
            text = f"tasks waited for {name} {100 * share:.1f} % of the time"
            findings.append(Finding("warn", text, share, limit, "stop other work that uses memory or disk"))
    frequencies = [float(mhz) for mhz in machine.get("cpu_mhz") or [] if mhz]
    if frequencies and max(frequencies) / min(frequencies) > FREQUENCY_SPREAD_WARN:
        text = f"cores ran at {min(frequencies):.0f} to {max(frequencies):.0f} MHz"
        spread = max(frequencies) / min(frequencies)
        findings.append(
            Finding(
                "warn",
                text,
                spread,
                FREQUENCY_SPREAD_WARN,
                "set the CPU governor to performance (`cpupower frequency-set -g performance`)",
            )
        )
    return worst(evidence, "machine", findings)


def _share(what: str, share: float, allowance: float, limits: tuple[float, float], remedy: str) -> Finding:
    text = f"{what} {100 * share:.1f} % of the machine's CPU time"
    warn, fail = limits
    if share > fail + allowance:
        return Finding("fail", text, share, fail, remedy)
    if share > warn + allowance:
        return Finding("warn", text, share, warn, remedy)
    return Finding("pass", text, share, fail)
