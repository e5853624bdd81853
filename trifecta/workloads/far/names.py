"""What a name stands for, and whether its HTTPS record announces HTTP/3."""

from __future__ import annotations

import ipaddress
import socket
import time
from dataclasses import dataclass

import dns.exception
import dns.rdatatype
import dns.resolver
from dns.rdtypes.svcbbase import ALPNParam, ParamKey, SVCBBase

from trifecta.contract.far import HttpsRecord
from trifecta.design.errors import CannotError
from trifecta.design.far import FAMILIES, family_of

_RECORD_TIMEOUT_S = 3.0
_HTTPS_PORT = 443


@dataclass(frozen=True)
class Resolved:
    """All addresses of a name, in the order in which they were given, and how long that took."""

    addresses: tuple[str, ...]
    took_ns: int | None

    def of(self, level: str) -> list[str]:
        """Those that a level of the factor ``address`` stands for; an address stands for itself."""
        if level not in FAMILIES:
            return [level]
        return [one for one in self.addresses if family_of(one) == level]


def literal(host: str) -> Resolved | None:
    """The address that a host is by itself; None for a name."""
    try:
        return Resolved((str(ipaddress.ip_address(host)),), None)
    except ValueError:
        return None


def resolve(host: str, port: int) -> Resolved:
    """The addresses of a host by getaddrinfo(3), none is looked up for an address; CannotError when there is none."""
    if (own := literal(host)) is not None:
        return own
    began_ns = time.monotonic_ns()
    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise CannotError(f"{host} cannot be resolved: {error}; check the name and the resolver") from None
    took_ns = time.monotonic_ns() - began_ns
    bare = (str(entry[4][0]).partition("%")[0] for entry in entries)  # without the scope of a link-local address
    return Resolved(tuple(dict.fromkeys(bare)), took_ns)


def https_record(host: str, port: int) -> HttpsRecord | None:
    """The HTTPS record of a host (RFC 9460); None for an address, which has none."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        # Of another port the name has it in front (section 9.1).
        return _ask(host if port == _HTTPS_PORT else f"_{port}._https.{host}")
    return None


def _ask(name: str) -> HttpsRecord:
    try:
        answer = dns.resolver.Resolver().resolve(name, dns.rdatatype.HTTPS, lifetime=_RECORD_TIMEOUT_S)
    except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
        return {"found": False, "alpn": [], "error": None}
    except (dns.exception.DNSException, OSError) as error:
        return {"found": None, "alpn": [], "error": " ".join(str(error).split())[:200] or type(error).__name__}
    alpn: list[str] = []
    for record in answer:
        if isinstance(record, SVCBBase):
            given = record.params.get(ParamKey.ALPN)
            alpn += [one.decode("ascii", "replace") for one in given.ids] if isinstance(given, ALPNParam) else []
    return {"found": True, "alpn": list(dict.fromkeys(alpn)), "error": None}
