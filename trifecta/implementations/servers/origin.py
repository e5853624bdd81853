"""Trifecta's own server: the engine's ``origin``."""

from __future__ import annotations

import json
from typing import Any

from trifecta.implementations.server import Command, ServerAdapter, ServerOptions, Site
from trifecta.lab.engine import engine_versions, find_engine


class Origin(ServerAdapter):
    """The same handler behind HTTP/1.1, HTTP/2 and HTTP/3, written to cost little."""

    name = "origin"
    source = "part of Trifecta (engine/crates/origin); built by `make setup`"

    def find(self) -> str:
        """The engine's version."""
        return str(engine_versions(find_engine())["engine"])

    def command(self, site: Site, options: ServerOptions) -> Command:
        """The engine with a configuration file (docs/architecture.md, section 1.2)."""
        config = site.state / "origin.json"
        config.write_text(json.dumps(self.config(site, options), indent=2), encoding="utf-8")
        return Command((find_engine(), "origin", config))

    def config(self, site: Site, options: ServerOptions) -> dict[str, Any]:
        """What the engine is asked to serve; ``/bytes/N`` comes from memory, so no folder is needed."""
        return {
            "address": site.address,
            "port": site.port,
            "certificate_file": str(site.certificates.chain),
            "key_file": str(site.certificates.key),
            "protocols": ["h1", "h2", "h3"],
            "congestion_control": options.congestion_control,
            "tcp_nodelay": options.tcp_nodelay,
            "tls_versions": [options.tls_version],
            "zero_rtt": options.zero_rtt,
            "max_concurrent_streams": options.max_streams,
        }

    def declared(self, options: ServerOptions) -> dict[str, Any]:
        """What was asked of the engine."""
        return {
            "congestion_control": {"tcp": options.congestion_control, "quic": options.congestion_control},
            "tcp_nodelay": options.tcp_nodelay,
        }
