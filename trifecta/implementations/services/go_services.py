"""Services on Go's net/http (HTTP/1.1, HTTP/2) and quic-go (HTTP/3): a program of ours, ``programs/go-services``."""

from __future__ import annotations

from pathlib import Path

from trifecta.contract.common import Declared
from trifecta.implementations.recipes import PROGRAMS
from trifecta.implementations.recipes.go_program import GoProgram
from trifecta.implementations.recipes.patched_go import Change, PatchedGoProgram
from trifecta.implementations.services.program import ServicesProgram

_CLIENT, _SOURCE = PROGRAMS / "go-client", PROGRAMS / "go-services"
_QUIC = "quic.go"  # all that is of one version of quic-go
_SHARED = [_CLIENT / "clock.go", _CLIENT / "classify.go"]
RECIPE = GoProgram("go-services", _SOURCE, [*_SHARED, _CLIENT / "classify_quic.go"])

# quic-go 0.12.1 casts crypto/tls.ConnectionState to that of its own TLS, and does not start where the two differ in
# layout, as they do with today's Go: field by field instead, and no test. Session tickets still cast; they are off.
_FIELDS = (
    "Version", "HandshakeComplete", "DidResume", "CipherSuite", "NegotiatedProtocol", "ServerName", "PeerCertificates",
    "VerifiedChains",
)  # fmt: skip
_CRYPTO, _UNSAFE = "internal/handshake/crypto_setup.go", "internal/handshake/unsafe.go"
RECIPE_2019 = PatchedGoProgram(
    "go-services-2019",
    PROGRAMS / "go-services-2019",
    [*_SHARED, *sorted(file for file in _SOURCE.glob("*.go") if file.name != _QUIC)],
    "github.com/lucas-clemente/quic-go",
    (
        Change(_CRYPTO, '\t"unsafe"\n', ""),
        Change(
            _CRYPTO,
            "return *(*tls.ConnectionState)(unsafe.Pointer(&cs))",
            f"return tls.ConnectionState{{{', '.join(f'{name}: cs.{name}' for name in _FIELDS)}}}",
        ),
        Change(_UNSAFE, "func init() {\n", "func layoutsAreTheSame() {\n"),
    ),
)


class GoServices(ServicesProgram):
    """A goroutine for each request; connections are opened one by one, outside of net/http's pool."""

    name = "go-services"
    source = "built from this project and Go modules; `trifecta get go-services` (needs Go)"
    quic_congestion_control = "reno"
    recipe: GoProgram = RECIPE

    def find(self) -> str:
        """Versions of quic-go, and of the Go whose net/http and crypto/tls it holds."""
        return self.recipe.versions()

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


class GoServices2019(GoServices):
    """The same program with HTTP/3 as of August 2019: quic-go 0.12.1, draft 22 of QUIC and HTTP/3 (``h3-22``)."""

    name = "go-services-2019"
    source = "built from this project and Go modules of 2019; `trifecta get go-services-2019` (needs Go)"
    recipe = RECIPE_2019

    def declared(self) -> Declared:
        """QUIC has a TLS of its own, qtls, a copy of Go's as it was; TCP has today's."""
        return {
            **super().declared(),
            "congestion_control": {"tcp": "the route's", "quic": self.quic_congestion_control},
            "tls_library": {"tcp": "Go crypto/tls", "quic": "qtls 0.3.2"},
        }
