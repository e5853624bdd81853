"""a client that waits before TLS over TCP, but not over QUIC

## Why
In each of the 12 HTTP/2 connections of ding2022's captures curl waits 206 to 227 ms between TCP's handshake and its
ClientHello, in no HTTP/3 connection (the sums are ours; its text does not mention it): 667 of the 840 ms of its short
string, closed. Without that HTTP/3 takes 0.57, 0.42, 0.54 and 0.55 of HTTP/2's time in its four tests, not 0.12, 0.10,
0.25 and 0.35, from which it concludes "20.6% of the time". The captures do not show why it waits. That poll() under
WSL 1 misses the end of connect() until curl's Happy Eyeballs timer of 200 ms (`CURL_HET_DEFAULT`) is our conjecture. A
client that polls for an event it could be notified of does the same to any protocol that it opens that way.

## Switch
`tls_wait=222 ms` with `load` instead of other clients, which cannot wait; `tls_wait=none`.

## Experiment
A short string and 1 MB, a new connection for every request, without the wait and with it.
"""

from __future__ import annotations

from trifecta.design.any_level import ANY
from trifecta.design.document import Document
from trifecta.design.errors import UserError
from trifecta.threats.changes import factors, kind, levels, put
from trifecta.threats.threat import Effect, Threat

WAIT = "222 ms"  # a third of the 667 ms that three connections waited
_CLIENT = "load"


def _requests_only(document: Document) -> None:
    if kind(document) != "requests":
        text = f"only clients of single requests can wait before TLS, and this is the workload {kind(document)!r}"
        raise UserError(f"{text}; name a study of requests, for example `trifecta run transfer`")


def _on(document: Document) -> None:
    _requests_only(document)
    given = levels(document, "client", _CLIENT)
    if given != [_CLIENT]:
        decision = next(
            (option for place, option in document.options.items() if place[:2] == ("factors", "client")), None
        )
        if decision is not None or ANY in given:
            who = decision or f"client: {ANY}"
            raise UserError(f"only {_CLIENT} can wait before TLS, and {who} asks for others; set client={_CLIENT}")
        factors(document)["client"] = [_CLIENT]
    put(document, "tls_wait", WAIT)


_on.__doc__ = f"client={_CLIENT}; tls_wait={WAIT}"


def _off(document: Document) -> None:
    """tls_wait=none"""
    _requests_only(document)
    put(document, "tls_wait", None)


THREAT = Threat(
    id="wait-before-tls",
    docstring=__doc__,
    studies=("ding2022",),
    on=_on,
    off=_off,
    check="parity",
    evidence_words="before TLS",
    experiment="wait-before-tls",
    effects=(
        Effect("tls_wait", "none", WAIT, title="a short string", where=(("response", "35 B"),)),
        Effect("tls_wait", "none", WAIT, title="1 MB", where=(("response", "1 MB"),)),
    ),
    quick=("blocks={at_least: 6, at_most: 6}",),
    by_itself=("wait-before-tls",),
)
