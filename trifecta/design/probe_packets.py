"""The packets of the probe: how large they are, and how long a path of limited capacity takes to send them."""

from __future__ import annotations

from collections.abc import Iterable

from trifecta.contract.impairments import ImpairmentDocument
from trifecta.design import capacity
from trifecta.design.ip import IPV6
from trifecta.design.model import PathSpec

PAYLOAD_BYTES = 64
"""Of UDP, in a packet that measures delay and loss."""
_HEADERS_BYTES = 14 + 8  # of Ethernet, without FCS, as the link counts (IEEE 802.3), and UDP (RFC 768)
_IPV4_BYTES, _IPV6_BYTES = 20, 40  # RFC 791, 3.1; RFC 8200, 3


def sending_ns(path: PathSpec, ip: str) -> int:
    """How much a round trip of a probe's packet takes longer than the path's delay: it is sent at the rates."""
    return round(_ns(path.forward, ip) + _ns(path.backward, ip))


def least_interval_ns(path: PathSpec, ip: str, asked_ns: int) -> int:
    """The time between two packets: as asked, but no more than half of what the slower direction can carry."""
    return max(asked_ns, round(2 * max(_ns(path.forward, ip), _ns(path.backward, ip))))


def _ns(documents: Iterable[ImpairmentDocument], ip: str) -> float:
    bits = 8 * (PAYLOAD_BYTES + _HEADERS_BYTES + (_IPV6_BYTES if ip == IPV6 else _IPV4_BYTES))
    rate = capacity.bits_per_s(documents)
    return bits * 1e9 / rate if rate else 0.0
