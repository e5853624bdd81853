"""A small file server of our own in Rust: Cloudflare's quiche for HTTP/3, hyper for HTTP/1.1 and HTTP/2."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

from trifecta.contract.common import Declared
from trifecta.design.model import RequestsWorkload
from trifecta.implementations.recipes import PROGRAMS
from trifecta.implementations.recipes.cargo_program import BORING_TOOLS, CargoProgram
from trifecta.implementations.server import Command, ServerAdapter, ServerOptions, Site, Unsupported
from trifecta.implementations.servers.replaying import refuse_pages

RECIPE = CargoProgram("quiche", PROGRAMS / "quiche-server", BORING_TOOLS)
_CONGESTION_CONTROLS = {"cubic": "cubic", "reno": "reno", "bbr": "bbr2"}  # quiche's names


class Quiche(ServerAdapter):
    """Serves the site's folder in one thread, and answers POST, PUT, PATCH and DELETE as the origin does."""

    name = "quiche"
    source = "part of Trifecta (implementations/programs/quiche-server), built with quiche; `trifecta get quiche`"
    program_name = "quiche"
    says_ready = b"quiche-server is ready"  # after both sockets are bound

    def program(self) -> Path:
        """In the cache, or that of a build; Unsupported, with the remedy, when it is not there."""
        return self.build or RECIPE.program()

    def find(self) -> str:
        """The version of quiche that it was built with."""
        return _versions(self.program())["quiche"]

    def check_workload(self, workload: RequestsWorkload) -> None:
        """The server takes no early data over TCP, so 0-RTT would be another thing on each protocol."""
        refuse_pages(workload, "quiche's server here")
        if workload.zero_rtt:
            raise Unsupported("quiche's server here takes no 0-RTT; leave out zero_rtt, or use server: origin")

    def command(self, site: Site, options: ServerOptions) -> Command:
        """All by options of the command line; it writes nothing but qlog."""
        certificates = site.certificates
        return Command(
            (
                self.program(),
                "--address", site.endpoint, "--folder", site.folder,
                "--certificate", certificates.chain, "--key", certificates.key,
                "--tls", options.tls_version, "--streams", str(options.max_streams),
                "--no-delay", str(options.tcp_nodelay).lower(),
                "--congestion-control", _CONGESTION_CONTROLS[options.congestion_control],
                *(("--qlog", site.qlog) if site.qlog else ()),
            )
        )  # fmt: skip

    def declared(self, options: ServerOptions) -> Declared:
        """TCP follows the lab's routes, quiche takes what is asked for; its BBR is version 2."""
        versions = _versions(self.program())
        return {
            "congestion_control": {"tcp": options.congestion_control, "quic": options.congestion_control},
            "tcp_nodelay": options.tcp_nodelay,
            "tls_library": f"BoringSSL of boring {versions['boring']}",
            "libraries": {name: versions[name] for name in ("quiche", "hyper")},
            "build": "cargo build --release --locked, thin LTO",
        }


@cache
def _versions(program: Path) -> dict[str, str]:
    """Of its libraries, as the program tells them: ``quiche 0.30.0 hyper 1.12.0 boring 5.4.0``."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True, timeout=10)
        words = done.stdout.split()
        versions = dict(zip(words[::2], words[1::2], strict=True))
        return {name: versions[name] for name in ("quiche", "hyper", "boring")}
    except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
        raise Unsupported(f"{program} does not report its versions ({error}); trifecta get quiche --force") from error
