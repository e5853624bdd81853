"""A real proxy where HAProxy and Envoy are not installed: Caddy, which is, passes every request on to the origin."""

from __future__ import annotations

from typing import Any

from trifecta.design.ip import endpoint
from trifecta.implementations.server import Backend, ServerOptions, Site, host_name
from trifecta.implementations.servers.caddy import Caddy
from trifecta.implementations.servers.origin_backend import backend_address, origin_backend


class ProxyingCaddy(Caddy):
    """Finds the server behind it as the adapters of proxies do."""

    is_proxy = True

    def __init__(self, name: str) -> None:
        """In the place of the proxy of this name."""
        self.name = name

    def backends(self, site: Site, options: ServerOptions) -> tuple[Backend, ...]:
        return (origin_backend(site, options),)

    def _routes(self, site: Site, options: ServerOptions) -> list[dict[str, Any]]:
        authority = {"provider": "file", "pem_files": [str(site.certificates.authority)]}
        tls = {"server_name": host_name(self.name), "ca": authority}
        there = [{"dial": endpoint(backend_address(site), site.port)}]
        passing_on = {"handler": "reverse_proxy", "upstreams": there, "transport": {"protocol": "http", "tls": tls}}
        return [{"handle": [passing_on]}]
