"""Caddy as of December 2022: 2.6.2 with quic-go 0.29.2, built by Go 1.19 as its releases were."""

from __future__ import annotations

from pathlib import Path

from trifecta.contract.common import Declared
from trifecta.implementations.recipes import PROGRAMS
from trifecta.implementations.recipes.old_go import OldGoProgram
from trifecta.implementations.server import ServerOptions
from trifecta.implementations.servers.caddy import Caddy

# quic-go 0.29 refuses to be compiled by Go 1.20 and later: it has a copy of each Go's crypto/tls.
RECIPE = OldGoProgram("caddy-2022", PROGRAMS / "caddy-2022", go="1.19", suite="bookworm")


class Caddy2022(Caddy):
    """As ding2022 had it: the release that was current when it captured."""

    name = "caddy-2022"
    source = "built from Go modules of 2022; `trifecta get caddy-2022` (needs apt with a Debian archive)"
    remedy = "trifecta get caddy-2022 --force"
    program_name = ""  # it is that build and no other
    refused_key_exchanges = Caddy.refused_key_exchanges | {"X25519MLKEM768"}  # newer than it is

    def program(self) -> Path:
        """In the cache."""
        return RECIPE.program()

    def declared(self, options: ServerOptions) -> Declared:
        """QUIC has a TLS of its own, qtls, a copy of Go's."""
        return {**super().declared(options), "tls_library": {"tcp": "Go crypto/tls", "quic": "qtls-go1-19"}}
