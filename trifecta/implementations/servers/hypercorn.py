"""Hypercorn (https://hypercorn.readthedocs.io): asyncio with h11, h2 and aioquic, and an ASGI application of ours."""

from __future__ import annotations

import json
import subprocess
from functools import cache

from trifecta.contract.common import Declared
from trifecta.design.model import RequestsWorkload
from trifecta.implementations.recipes import PROGRAMS
from trifecta.implementations.recipes.python_packages import PythonPackages
from trifecta.implementations.server import Command, ServerAdapter, ServerOptions, Site, Unsupported
from trifecta.implementations.servers.replaying import refuse_pages

RECIPE = PythonPackages("hypercorn", PROGRAMS / "hypercorn" / "requirements.lock")
_LIBRARIES = ("h11", "h2", "aioquic", "pylsqpack", "cryptography")


class Hypercorn(ServerAdapter):
    """Serves the site's folder, and answers POST, PUT, PATCH and DELETE as the origin does; one process."""

    name = "hypercorn"
    source = "PyPI `hypercorn` with `aioquic`; `trifecta get hypercorn`"
    recipe = RECIPE
    refused_key_exchanges = frozenset({"X25519MLKEM768"})  # aioquic does not know it

    def find(self) -> str:
        """The version in the cache."""
        return self.recipe.version("hypercorn")

    def check_workload(self, workload: RequestsWorkload) -> None:
        """Hypercorn gives aioquic no place for session tickets, and Python's TLS takes no early data."""
        refuse_pages(workload, "Hypercorn")
        if workload.zero_rtt:
            raise Unsupported("Hypercorn does not accept 0-RTT; leave out zero_rtt, or use server: origin")

    def command(self, site: Site, options: ServerOptions) -> Command:
        """A program of ours sets Hypercorn up: what is pinned here has no place in its configuration files."""
        config = {
            "bind": site.endpoint,
            "folder": str(site.folder),
            "certificate": str(site.certificates.chain),
            "key": str(site.certificates.key),
            "tls_version": options.tls_version,
            "max_streams": options.max_streams,
            "qlog": str(site.qlog) if site.qlog else None,
        }
        path = site.state / "hypercorn.json"
        path.write_text(json.dumps(config, indent=2), encoding="utf-8")
        # -I: neither the user's own packages nor PYTHONPATH; -B: nothing is written into the package.
        return Command((self.recipe.python(), "-I", "-B", PROGRAMS / "hypercorn" / "serve.py", path))

    def declared(self, options: ServerOptions) -> Declared:
        """TCP follows the lab's routes and Hypercorn sets TCP_NODELAY; it keeps aioquic's default, Reno."""
        openssl, python = _built_with(self.recipe)
        return {
            "congestion_control": {"tcp": options.congestion_control, "quic": "reno"},
            "tcp_nodelay": True,
            "tls_library": f"{openssl} over TCP, aioquic over QUIC",
            "libraries": {"python": python, **{name: self.recipe.version(name) for name in _LIBRARIES}},
            "build": "asyncio, 1 worker",
        }


@cache
def _built_with(recipe: PythonPackages) -> tuple[str, str]:
    """Of OpenSSL and of Python, as the environment's interpreter tells them."""
    python = recipe.python()
    code = "import platform, ssl; print(ssl.OPENSSL_VERSION); print(platform.python_version())"
    try:
        done = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=True, timeout=10)
        openssl, version = done.stdout.splitlines()
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise Unsupported(f"{python} does not run ({error}); trifecta get {recipe.name} --force") from error
    return openssl, version
