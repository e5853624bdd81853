"""The fields of requests to servers elsewhere, and what is looked for in their answers."""

from __future__ import annotations

import ipaddress
import re
from typing import Any

from trifecta.design import quantity
from trifecta.design.document import parse_flag, parse_text
from trifecta.design.fields import Field, positive_count
from trifecta.design.ip import IPV4, IPV6
from trifecta.design.machine import parse_machine
from trifecta.design.quantity import QuantityError

AS_IS = "as-is"
"""The level of the factor ``path``: nothing of it is emulated."""
ELSEWHERE = "elsewhere"
"""The level of the factor ``server``: whatever answers there."""
FAMILIES = (IPV4, IPV6)
"""Levels of ``address`` for which the name is resolved anew for every block."""
CACHE_FIELDS = ("x-cache", "cf-cache-status", "x-vercel-cache", "x-drupal-cache", "cache-status")
PLACE_FIELDS = ("via", "x-served-by", "x-amz-cf-pop", "cf-ray", "x-vercel-id")
"""Of these `trifecta.analysis.far` reads where an answer came from."""
RECORDED = ("age", *CACHE_FIELDS, *PLACE_FIELDS, "server", "server-timing", "alt-svc", "retry-after", "location")
_URL = re.compile(r"https://[^\s,\x00-\x1f\x7f]{1,1000}")
_HOST = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")
_LONGEST_NAME = 253  # RFC 1035, 2.3.4, as text
MOST_HOSTS = 100  # of one page: a browser is told each


def parse_url(value: Any) -> str:
    """A URL as far as a study can tell; that it can be asked for is found before anything starts."""
    text = parse_text(value)
    if "," in text:
        raise QuantityError(f"{text!r} has a comma, which parts the levels of a cell; write %2C")
    if not _URL.fullmatch(text):
        raise QuantityError(f"{text[:80]!r} is not a URL that can be measured; give one like https://www.example.org/")
    return text


def parse_address(value: Any) -> str:
    """``IPv4``, ``IPv6``, or an IP address in its shortest form."""
    text = parse_text(value)
    family = next((name for name in FAMILIES if name.lower() == text.lower()), None)
    if family is not None:
        return family
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        wanted = "give IPv4, IPv6, or an address like 192.0.2.1 or 2001:db8::1"
        raise QuantityError(f"{text!r} is not an address; {wanted}") from None


def parse_vantage(value: Any) -> str:
    """``here``, or ``ssh://USER@HOST:PORT``."""
    return parse_machine(value).at


def family_of(address: str) -> str:
    """``IPv4`` or ``IPv6``, of a level of the factor ``address``."""
    if address in FAMILIES:
        return address
    return f"IPv{ipaddress.ip_address(address).version}"


def is_host(text: str) -> bool:
    """Whether it is the name of a host, in lower case: it goes into the flags of browsers."""
    return len(text) <= _LONGEST_NAME and _HOST.fullmatch(text) is not None


def parse_hosts(value: Any) -> tuple[str, ...]:
    """Names of hosts, with blanks between them, each once."""
    hosts = tuple(dict.fromkeys(parse_text(value).lower().split()))
    for host in hosts:
        if not is_host(host):
            raise QuantityError(f"{host[:80]!r} is not the name of a host; write names with blanks between them")
    if len(hosts) > MOST_HOSTS:
        raise QuantityError(f"{len(hosts)} hosts are too many; give {MOST_HOSTS} at most")
    return hosts


def _pace(value: Any) -> float:
    per_s = quantity.parse_frequency_per_s(value)
    if per_s <= 0:
        raise QuantityError(f"{value!r} is no pace; give more than 0, such as '2/s'")
    return per_s


def _positive_size(value: Any) -> int:
    size = quantity.parse_size_bytes(value)
    if size == 0:
        raise QuantityError(f"{value!r} leaves no room for an answer; give more than 0")
    return size


def _owned(value: Any) -> bool | None:
    """True; None for false, so that it is written only where it is claimed."""
    return parse_flag(value) or None


FAR_FIELDS = (
    Field("url", "url", parse_url),
    Field("address", "address", parse_address),
    Field("ca", "ca", parse_text, factor=False),
    Field("owned", "owned", _owned, bool, factor=False),
    Field("pace", "pace_per_s", _pace, quantity.format_frequency, factor=False),
    Field("volume", "volume_bytes", _positive_size, quantity.format_size, factor=False),
    Field("most_requests", "most_requests", positive_count, factor=False),
    Field("most_volume", "most_bytes", _positive_size, quantity.format_size, factor=False),
)
FAR_VANTAGE_FIELDS = (Field("vantage", "vantage", parse_vantage),)
FAR_PAGE_FIELDS = (Field("third_parties", "third_parties", parse_hosts, " ".join, factor=False),)
