"""timeouts of a server that turn slow responses into failures

## Why
Go's http.Server with WriteTimeout 1 s and ReadTimeout 5 s, as in bourbon2020 (`services/tcp.go` of its repository),
aborts a response that is not written in time (net/http, Server): over HTTP/1.1 the connection closes, over HTTP/2 the
stream is reset, and Caddy's content over HTTP/3 just ends early. On a slow path, what would only take longer fails: a
success rate below 100 %, as that study published for HTTP/1.1 and HTTP/2, is then a setting of the server. Its HTTP/3
was given the same (`services/quic.go`), but quic-go ignores both: its HTTP/3 could not fail this way. nginx's
send_timeout and HAProxy's `timeout client` apply between two writes: the same 1 s fails nothing there.

## Switch
`write_timeout=1s` and `read_timeout=5s`, none; for services with `go-services` instead of the engine's own.

## Experiment
1 MB over 4 Mbit/s from Caddy; with `--full` from nginx and HAProxy too. A chain of Go services over the study's path
with loss, where each waits for those behind it.

## Notes
Caddy, which is Go's `http.Server` and quic-go, resets the stream over HTTP/2 and ends the content early over HTTP/3.
nginx (`client_header_timeout`, `client_body_timeout`, `send_timeout`) and HAProxy (`timeout http-request`, `timeout
client`) limit the time between two writes, not that of a response: slow progress is not aborted. net/http also applies
the shorter of the two limits to a TLS handshake. `origin`, Envoy, Hypercorn, quic-go and quiche do not support the two
timeouts (`has_timeouts` of an adapter): with `--with server-timeouts` they are left out with the reason, and a study of
`origin` alone cannot run with it (add `--server caddy`). Go services have them over TCP only, like the study's.
"""

from __future__ import annotations

from trifecta.design.document import Document
from trifecta.design.errors import UserError
from trifecta.threats.changes import SERVICES, kind, on_go, put
from trifecta.threats.threat import Change, Effect, Threat


def _timeouts(write: str, read: str) -> Change:
    def change(document: Document) -> None:
        if kind(document) in SERVICES and write != "none":
            on_go(document)
        elif kind(document) not in (*SERVICES, "requests"):
            raise UserError(f"only servers of requests and Go services have timeouts, and this is {kind(document)!r}")
        put(document, "write_timeout", write)
        put(document, "read_timeout", read)

    change.__doc__ = f"write_timeout={write}; read_timeout={read}"
    return change


_SERVICES = "server-timeouts-services"
THREAT = Threat(
    id="server-timeouts",
    docstring=__doc__,
    studies=("bourbon2020",),
    on=_timeouts("1 s", "5 s"),
    off=_timeouts("none", "none"),
    check="errors",
    tells_apart=False,
    experiment="server-timeouts",
    effects=(
        Effect("write_timeout", "none", "1 s", metric="success_rate", title="requests that succeed"),
        Effect(
            "write_timeout", "none", "1 s", metric="success_rate", title="a chain of Go services, with losses",
            experiment=_SERVICES,
        ),
    ),
    quick=("blocks={at_least: 3, at_most: 3}", "requests=1", "server=caddy"),
    quick_of=((_SERVICES, ("blocks={at_least: 4, at_most: 4}", "protocol=HTTP/2,HTTP/3")),),
    by_itself=(_SERVICES,),
)  # fmt: skip
