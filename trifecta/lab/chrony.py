"""What chronyd says of a machine's clock, and how far the clock can be off by that (chronyc(1), tracking).

The bound is that page's own: the correction under way, the dispersion, and half of the delay to the servers at the
root, whose time it takes for right.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from trifecta.contract.machine import ChronyTracking

ASK = "command -v chronyc >/dev/null || { echo no chronyc; exit 0; }; exec chronyc -n -c tracking"
"""For ``sh``. chronyc itself gives up on a chronyd that is silent, after seconds."""
_NONE = "no chronyc"
_FIELDS = 14
_STRATUM, _CORRECTION, _DELAY, _DISPERSION, _LEAP = 2, 4, 10, 11, 13
_OWN_CLOCK = "7F7F0101"
"""The reference of a chronyd that takes its own clock for the time (directive `local`)."""
_SYNCHRONISED = ("Normal", "Insert second", "Delete second")


def read(report: str) -> ChronyTracking:
    """The answer to `ASK`: one line of values between commas, or why there is none."""
    last = report.strip().rpartition("\n")[2].strip()
    fields = last.split(",")
    if len(fields) != _FIELDS:
        words = "chrony is not installed" if last == _NONE else f"chronyc says: {last[:200]}"
        return _without(words if last else "chronyc prints nothing")
    try:
        stratum = int(fields[_STRATUM])
        correction, delay, dispersion = (_ns(fields[at]) for at in (_CORRECTION, _DELAY, _DISPERSION))
    except (ValueError, InvalidOperation, OverflowError):
        return _without(f"chronyc says: {last[:200]}")
    if delay < 0 or dispersion < 0:
        return _without(f"chronyc says: {last[:200]}")
    why = _unbounded(fields)
    return {
        "said": why,
        "stratum": stratum,
        "correction_ns": correction,
        "root_delay_ns": delay,
        "root_dispersion_ns": dispersion,
        "bound_ns": None if why else abs(correction) + dispersion + (delay + 1) // 2,
    }


def _unbounded(fields: list[str]) -> str:
    """Why its numbers bound nothing; empty where they do."""
    if fields[_LEAP] not in _SYNCHRONISED:
        return f"chronyd has no time yet ({fields[_LEAP]})"
    return "chronyd uses the machine's own clock as its reference" if fields[0] == _OWN_CLOCK else ""


def _ns(seconds: str) -> int:
    return round(Decimal(seconds) * 1_000_000_000)


def _without(why: str) -> ChronyTracking:
    return {
        "said": why,
        "stratum": None,
        "correction_ns": None,
        "root_delay_ns": None,
        "root_dispersion_ns": None,
        "bound_ns": None,
    }
