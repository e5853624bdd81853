"""The version of the Internet Protocol below TCP and UDP: the field and factor ``ip``, and how addresses are written.

A workload has None for IPv4, as it was before there was a choice, so that the identity of older studies stays.
"""

from __future__ import annotations

from typing import Any

from trifecta.design.document import one_of, parse_text

IPV4, IPV6 = "IPv4", "IPv6"


def parse(value: Any) -> str | None:
    """``IPv6``, or None for ``IPv4``; QuantityError for another word."""
    text = parse_text(value)
    named = {name.lower(): name for name in (IPV4, IPV6)}
    text = one_of("a version of IP", IPV4, IPV6)(named.get(text.lower(), text))
    return None if text == IPV4 else text


def ip_document(value: str | None) -> str:
    """What a workload has, as a study file has it."""
    return value or IPV4


def version_of(address: str) -> str:
    """The version of an address in text."""
    return IPV6 if ":" in address else IPV4


def endpoint(address: str, port: int) -> str:
    """Address and port in one word, an address of IPv6 in brackets (RFC 3986, section 3.2.2)."""
    return f"[{address}]:{port}" if version_of(address) == IPV6 else f"{address}:{port}"
