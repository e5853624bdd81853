"""The Python client with the libraries of spring 2023: aioquic 0.9, h2 4.1, h11 0.14; the program is the same."""

from __future__ import annotations

from trifecta.design.model import Protocol, RequestsWorkload
from trifecta.implementations.clients.python_client import PythonClient
from trifecta.implementations.recipes import PROGRAMS
from trifecta.implementations.recipes.python_packages import PythonPackages
from trifecta.implementations.server import Unsupported

# What was newest on 1 June 2023, but for aioquic and cffi (`servers.hypercorn_2023` says why).
RECIPE = PythonPackages("python-client-2023", PROGRAMS / "python-client-2023" / "requirements.lock")


class PythonClient2023(PythonClient):
    """As old as the client of milicevic2023, but for Python and its OpenSSL, which are this machine's."""

    name = "python-client-2023"
    source = "part of Trifecta (implementations/programs/python-client) and PyPI; `trifecta get python-client-2023`"
    recipe = RECIPE

    def check_workload(self, workload: RequestsWorkload, protocol: Protocol, connection: str) -> None:
        """aioquic 0.9 makes no key share for secp384r1."""
        super().check_workload(workload, protocol, connection)
        if protocol == "h3" and workload.key_exchange == "secp384r1":
            raise Unsupported("aioquic 0.9 has no key share of secp384r1; use X25519 or secp256r1")
