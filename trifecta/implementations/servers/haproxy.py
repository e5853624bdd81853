"""HAProxy (https://www.haproxy.org) as a reverse proxy in front of the origin: its own HTTP and QUIC on OpenSSL."""

from __future__ import annotations

import re
from pathlib import Path
from string import Template
from typing import Any

from trifecta.implementations.recipes import PROGRAMS
from trifecta.implementations.recipes.debian import HAPROXY, Program
from trifecta.implementations.server import Backend, Command, ServerAdapter, ServerOptions, Site, Unsupported
from trifecta.implementations.servers.origin import BACKEND_ADDRESS, origin_backend

_GET = "trifecta get haproxy"
_QUIC_ALGORITHMS = {"cubic": "cubic", "reno": "newreno", "bbr": "bbr"}


class HAProxy(ServerAdapter):
    """Passes every request on to the origin, in one thread."""

    name = "haproxy"
    source = f"Debian sid in a private root (`{_GET}`), or 3.0 and later on PATH if built with QUIC"
    is_proxy = True

    def find(self) -> str:
        """Version of the program in the cache, or else on PATH if it knows HTTP/3."""
        return _built()[1]

    def backends(self, site: Site, options: ServerOptions) -> tuple[Backend, ...]:
        """The origin."""
        return (origin_backend(site, options),)

    def command(self, site: Site, options: ServerOptions) -> Command:
        """One file, filled in."""
        program, _, _, _ = _built()
        certificates = site.certificates
        path = site.state / "haproxy.cfg"
        template = Template((PROGRAMS / "haproxy" / "haproxy.cfg").read_text(encoding="utf-8"))
        early = "allow-0rtt" if options.zero_rtt else ""
        algorithm = _QUIC_ALGORITHMS[options.congestion_control]
        quic = f"bind quic4@{site.address}:{site.port} ssl crt @lab/site alpn h3 quic-cc-algo {algorithm} {early}"
        values = {
            "ADDRESS": site.address,
            "PORT": site.port,
            "BACKEND": BACKEND_ADDRESS,
            "NAME": f"{self.name}.lab",
            "CHAIN": _quoted(certificates.chain),
            "KEY": _quoted(certificates.key),
            "AUTHORITY": _quoted(certificates.authority),
            "TLS": options.tls_version,
            "STREAMS": options.max_streams,
            "EARLY": early,
            "QUIC": quic if options.tls_version == "1.3" else "",
        }
        path.write_text(template.substitute(values), encoding="utf-8")
        return Command((*program.arguments, "-db", "-f", path), program.environment)

    def declared(self, options: ServerOptions) -> dict[str, Any]:
        """TCP follows the lab's routes and HAProxy sets TCP_NODELAY; QUIC takes what is asked for."""
        program, _, tls, build = _built()
        congestion_control = {"tcp": options.congestion_control, "quic": options.congestion_control}
        found = {"congestion_control": congestion_control, "tcp_nodelay": True, "tls_library": tls}
        return found | {"build": f"{program.origin}; {build}"}


def _built() -> tuple[Program, str, str, str]:
    """The program; its version, TLS library and build options, as ``haproxy -vv`` tells them."""
    program = HAPROXY.locate("usr/sbin/haproxy")
    said = program.says("-vv")
    version = re.search(r"version (\d+)\.(\d+)[.-]\S+", said)
    if version is None or (int(version[1]), int(version[2])) < (3, 0) or "+QUIC " not in said:
        raise Unsupported(f"{program.arguments[-1]} is older than 3.0 or built without QUIC; run: {_GET}")
    library = re.search(r"Running on SSL library version : (.*)", said)
    options = re.search(r"OPTIONS = (.*)", said)
    return program, version[0].split()[1], library[1] if library else "unknown", options[1] if options else ""


def _quoted(path: Path) -> str:
    """A path as HAProxy reads it: nothing is special in single quotes, which end it."""
    if "'" in str(path):
        raise Unsupported(f"HAProxy cannot read the path {path}; choose a run folder without an apostrophe")
    return f"'{path}'"
