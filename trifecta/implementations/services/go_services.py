"""Services on Go's net/http (HTTP/1.1, HTTP/2) and quic-go (HTTP/3): a program of ours, ``programs/go-services``."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from trifecta.contract.common import Declared
from trifecta.implementations.recipes import PROGRAMS
from trifecta.implementations.recipes.go_program import GoProgram
from trifecta.implementations.server import Unsupported
from trifecta.implementations.services.program import ServicesProgram

_SHARED = ("clock.go", "classify.go", "classify_quic.go")  # of the client that is Go's, too
RECIPE = GoProgram("go-services", PROGRAMS / "go-services", [PROGRAMS / "go-client" / name for name in _SHARED])


class GoServices(ServicesProgram):
    """A goroutine for each request; connections are opened one by one, outside of net/http's pool."""

    name = "go-services"
    source = "built from this project and Go modules; `trifecta get go-services` (needs Go)"
    quic_congestion_control = "reno"
    recipe: GoProgram = RECIPE

    def find(self) -> str:
        """Versions of quic-go, and of the Go whose net/http and crypto/tls it holds."""
        try:
            done = subprocess.run([self.program(), "--version"], capture_output=True, text=True, check=True, timeout=30)
            told = json.loads(done.stdout)
            return f"quic-go {told['quic_go']}, {told['go']}"
        except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
            raise Unsupported(f"{self.name} does not run ({error}); trifecta get {self.name} --force") from error

    def program(self) -> Path:
        """In the cache."""
        return self.recipe.program()

    def declared(self) -> Declared:
        """TCP follows the lab's routes; quic-go has Reno only, and does not let it be chosen."""
        return {
            "congestion_control": {"tcp": "the route's", "quic": self.quic_congestion_control},
            "tls_library": "Go crypto/tls",
            "build": "CGO_ENABLED=0 -trimpath",
        }
