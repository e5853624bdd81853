"""Hypercorn as of spring 2023: 0.14.3, with h2 4.1 and aioquic 0.9; the program around it is the one of today's."""

from __future__ import annotations

from trifecta.contract.common import Declared
from trifecta.implementations.recipes import PROGRAMS
from trifecta.implementations.recipes.python_packages import PythonPackages
from trifecta.implementations.server import ServerOptions
from trifecta.implementations.servers.hypercorn import Hypercorn

# What was newest on 1 June 2023, but for aioquic, whose 0.9.20 has no wheel for Python 3.11 (0.9.21 of July has), and
# for cffi, which nothing measured runs through: that of the year has no wheel for Python 3.12.
RECIPE = PythonPackages("hypercorn-2023", PROGRAMS / "hypercorn-2023" / "requirements.lock")


class Hypercorn2023(Hypercorn):
    """As milicevic2023 had it, but for Python and its OpenSSL, which are this machine's.

    It leaves Nagle's algorithm on: Hypercorn turns it off only since 0.17, and asyncio only on sockets that were made
    with the protocol named. The second write of a response then waits for the client's delayed acknowledgement.
    """

    name = "hypercorn-2023"
    source = "PyPI `hypercorn` with `aioquic` of 2023; `trifecta get hypercorn-2023`"
    recipe = RECIPE

    def declared(self, options: ServerOptions) -> Declared:
        """As that of today, but for TCP_NODELAY."""
        return {**super().declared(options), "tcp_nodelay": False}
