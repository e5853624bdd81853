"""TLS 1.2 over TCP beside QUIC's TLS 1.3

## Why
TLS 1.2 takes a round trip more than 1.3 before a request (RFC 5246 7.3, RFC 8446 2), and QUIC always has 1.3 (RFC 9001
4.2). bourbon2020's programs were Go 1.12 (4.4), which speaks TLS 1.2 over TCP unless 1.3 is enabled (GODEBUG=tls13=1;
https://go.dev/doc/go1.12); milicevic2023 draws a TLS 1.2 handshake (II.D, figure 3). With a new connection at each of
three hops bourbon2020's chain pays it three times: at 50 ms each way twelve round trips are 1.2 s, which 6.1.1 has for
every version.

## Switch
`tls_version=1.2/1.3`, `1.3`; for services with `go-services` instead of the engine's own.

## Experiment
A chain of Go services, a new connection at every hop, with TLS 1.2 and 1.3 over TCP, without delay and with 10 ms each
way.

## Notes
[`round-trips`](#round-trips) is about new connections: its switch is `connection` and does not change TLS, and its
experiment compares both with the round trips that they take, for single requests of the engine's own programs. This one
switches TLS alone, where the arms differ in it, and adds up over the hops of a chain.
"""

from __future__ import annotations

from trifecta.design.document import Document
from trifecta.design.errors import UserError
from trifecta.threats.changes import SERVICES, kind, on_go, put
from trifecta.threats.threat import Change, Effect, Threat


def _version(value: str, *, apart: bool = False) -> Change:
    def change(document: Document) -> None:
        if kind(document) in SERVICES and apart:
            on_go(document)
        elif kind(document) not in (*SERVICES, "requests"):
            raise UserError(f"only requests and services have a TLS version, and this is {kind(document)!r}")
        put(document, "tls_version", value)

    change.__doc__ = f"tls_version={value}"
    return change


THREAT = Threat(
    id="tls-version",
    docstring=__doc__,
    studies=("bourbon2020", "milicevic2023"),
    on=_version("1.2/1.3", apart=True),
    off=_version("1.3"),
    check="parity",
    evidence_words="asks for TLS version",
    experiment="tls-version",
    effects=(
        Effect("tls_version", "1.3", "1.2/1.3", title="10 ms each way", where=(("path", "away"),)),
        Effect("tls_version", "1.3", "1.2/1.3", title="without delay", where=(("path", "normal"),)),
    ),
    quick=("blocks={at_least: 3, at_most: 3}", "requests=3", "warmup=1 requests"),
    by_itself=("tls-version",),
)
