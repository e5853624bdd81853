"""timeouts of a server that turn slow responses into failures

## Why
Go's http.Server with WriteTimeout 1 s and ReadTimeout 5 s, as bourbon2020 had it, ends a response that is not out in
time (net/http, Server): over HTTP/1.1 the connection closes, over HTTP/2 the stream is reset, and Caddy's content
over HTTP/3 just ends early. On a slow path what would only take longer fails: a success rate below 100 %, as that
study published it for HTTP/1.1 and HTTP/2, is then a setting of the server's. nginx's send_timeout and HAProxy's
`timeout client` are between two writes: the same 1 s fails nothing there.

## Switch
`write_timeout=1s` and `read_timeout=5s`, none.

## Experiment
1 MB over 4 Mbit/s from Caddy; with `--full` from nginx and HAProxy too.

## Notes
Caddy, which is Go's `http.Server` and quic-go, resets the stream over HTTP/2 and ends the content early over HTTP/3.
nginx (`client_header_timeout`, `client_body_timeout`, `send_timeout`) and HAProxy (`timeout http-request`, `timeout
client`) limit the time between two writes, not that of a response: what goes on slowly is not ended. `origin`, Envoy,
Hypercorn and quic-go cannot be given the two timeouts (`has_timeouts` of an adapter): with `--with server-timeouts`
they are left out with the reason, and a study of `origin` alone cannot run with it (add `--server caddy`), nor can
one of services, which are origins.
"""

from __future__ import annotations

from trifecta.design.document import Document
from trifecta.design.errors import UserError
from trifecta.threats.changes import kind, workload
from trifecta.threats.threat import Change, Effect, Threat


def _timeouts(write: str, read: str) -> Change:
    def change(document: Document) -> None:
        if kind(document) != "requests":
            raise UserError(f"servers of the workload requests only have timeouts, and this is {kind(document)!r}")
        factors = document.tree.get("factors")
        for name, value in (("write_timeout", write), ("read_timeout", read)):
            if isinstance(factors, dict):
                factors.pop(name, None)
            workload(document)[name] = value

    change.__doc__ = f"write_timeout={write}; read_timeout={read}"
    return change


THREAT = Threat(
    id="server-timeouts",
    docstring=__doc__,
    studies=("bourbon2020",),
    on=_timeouts("1 s", "5 s"),
    off=_timeouts("none", "none"),
    check="errors",
    experiment="server-timeouts",
    effects=(Effect("write_timeout", "none", "1 s", metric="success_rate", title="requests that succeed"),),
    quick=("blocks={at_least: 3, at_most: 3}", "requests=1", "server=caddy"),
)
