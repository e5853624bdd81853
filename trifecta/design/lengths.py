"""How long a trial is: the fields ``requests``, ``duration`` and ``warmup`` of a workload, or of a path's ``trial``."""

from __future__ import annotations

from typing import Any

from trifecta.contract.values import JsonValue
from trifecta.design import quantity
from trifecta.design.document import Section
from trifecta.design.factors import CONNECTION_LEVELS, LENGTH_FIELDS
from trifecta.design.model import TrialLength
from trifecta.design.quantity import QuantityError


def _parse_warmup(value: Any) -> tuple[int, int]:
    """Requests and nanoseconds of a warm-up: ``20 requests`` or ``100 ms``."""
    text = str(value).strip()
    if text.endswith(("requests", "request")):
        return quantity.parse_count(text.removesuffix("s").removesuffix("request")), 0
    try:
        return 0, quantity.parse_time_ns(value)
    except QuantityError:
        raise QuantityError(f"{value!r} is not a warm-up; write for example '20 requests' or '100 ms'") from None


def read_length(section: Section) -> tuple[TrialLength, dict[str, JsonValue]]:
    """The length that a section asks for, validated, and its canonical form; the section may hold other fields too."""
    requests = section.parse("requests", quantity.parse_count, 0)
    duration_ns = section.parse("duration", quantity.parse_time_ns, 0)
    warmup_requests, warmup_ns = section.parse("warmup", _parse_warmup, (0, 0))
    if requests == 0 and duration_ns == 0:
        raise section.error(None, "a trial would never end; give requests, a duration, or both")
    if requests and warmup_requests > requests:
        raise section.error("warmup", f"is longer than the {requests} requests that are measured; make it shorter")
    if duration_ns and warmup_ns > duration_ns:
        measured = quantity.format_time(duration_ns)
        raise section.error("warmup", f"is longer than the {measured} that are measured; make it shorter")
    canonical: dict[str, JsonValue] = {}
    if requests:
        canonical["requests"] = requests
    if duration_ns:
        canonical["duration"] = quantity.format_time(duration_ns)
    if warmup_requests:
        canonical["warmup"] = f"{warmup_requests} requests"
    elif warmup_ns:
        canonical["warmup"] = quantity.format_time(warmup_ns)
    length = TrialLength(
        requests=requests, duration_ns=duration_ns, warmup_requests=warmup_requests, warmup_ns=warmup_ns
    )
    return length, canonical


def read_lengths(section: Section) -> tuple[TrialLength | dict[str, TrialLength], dict[str, JsonValue]]:
    """The ``trial`` of a path: one length, or one for each connection mode (``{new: {...}, reused: {...}}``)."""
    if not any(mode in section for mode in CONNECTION_LEVELS):
        section.allow(*LENGTH_FIELDS)
        return read_length(section)
    section.allow(*CONNECTION_LEVELS)
    lengths: dict[str, TrialLength] = {}
    canonical: dict[str, JsonValue] = {}
    for mode in CONNECTION_LEVELS:
        if mode in section:
            inner = section.section(mode)
            inner.allow(*LENGTH_FIELDS)
            lengths[mode], canonical[mode] = read_length(inner)
    return lengths, canonical
