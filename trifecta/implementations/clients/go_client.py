"""Go's net/http (HTTP/1.1, HTTP/2) and quic-go's http3 (HTTP/3): a program of ours, ``programs/go-client``."""

from __future__ import annotations

from collections.abc import Iterator

from trifecta.contract.common import Declared
from trifecta.implementations.client import ClientAdapter, Job, Output, Row
from trifecta.implementations.clients import lines
from trifecta.implementations.recipes import PROGRAMS
from trifecta.implementations.recipes.go_program import GoProgram
from trifecta.implementations.server import Command

RECIPE = GoProgram("go-client", PROGRAMS / "go-client")
OWN_TLS = "--own-tls"


class GoClient(ClientAdapter):
    """One goroutine for each request in flight; a transport is asked for each connection by itself."""

    name = "go-client"
    source = "built from this project and Go modules; `trifecta get go-client` (needs Go)"
    sets_nodelay = True

    def find(self) -> str:
        """Versions of quic-go, and of the Go whose net/http and crypto/tls it holds."""
        return RECIPE.versions()

    def command(self, job: Job) -> Command:
        """Without what a user's environment says of the runtime, or of proxies."""
        quiet = dict.fromkeys(("GODEBUG", "GOGC", "GOMAXPROCS", "GOMEMLIMIT", "SSLKEYLOGFILE", "QLOGDIR"), "")
        return Command((RECIPE.program(), lines.write_job(job)), quiet)

    def start_only(self, job: Job) -> Command:
        """Telling its version takes the whole program, too."""
        return Command((RECIPE.program(), "--version"))

    def rows(self, job: Job, output: Output) -> Iterator[Row]:
        """As the program wrote them."""
        return lines.read_rows(job, output)

    def declared(self) -> Declared:
        """TCP follows the lab's routes; quic-go has Reno only, and does not let it be chosen."""
        return {
            "congestion_control": {"tcp": "the route's", "quic": "reno"},
            "tls_library": "Go crypto/tls",
            "tls_13_cipher": "Go's choice, usually TLS_AES_128_GCM_SHA256",
            "certificate_verified": True,
            "content_compared": True,
            "build": "CGO_ENABLED=0 -trimpath",
        }


class GoClientOwnTLS(GoClient):
    """The same program, set up as much code is: a ``http.Transport`` with its own ``TLSClientConfig``, nothing else.

    net/http then speaks HTTP/1.1 (https://pkg.go.dev/net/http, Transport.ForceAttemptHTTP2): asked for HTTP/2, this
    client says nothing and speaks another protocol. It shows what the check ``protocol`` is for, and what such a
    mistake does to a result.
    """

    name = "go-client-own-tls"
    source = "the same program as go-client; `trifecta get go-client`"

    def command(self, job: Job) -> Command:
        """As go-client's, with the option."""
        command = super().command(job)
        program, config = command.arguments
        return Command((program, OWN_TLS, config), command.environment)
