"""The engine's ``origin`` behind a proxy."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_address

from msgspec import structs

from trifecta.contract.codec import encode_pretty
from trifecta.implementations.server import Backend, Command, ServerOptions, Site
from trifecta.implementations.servers.origin import Origin

BACKEND_ADDRESS, BACKEND_ADDRESS_6 = "127.0.0.2", "::1"  # loopback, on the site's port: no site of a lab is there
BACKEND_LINK = "HTTP/1.1 over TLS 1.3, kept alive, loopback"
_BACKEND_IDLE_NS = 24 * 3600 * 1_000_000_000


def backend_address(site: Site) -> str:
    """Where the server behind a proxy is, of the version of IP that the proxy itself is asked over."""
    asked_at = ip_address(site.address)
    # A site at ::1 has the port there, and IPv6 has no other address of loopback (RFC 4291, section 2.5.3).
    return BACKEND_ADDRESS_6 if asked_at.version == 6 and not asked_at.is_loopback else BACKEND_ADDRESS


def origin_backend(site: Site, options: ServerOptions) -> Backend:
    """The origin behind a proxy, at ``backend_address`` and the site's port.

    TLS, because the origin speaks nothing else; its certificate is the site's, for a proxy to verify by the name
    ``NAME.lab``. HTTP/1.1, because every proxy speaks it to its backend, and requests there do not wait for each other.
    Idle connections stay open for a day: a proxy that reuses one at the moment it is closed would fail a request.
    """
    state = site.state / "backend"
    state.mkdir(parents=True, exist_ok=True)
    there = replace(site, address=backend_address(site), state=state, qlog=None)
    origin = Origin()
    config = origin.config(there, replace(options, tls_version="1.3", zero_rtt=False))
    path = state / "origin.json"
    config = structs.replace(config, protocols=("h1",), idle_timeout_ns=_BACKEND_IDLE_NS)
    path.write_text(encode_pretty(config), encoding="utf-8")
    return Backend(origin.name, origin.find(), Command((origin.program(), "origin", path)), BACKEND_LINK)
