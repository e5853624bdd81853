"""HAProxy (https://www.haproxy.org) as a reverse proxy in front of the origin: its own HTTP and QUIC on OpenSSL."""

from __future__ import annotations

from pathlib import Path
from string import Template

from trifecta.contract.common import Declared
from trifecta.design import ip
from trifecta.design.model import RequestsWorkload
from trifecta.implementations.recipes import PROGRAMS
from trifecta.implementations.recipes.debian import HAPROXY, Program, program_of_build
from trifecta.implementations.server import Backend, Command, ServerAdapter, ServerOptions, Site, Unsupported, host_name
from trifecta.implementations.servers.origin_backend import backend_address, origin_backend

_GET = "trifecta get haproxy"
_LIMITED = "+QUIC_OPENSSL_COMPAT "


class HAProxy(ServerAdapter):
    """Passes every request on to the origin, in one thread."""

    name = "haproxy"
    has_timeouts = True
    source = f"Debian sid in a private root (`{_GET}`), or 3.0 and later on PATH if built with QUIC"
    is_proxy = True
    program_name = "haproxy"

    def find(self) -> str:
        """Version of the program in the cache, or else on PATH if it knows HTTP/3."""
        return self._find_program()[1]

    def program(self) -> Path:
        """The program."""
        return self._find_program()[0].file

    def check_workload(self, workload: RequestsWorkload) -> None:
        """Without OpenSSL's own QUIC interface (3.5) there is no early data over QUIC; BBR came with 3.1."""
        if workload.zero_rtt and _LIMITED in self._find_program()[0].says("-vv"):
            raise Unsupported(f"this HAProxy accepts 0-RTT over TCP only; leave out zero_rtt, or run: {_GET}")
        if workload.congestion_control == "bbr" and self.find().startswith("3.0"):
            raise Unsupported(f"HAProxy {self.find()} has no BBR for QUIC; use cubic, or run: {_GET}")

    def backends(self, site: Site, options: ServerOptions) -> tuple[Backend, ...]:
        """The origin."""
        return (origin_backend(site, options),)

    def command(self, site: Site, options: ServerOptions) -> Command:
        """One file, filled in."""
        program, _ = self._find_program()
        template = Template((PROGRAMS / "haproxy" / "haproxy.cfg").read_text(encoding="utf-8"))
        early = "allow-0rtt" if options.zero_rtt else ""
        algorithm = "newreno" if options.congestion_control == "reno" else options.congestion_control
        family = "quic6" if ip.version_of(site.address) == ip.IPV6 else "quic4"
        quic = f"bind {family}@{site.endpoint} ssl crt @lab/site alpn h3 quic-cc-algo {algorithm} {early}"
        backend = ip.endpoint(backend_address(site), site.port)
        values: dict[str, object] = {"ENDPOINT": site.endpoint, "BACKEND": backend, "NAME": host_name(self.name)}
        pki = site.certificates
        values |= {"CHAIN": _quoted(pki.chain), "KEY": _quoted(pki.key), "AUTHORITY": _quoted(pki.authority)}
        quic = quic if options.tls_version == "1.3" else ""
        values |= {"TLS": options.tls_version, "STREAMS": options.max_streams, "EARLY": early, "QUIC": quic}
        # RFC 7838; the frontend has both kinds of connections, those over QUIC need it no more.
        field = f"http-after-response set-header alt-svc 'h3=\":{site.port}\"; ma=86400' if !{{ req.ver 3.0 }}"
        # For a request's head, and between two moves of the client's ("timeout client"), not for all as in Go.
        read, write = options.read_timeout_ns, options.write_timeout_ns
        values |= {"READ": "" if read is None else f"timeout http-request {_time(read)}"}
        values |= {"WRITE": "1h" if write is None else _time(write), "ALT_SVC": field if options.alt_svc else ""}
        values |= {"LIMITED": "limited-quic" if _LIMITED in program.says("-vv") else ""}
        (path := site.state / "haproxy.cfg").write_text(template.substitute(values), encoding="utf-8")
        return Command((*program.arguments, "-db", "-f", path), program.environment)

    def declared(self, options: ServerOptions) -> Declared:
        """TCP follows the lab's routes and HAProxy sets TCP_NODELAY; QUIC takes what is asked for."""
        program, _ = self._find_program()
        tls = program.tells("-vv", "Running on SSL library version : (.*)")
        build = f"{program.origin}; {program.tells('-vv', 'OPTIONS = (.*)')}"
        controls = {"tcp": options.congestion_control, "quic": options.congestion_control}
        return {"congestion_control": controls, "tcp_nodelay": True, "tls_library": tls, "build": build}

    def _find_program(self) -> tuple[Program, str]:
        """The program and its version."""
        program = HAPROXY.locate("usr/sbin/haproxy") if self.build is None else program_of_build("haproxy", self.build)
        version = program.tells("-vv", r"HAProxy version (\d+\.\S+)")
        if version == "unknown" or int(version.split(".")[0]) < 3 or "+QUIC " not in program.says("-vv"):
            raise Unsupported(f"{program.file} is older than 3.0 or built without QUIC; {program.remedy}")
        return program, version


def _time(time_ns: int) -> str:
    """In milliseconds, rounded up, as a time of 0 would be none."""
    return f"{-(-time_ns // 1_000_000)}ms"


def _quoted(path: Path) -> str:
    """A path as HAProxy reads it: nothing is special in single quotes, which end it."""
    if "'" in str(path):
        raise Unsupported(f"HAProxy cannot read the path {path}; choose a run folder without an apostrophe")
    return f"'{path}'"
