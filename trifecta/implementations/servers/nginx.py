"""nginx (https://nginx.org): its own HTTP/1.1, HTTP/2, QUIC and HTTP/3 on OpenSSL, serving static files."""

from __future__ import annotations

from pathlib import Path
from string import Template

from trifecta.contract.common import Declared
from trifecta.design.model import RequestsWorkload
from trifecta.implementations.recipes import PROGRAMS
from trifecta.implementations.recipes.debian import NGINX, Program, program_of_build
from trifecta.implementations.server import Command, ServerAdapter, ServerOptions, Site, Unsupported
from trifecta.implementations.servers.nginx_directives import flag, timeouts
from trifecta.implementations.servers.nginx_replay import ReplayConfig, quoted_path
from trifecta.pages.archive import read_page

_GET = "trifecta get nginx"


class Nginx(ServerAdapter):
    """Serves the site's folder as static files, or a page archive, in one process."""

    name = "nginx"
    has_timeouts = True
    chooses_protocols = True
    stands_alone = True
    source = f"Debian sid in a private root (`{_GET}`), or on PATH if built with HTTP/3"
    program_name = "nginx"

    def find(self) -> str:
        """Version of the program in the cache, or else on PATH if it knows HTTP/3."""
        return ".".join(map(str, self._find_program()[1]))

    def program(self) -> Path:
        """The program."""
        return self._find_program()[0].file

    def check_workload(self, workload: RequestsWorkload) -> None:
        """Static files answer GET and HEAD only; 0-RTT over QUIC came with 1.29.1 and OpenSSL's own QUIC interface."""
        if workload.method not in ("GET", "HEAD"):
            raise Unsupported(f"nginx's static files refuse {workload.method}; use GET or HEAD, or server: origin")
        if workload.zero_rtt and self._find_program()[1] < (1, 29, 1):
            raise Unsupported(f"nginx accepts 0-RTT over HTTP/3 from 1.29.1 on; this is {self.find()}; run: {_GET}")
        if workload.place not in (None, "native") and (self.build or not NGINX.installed()):
            raise Unsupported(f"of another nginx it is not known what it needs in a container; run: {_GET}")

    def command(self, site: Site, options: ServerOptions) -> Command:
        """One file, filled in; the folder of its own is nginx's prefix."""
        # QUIC needs TLS 1.3 (RFC 9001 section 4.2). The default buffer overflows when 200 connections begin at a time.
        over_quic = options.tls_version == "1.3" and "h3" in options.offered
        quic = f"listen {site.endpoint} quic rcvbuf=4m;" if over_quic else ""
        page = read_page(site.replay) if site.replay else None
        (site.state / "empty").touch()  # what a response without content is read from
        answers = ReplayConfig(site, options, page)
        values: dict[str, object] = {"ENDPOINT": site.endpoint, "QUIC": quic}
        values |= {"HTTP": "\n    ".join(answers.http), "SERVER": "\n        ".join(answers.server)}
        values |= {"CHAIN": quoted_path(site.certificates.chain), "KEY": quoted_path(site.certificates.key)}
        values |= {"TLS": options.tls_version, "STREAMS": options.max_streams, "ROOM": 3 * options.max_streams}
        values |= {"HTTP2": flag("h2" in options.offered), "NODELAY": flag(options.tcp_nodelay)}
        values |= {"TIMEOUTS": "\n    ".join(timeouts(options)), "EARLY": flag(options.zero_rtt)}
        path = site.state / "nginx.conf"
        template = Template((PROGRAMS / "nginx" / "nginx.conf").read_text(encoding="utf-8"))
        path.write_text(template.substitute(values), encoding="utf-8", errors="surrogateescape")
        program = self._find_program()[0]
        command: tuple[str | Path, ...] = (*program.arguments, "-p", f"{site.state}/", "-c", path, "-e", "stderr")
        return Command(command, program.environment, reads=(NGINX.folder(),) if NGINX.installed() else ())

    def declared(self, options: ServerOptions) -> Declared:
        """TCP follows the lab's routes; QUIC has CUBIC since 1.27.5 and New Reno before, and no setting for it."""
        program, version = self._find_program()
        return {
            "congestion_control": {
                "tcp": options.congestion_control,
                "quic": "cubic" if version >= (1, 27, 5) else "reno",
            },
            "tcp_nodelay": options.tcp_nodelay,
            "tls_library": program.tells("-V", r"(?:built|running) with ((?:Open|Libre|Boring)SSL[^\n()]*)"),
            "build": f"{program.origin}; {program.tells('-V', 'configure arguments: (.*)')}",
        }

    def _find_program(self) -> tuple[Program, tuple[int, ...]]:
        """The program and its version."""
        program = NGINX.locate("usr/sbin/nginx") if self.build is None else program_of_build("nginx", self.build)
        version = program.tells("-V", r"nginx/(\d+\.\d+\.\d+)")
        if version == "unknown" or "--with-http_v3_module" not in program.says("-V"):
            raise Unsupported(f"{program.file} is built without HTTP/3; {program.remedy}")
        return program, tuple(map(int, version.split(".")))
