"""Values that a study may give apart for each protocol: ``128 B/1 kB/10 kB`` is HTTP/1.1, HTTP/2 and HTTP/3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from trifecta.design import quantity
from trifecta.design.protocols import PROTOCOL_NAMES, PROTOCOLS
from trifecta.design.quantity import QuantityError

BETWEEN = "/"
_ORDER: tuple[str, ...] = PROTOCOLS
Value = TypeVar("Value")
Octets: TypeAlias = "int | tuple[int, ...]"
"""A size; a tuple has one for each of `PROTOCOLS`."""


def one_or_three(value: Any, what: str, one: Callable[[Any], Value]) -> tuple[Value, ...]:
    """The one value, or that of each of `PROTOCOLS`; QuantityError for another number of them."""
    parts = [part.strip() for part in value.split(BETWEEN)] if isinstance(value, str) else [value]
    if len(parts) not in (1, len(PROTOCOLS)):
        names = BETWEEN.join(PROTOCOL_NAMES[protocol].partition("/")[2] for protocol in PROTOCOLS)
        raise QuantityError(f"{value!r} has {len(parts)} parts; give one {what}, or three for HTTP/{names}")
    values = tuple(map(one, parts))
    return values if len(set(values)) > 1 else values[:1]


def of(values: tuple[Value, ...], protocol: str) -> Value:
    """The value that counts for a protocol."""
    return values[_ORDER.index(protocol) % len(values)]


def parse_octets(value: Any) -> Octets:
    """A size, or one for each protocol."""
    values = one_or_three(value, "size", quantity.parse_size_bytes)
    return values if len(values) > 1 else values[0]


def format_octets(octets: Octets) -> str:
    """The text that :func:`parse_octets` reads back."""
    return BETWEEN.join(map(quantity.format_size, (octets,) if isinstance(octets, int) else octets))


def octets_over(octets: Octets, protocol: str) -> int:
    """The size that counts for a protocol."""
    return octets if isinstance(octets, int) else of(octets, protocol)


def one_size(octets: Octets) -> int:
    """The size of a workload as one protocol meets it; ValueError before `for_protocol`."""
    if not isinstance(octets, int):
        raise ValueError(f"{format_octets(octets)} differs by protocol")
    return octets


def largest(octets: Octets) -> int:
    """What no protocol's size exceeds: for estimates and limits."""
    return octets if isinstance(octets, int) else max(octets)
