"""Settings that a study may give apart for the two transports: ``bbr/cubic`` is BBR over TCP and Cubic over QUIC."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trifecta.design.document import one_of, parse_text
from trifecta.design.quantity import QuantityError

BETWEEN = "/"
APART = (
    "congestion_control", "tls_version", "initial_window", "pacing", "stream_window", "connection_window",
    "packet_threshold", "idle_window",
)  # fmt: skip
"""Attributes of a workload."""


def one_or_two(what: str, *choices: str) -> Callable[[Any], str]:
    """A parser for one of a few words, or two of them as ``TCP/QUIC``."""
    one = one_of(what, *choices)

    def parse(value: Any) -> str:
        halves = [one(half.strip()) for half in parse_text(value).split(BETWEEN)]
        if len(halves) > 2:
            raise QuantityError(f"{value!r} has {len(halves)} parts; write {what} for both transports, or TCP/QUIC")
        return halves[0] if len(set(halves)) == 1 else BETWEEN.join(halves)

    return parse


def over(value: str, protocol: str) -> str:
    """The part of such a value that counts for a protocol."""
    tcp, _, quic = value.partition(BETWEEN)
    return quic if quic and protocol == "h3" else tcp
