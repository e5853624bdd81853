"""A Python client: h11 and h2 over ssl, and aioquic; a program of ours, ``programs/python-client``."""

from __future__ import annotations

import platform
import ssl
from collections.abc import Iterator

from trifecta.contract.common import Declared
from trifecta.design.model import Protocol, RequestsWorkload
from trifecta.implementations.client import ClientAdapter, Job, Output, Row
from trifecta.implementations.clients import lines
from trifecta.implementations.recipes import PROGRAMS
from trifecta.implementations.recipes.python_packages import PythonPackages
from trifecta.implementations.server import Command, Unsupported

_FOLDER = PROGRAMS / "python-client"
RECIPE = PythonPackages("python-client", _FOLDER / "requirements.lock")
# ssl has no words for the groups and for the cipher suites of TLS 1.3; OpenSSL reads them here (config(5)).
_OPENSSL = """config_diagnostics = 1
openssl_conf = init
[init]
ssl_conf = ssl
[ssl]
system_default = tls
[tls]
Groups = {group}
{suites}
"""


class PythonClient(ClientAdapter):
    """One asyncio task for each request in flight, on one thread."""

    name = "python-client"
    source = "part of Trifecta (implementations/programs/python-client) and PyPI; `trifecta get python-client`"
    sets_nodelay = True
    recipe = RECIPE

    def find(self) -> str:
        """The versions of the libraries that speak HTTP."""
        return ", ".join(f"{package} {self.recipe.version(package)}" for package in ("aioquic", "h2", "h11"))

    def check_workload(self, workload: RequestsWorkload, protocol: Protocol, connection: str) -> None:
        """aioquic knows no post-quantum group, so the handshakes would not be the same work."""
        if workload.key_exchange == "X25519MLKEM768":
            raise Unsupported("aioquic does not know X25519MLKEM768; use X25519")

    def command(self, job: Job) -> Command:
        """Without what a user's environment says to Python (-E, -s), and without files beside the sources (-B)."""
        suites, group = f"Ciphersuites = {job.cipher}", job.key_exchange
        if job.tls_version == "1.2":
            suites, group = "", f"{group}:P-256"  # there the groups are also those of certificates (RFC 8422, 5.1.1)
        config = job.state / "openssl.cnf"
        config.write_text(_OPENSSL.format(group=group, suites=suites), encoding="utf-8")
        arguments = (self.recipe.python(), "-B", "-E", "-s", _FOLDER / "client.py", lines.write_job(job))
        return Command(arguments, {"OPENSSL_CONF": str(config), "SSLKEYLOGFILE": "", "QUICLOGDIR": ""})

    def start_only(self, job: Job) -> Command:
        """With everything imported that the protocol needs, and the certificates read."""
        command = self.command(job)
        return Command((*command.arguments, "--start"), command.environment)

    def rows(self, job: Job, output: Output) -> Iterator[Row]:
        """As the program wrote them."""
        return lines.read_rows(job, output)

    def declared(self) -> Declared:
        """TCP follows the lab's routes; windows are aioquic's 1 MiB on HTTP/2 and HTTP/3 alike."""
        return {
            "congestion_control": {"tcp": "the route's", "quic": "reno"},
            "tls_library": {"tcp": f"{ssl.OPENSSL_VERSION} by Python's ssl", "quic": "aioquic's own, on cryptography"},
            "flow_control_window_bytes": 1024 * 1024,
            "certificate_verified": True,
            "content_compared": True,
            "build": f"{platform.python_implementation()} {platform.python_version()}, asyncio",
        }
