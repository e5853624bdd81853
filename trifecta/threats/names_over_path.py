"""DNS look-ups over the path before every connection

## Why
Go's resolver caches nothing, and bourbon2020's services opened a connection for every request; its name server BIND was
on the host of service A (5.9), across the impaired network from B and C. A look-up adds a round trip over every
protocol, and a lost query is repeated after 5 s (resolv.conf(5)), whatever HTTP does. We assume that the study's times
include none of that: its cycles with delay are "above 1.2s", those with loss within "[200ms, 1.2s]" (6.1.1), like ours
with its programs when names are resolved once; with look-ups over the path ours took 7.8 s over TCP with delay, where
B's reply comes after the 1 s that its server has to write it. So it is a threat to those who build such a chain, and
belongs to no claim of the study.

## Switch
`names: path` with `go-services`, which then query a name server on the client's host; `local` resolves once.

## Experiment
The chain over four hosts with the study's delay, without jitter and loss: B and C resolve names before they call.

## Notes
In the study's fan-in the 4 clients ran on the name server's host: no query crossed the network. The two wires that only
queries cross have their own links.
"""

from __future__ import annotations

from trifecta.design.document import Document
from trifecta.design.errors import UserError
from trifecta.design.services import SERVER_LEVEL
from trifecta.threats.changes import SERVICES, across_hosts, kind, levels, put
from trifecta.threats.threat import Change, Effect, Threat

OTHER_SERVICES = "go-services"


def _switch(*, on: bool) -> Change:
    """Where services ask for names."""

    def change(document: Document) -> None:
        if kind(document) not in SERVICES or kind(document) == "fan-in":
            raise UserError("needs services that call others from a host other than the name server's: a chain")
        across_hosts(document, "where its services look up names", "services of one host share it with the name server")
        if SERVER_LEVEL in levels(document, "server", SERVER_LEVEL):
            raise UserError(f"the engine's own services resolve names once; add --set server={OTHER_SERVICES}")
        put(document, "names", "path" if on else "local")

    return change


THREAT = Threat(
    id="names-over-the-path",
    docstring=__doc__,
    studies=("bourbon2020",),
    on=_switch(on=True),
    off=_switch(on=False),
    check="parity",
    evidence_words="queries a name server over the path",
    experiment="names-over-the-path",
    effects=(Effect("names", "local", "path"),),
    quick=("blocks={at_least: 4, at_most: 4}", "requests=1"),
)
