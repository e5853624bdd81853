"""the language of a client taken for a property of HTTP

## Why
milicevic2023's client is a Python script (IV.E): its cost of a request over HTTP/2 and over HTTP/3 is that of two
Python libraries, one on top of the kernel's TCP and one that builds every packet itself. At a short distance, where it
published 24 to 36 ms against 60 to 65 ms (V.A, figure 8), a few round trips are a small part of that, and its VI says
"our benchmark is CPU bound". The same requests to the same server from a program in another language have another
ratio.

## Switch
`client=python-client`, `client=load`.

## Experiment
The study's request to Hypercorn over 2 ms, from three clients: Python, curl (C) and the engine's own (Rust); with
`--full` on reused connections too.

## Notes
[`cpu-bound`](#cpu-bound) asks above which rate a program measures itself, with many requests in flight, and switches
the server as well. Here one request is in flight, nothing waits for a core, and only the client is replaced.
"""

from __future__ import annotations

from trifecta.design.document import Document
from trifecta.design.errors import UserError
from trifecta.design.factors import CLIENT_FACTOR
from trifecta.threats.changes import factors, kind
from trifecta.threats.threat import Change, Effect, Threat


def _client(name: str) -> Change:
    def change(document: Document) -> None:
        if kind(document) != "requests":
            raise UserError(f"only the workload 'requests' has a choice of clients, and this is {kind(document)!r}")
        factors(document)[CLIENT_FACTOR] = [name]

    change.__doc__ = f"{CLIENT_FACTOR}={name}"
    return change


THREAT = Threat(
    id="client-language",
    docstring=__doc__,
    studies=("milicevic2023",),
    on=_client("python-client"),
    off=_client("load"),
    undetected="a trial has one client: only several clients side by side show it",
    experiment="client-language",
    effects=(
        Effect(CLIENT_FACTOR, "load", "python-client", title="Python instead of Rust"),
        Effect(CLIENT_FACTOR, "load", "curl", title="C (curl) instead of Rust"),
    ),
    quick=("blocks={at_least: 3, at_most: 3}", "requests=20", "connection=new"),
    by_itself=("client-language",),
)
