"""round trips of handshakes taken for a property of HTTP

## Why
Before the first octet of a response TCP with TLS 1.2 takes four round trips, with TLS 1.3 three, QUIC two (RFC 9293
3.5, RFC 5246 7.3, RFC 8446 2, RFC 9000 7), and all of them one on an established connection. A new connection for
every request makes HTTP/3 'twice as fast' at any distance without anything that HTTP/3 does: milicevic2023 published
320 to 335 ms against 156 to 165 ms for the majority of requests, and four round trips are twice two.

## Switch
`connection=new`, `connection=reused`.

## Experiment
Three round-trip times, TLS 1.2 and 1.3, new and reused; with and without early data.

## Notes
Early data saves another round trip. The experiment sets the measured ratios beside those of the round trips alone
(`analysis/round_trips.py`), cell by cell. It has TLS 1.2 over TCP beside 1.3 to show the effect on a new connection;
the switch does not change TLS. [`tls-version`](#tls-version) switches it.
"""

from __future__ import annotations

from trifecta.threats.threat import Effect, Threat

THREAT = Threat(
    id="round-trips",
    docstring=__doc__,
    studies=("milicevic2023", "bourbon2020", "ding2022"),
    on=("connection=new", "resumption=false"),
    off=("connection=reused",),
    check="handshakes",
    experiment="round-trips",
    effects=(
        Effect(
            "connection",
            "reused",
            "new",
            title="a new connection for every request, TLS 1.3",
            where=(("tls_version", "1.3"),),
        ),
        Effect(
            "tls_version",
            "1.3",
            "1.2/1.3",
            title="TLS 1.2 over TCP, with new connections",
            where=(("connection", "new"),),
        ),
        Effect("zero_rtt", "false", "true", title="early data in resumed sessions", experiment="early-data"),
    ),
    quick=("blocks={at_least: 3, at_most: 3}",),
    model="round-trips",
)
