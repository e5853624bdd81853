"""TCP connections that nobody closes, beside QUIC connections that are closed

## Why
In bourbon2020's text connections end: services of the chain "wait for response from the subsequent microservices to
close the connection" (5.4), in the fan-in it "ends when the response arrives" (5.5). Its client makes a
`http.Transport` for every request over HTTP/1.1 and HTTP/2 and never closes it (`services/tcp.go` of its repository);
over HTTP/3 it closes its own (`services/quic.go`, `defer roundTripper.Close()`). A leaked connection keeps its
goroutines and buffers in client and server until it has been idle for 30 s (IdleConnTimeout), 2,000 of them in a test.
What 6.1.2 says about figure 17, "HTTP/3 is the protocol with the lower memory footprint", is then about open
connections.

## Switch
`connection_leak=true` and new connections, with `go-services` instead of the engine's own; left out.

## Experiment
A chain of Go services, a new connection for every call, with the connections closed and leaked: memory and time.

## Notes
Over HTTP/3 nothing changes, as in the study. The longer a trial, the more connections leak: memory grows by what a
connection holds, until as many are closed in 30 s as are opened.
"""

from __future__ import annotations

from trifecta.design.document import Document
from trifecta.threats.changes import factors, of_go_services
from trifecta.threats.threat import Effect, Threat


def _leaking(document: Document) -> None:
    """server=go-services; connection=new; connection_leak=true"""
    of_go_services("connection_leak", True)(document)
    factors(document)["connection"] = ["new"]  # one that is used again does not leak


THREAT = Threat(
    id="connection-leak",
    docstring=__doc__,
    studies=("bourbon2020",),
    on=_leaking,
    off=of_go_services("connection_leak"),
    check="parity",
    evidence_words="does not close its connections",
    experiment="connection-leak",
    effects=(
        Effect("connection_leak", "false", "true", "rss_bytes", "memory of the services"),
        Effect("connection_leak", "false", "true", title="time of a cycle"),
    ),
    quick=("blocks={at_least: 4, at_most: 4}", "requests=200"),
    by_itself=("connection-leak",),
)
