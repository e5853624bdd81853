"""A file server of our own, of a few lines: Go's net/http and quic-go's http3 (https://quic-go.net)."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

from trifecta.contract.common import Declared
from trifecta.design.model import RequestsWorkload
from trifecta.implementations.recipes import PROGRAMS
from trifecta.implementations.recipes.go_program import GoProgram
from trifecta.implementations.server import Command, ServerAdapter, ServerOptions, Site, Unsupported
from trifecta.implementations.servers.replaying import refuse_pages

RECIPE = GoProgram("quic-go", PROGRAMS / "quic-go-server")


class QuicGo(ServerAdapter):
    """Serves the site's folder, and answers POST, PUT, PATCH and DELETE as the origin does."""

    name = "quic-go"
    source = "part of Trifecta (implementations/programs/quic-go-server), built with quic-go; `trifecta get quic-go`"
    program_name = "quic-go"

    def program(self) -> Path:
        """In the cache, or that of a build; Unsupported, with the remedy, when it is not there."""
        return self.build or RECIPE.program()

    def find(self) -> str:
        """The version of quic-go that it was built with."""
        return _versions(self.program())[0]

    def check_workload(self, workload: RequestsWorkload) -> None:
        """Go's TLS takes no early data over TCP, so 0-RTT would be another thing on each protocol."""
        refuse_pages(workload, "quic-go's server here")
        if workload.zero_rtt:
            raise Unsupported("Go accepts 0-RTT over HTTP/3 only; leave out zero_rtt, or use server: origin")

    def command(self, site: Site, options: ServerOptions) -> Command:
        """All by options of the command line; it writes nothing but qlog."""
        certificates = site.certificates
        return Command(
            (
                self.program(),
                "-address", site.endpoint, "-folder", site.folder,
                "-certificate", certificates.chain, "-key", certificates.key,
                "-tls", options.tls_version, "-streams", str(options.max_streams),
                f"-no-delay={str(options.tcp_nodelay).lower()}",
                *(("-qlog", site.qlog) if site.qlog else ()),
            )
        )  # fmt: skip

    def declared(self, options: ServerOptions) -> Declared:
        """TCP follows the lab's routes; quic-go always takes Reno, with a factor of 0.7 and 32 packets at first."""
        quic_go, go = _versions(self.program())
        return {
            "congestion_control": {"tcp": options.congestion_control, "quic": "reno"},
            "tcp_nodelay": options.tcp_nodelay,
            "tls_library": f"crypto/tls of {go}",
            "libraries": {"quic-go": quic_go, "net/http": go},
            "build": "CGO_ENABLED=0 -trimpath",
        }


@cache
def _versions(program: Path) -> tuple[str, str]:
    """Of quic-go and of Go, as the program tells them."""
    try:
        done = subprocess.run([program, "-version"], capture_output=True, text=True, check=True, timeout=10)
        quic_go, go = done.stdout.split()
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise Unsupported(f"{program} does not report its version ({error}); trifecta get quic-go --force") from error
    return quic_go.removeprefix("v"), go
