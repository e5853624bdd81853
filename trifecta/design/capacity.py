"""What a direction of a path carries: its rate, or what its trace delivers in the mean."""

from __future__ import annotations

from collections.abc import Iterable

from trifecta.contract.impairments import ImpairmentDocument

ETHERNET_FRAME_BYTES = 1514  # MTU 1500 and its Ethernet header, without FCS: how the link counts


def bits_per_s(documents: Iterable[ImpairmentDocument]) -> float | None:
    """Of a direction, by the impairments on it; None where nothing limits it."""
    return min((rate for rate in map(_of_one, documents) if rate), default=None)


def _of_one(document: ImpairmentDocument) -> float:
    """A full frame at each opportunity of a trace; 0 of an impairment that does not limit."""
    if "bits_per_s" in document:
        return document["bits_per_s"]
    times = document.get("opportunities_ms")
    return len(times) * ETHERNET_FRAME_BYTES * 8e3 / times[-1] if times else 0.0
