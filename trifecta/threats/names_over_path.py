"""names that are looked up over the path before every connection

## Why
Go's resolver keeps nothing, and bourbon2020's services opened a connection for every request; its name server BIND was
on the host of service A (5.9), across the impaired network from B and C. A look-up is a round trip more for every
protocol, and a question that is lost is asked again after 5 s (resolv.conf(5)), whatever HTTP does. We take it that
the times of the study have none of that in them: its cycles with delay are "above 1.2s", those with loss within
"[200ms, 1.2s]" (6.1.1), as ours with its programs are when names are asked for once; with look-ups over the path ours
took 7.8 s over TCP with delay, where a reply of B comes after the 1 s that its server has to write it. So it is a
threat to those who build such a chain, and named with no claim of the study.

## Switch
`names: path` of services of `go-services`, which then ask a name server on the client's host; `local` asks once.

## Experiment
The chain over four hosts with the study's delay, without jitter and loss: B and C ask before they call.

## Notes
In the study's fan-in of 4 clients these ran on the host of the name server: nothing crossed the network. The two wires
that only questions cross have a link of their own.
"""

from __future__ import annotations

from trifecta.design.document import Document
from trifecta.design.errors import UserError
from trifecta.design.services import SERVER_LEVEL
from trifecta.threats.changes import SERVICES, kind, workload
from trifecta.threats.threat import Change, Effect, Threat

OTHER_SERVICES = "go-services"


def _switch(*, on: bool) -> Change:
    """Where services ask for names."""

    def change(document: Document) -> None:
        if kind(document) not in SERVICES or kind(document) == "fan-in":
            raise UserError("needs services that call others from another host than the name server's: a chain")
        factors = document.tree.setdefault("factors", {})
        hosts = [workload(document).get("hosts", 1), *(factors.get("hosts") or ())]
        if all(str(number) == "1" for number in hosts):
            raise UserError("services of one host share it with the name server; give hosts: 2 or more")
        levels = factors.get("server", SERVER_LEVEL)
        if SERVER_LEVEL in (levels if isinstance(levels, list) else [levels]):
            raise UserError(f"the engine's own services ask once; add --set server={OTHER_SERVICES}")
        factors.pop("names", None)
        workload(document)["names"] = "path" if on else "local"

    return change


THREAT = Threat(
    id="names-over-the-path",
    docstring=__doc__,
    studies=("bourbon2020",),
    on=_switch(on=True),
    off=_switch(on=False),
    check="parity",
    experiment="names-over-the-path",
    effects=(Effect("names", "local", "path"),),
    quick=("blocks={at_least: 4, at_most: 4}", "requests=1"),
)
