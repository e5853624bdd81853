"""a full connection table, which UDP fills sooner

## Why
Connection tracking sees a TCP connection close; it keeps a UDP flow for 30 s after the last packet, 120 s if it went
both ways for 2 s (nf_conntrack_udp_timeout, _stream). bourbon2020 met "a very high rate of connection drops for
HTTP/3" with 50 clients until their traffic was exempted from tracking (annex VI). "It was solved" (7), so its figures
are presumably from after that. What finds no room is dropped: a lost handshake, over QUIC only.

## Switch
`conntrack=100`, `conntrack=bypass`.

## Experiment
A fan-in of 50 clients, a table of 100 connections.

## Notes
The run records what the tables hold, and what they drop: [resources](resources.md).
"""

from __future__ import annotations

from trifecta.design.document import Document
from trifecta.design.errors import UserError
from trifecta.threats.changes import SERVICES, across_hosts, kind, put
from trifecta.threats.threat import Change, Effect, Threat


def _table(size: str) -> Change:
    def change(document: Document) -> None:
        if kind(document) not in SERVICES:
            raise UserError(f"connections are tracked for services only, and this is the workload {kind(document)!r}")
        across_hosts(document, "the table of connections", "services of one host have no tracked connections")
        put(document, "conntrack", size)

    change.__doc__ = f"Every host that serves has conntrack: {size}."
    return change


THREAT = Threat(
    id="conntrack",
    docstring=__doc__,
    studies=("bourbon2020",),
    on=_table("100"),
    off=_table("bypass"),
    check="conntrack",
    experiment="conntrack",
    effects=(
        Effect("conntrack", "bypass", "100", metric="success_rate", title="requests that succeed"),
        Effect("conntrack", "bypass", "100", title="time of a request"),
    ),
    quick=("blocks={at_least: 4, at_most: 4}",),
)
