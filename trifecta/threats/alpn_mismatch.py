"""a client that is asked for HTTP/2 and speaks HTTP/1.1

## Why
Go's http.Transport with its own TLSClientConfig speaks HTTP/1.1 unless ForceAttemptHTTP2 or Protocols say otherwise
(https://pkg.go.dev/net/http, Transport.ForceAttemptHTTP2), and does not report it. bourbon2020's HTTP/2 was such a
client: its figures for HTTP/2 are those of HTTP/1.1.

## Switch
Client `go-client-own-tls` instead of `go-client`, and back; for services `alpn_mismatch`, with `go-services` instead of
the engine's own.

## Experiment
Ten requests in flight over 10 ms and 1 % loss, after the congestion windows have settled: HTTP/1.1 has ten
connections, HTTP/2 one.

## Notes
`go-client-own-tls` is such a client. Without the long warm-up the first half of a trial is slow start and the second
has the window that losses leave: `steady_state` then excluded 10 of 24 trials, and two to three blocks decided nothing.
"""

from __future__ import annotations

from trifecta.design.document import Document
from trifecta.design.errors import UserError
from trifecta.design.factors import CLIENT_FACTOR
from trifecta.threats.changes import SERVICES, kind, of_go_services
from trifecta.threats.threat import Change, Effect, Threat

RIGHT, WRONG = "go-client", "go-client-own-tls"


def _switch(old: str, new: str) -> Change:
    """A change of the client in a study's levels; a study that names none is given one to switch the threat on."""

    def change(document: Document) -> None:
        if kind(document) in SERVICES:
            of_go_services("alpn_mismatch", True if new == WRONG else None)(document)
            return
        if kind(document) != "requests":
            raise UserError("needs a study of requests, whose client can be chosen, or of services")
        factors = document.tree.setdefault("factors", {})
        levels = factors.get(CLIENT_FACTOR)
        given = levels if isinstance(levels, list) else [] if levels is None else [levels]
        if old in given:
            factors[CLIENT_FACTOR] = list(dict.fromkeys(new if level == old else level for level in given))
        elif new == WRONG and not given:
            factors[CLIENT_FACTOR] = [new]
        else:
            raise UserError(f"no client {old!r} in this study; there is nothing to switch")

    return change


THREAT = Threat(
    id="alpn-mismatch",
    docstring=__doc__,
    studies=("bourbon2020",),
    on=_switch(RIGHT, WRONG),
    off=_switch(WRONG, RIGHT),
    check="protocol",
    evidence_words="another protocol",
    experiment="alpn-mismatch",
    effects=(Effect(CLIENT_FACTOR, RIGHT, WRONG),),
    quick=("blocks={at_least: 4, at_most: 4}",),
)
