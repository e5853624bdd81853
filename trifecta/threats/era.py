"""HTTP/3 of the year of a study taken for HTTP/3

## Why
bourbon2020's HTTP/3 is quic-go of 2019 (4.4: a merge of "Tuesday, 21st March 2019", which was a Thursday, so the date
is in doubt), six years of drafts and library work before RFC 9000 and today's quic-go, beside a TCP and a net/http that
had been in use for decades. Its conclusion in 7.1 is about HTTP/3, not about a program of that month. Servers of that
year also answered every new connection with a Retry (draft-ietf-quic-transport-22, 8.1.1): a round trip more than
HTTP/3 needs.

## Switch
`server=go-services-2019` instead of `go-services` or the engine's own, and `go-services` instead of it.

## Experiment
Four clients of one service, a new connection for every request, with quic-go of 2019 and of today, on a network
without delay and over 20 ms. HTTP/2 is the same net/http in both.

## Notes
The oldest quic-go that today's Go builds is 0.12.1 of August 2019 ([other programs](services.md#other-programs)).
[`implementation`](#implementation) compares programs of the same time.
"""

from __future__ import annotations

from trifecta.design.document import Document
from trifecta.design.services import SERVER_LEVEL
from trifecta.threats.changes import GO_SERVICES, GO_SERVICES_2019, factors, levels, services_only
from trifecta.threats.threat import Change, Effect, Threat


def _instead(new: str, *old: str) -> Change:
    def change(document: Document) -> None:
        services_only(document)
        given = levels(document, "server", SERVER_LEVEL)
        if any(level in old for level in given):
            factors(document)["server"] = list(dict.fromkeys(new if level in old else level for level in given))

    change.__doc__ = f"server={new} in the place of {' and '.join(old)}"
    return change


THREAT = Threat(
    id="era",
    docstring=__doc__,
    studies=("bourbon2020",),
    on=_instead(GO_SERVICES_2019, SERVER_LEVEL, GO_SERVICES),
    off=_instead(GO_SERVICES, GO_SERVICES_2019),
    undetected="a trial has one program: only two programs side by side show it",
    experiment="era",
    effects=(
        Effect("server", GO_SERVICES, GO_SERVICES_2019, title="without delay", where=(("path", "normal"),)),
        Effect("server", GO_SERVICES, GO_SERVICES_2019, title="over 20 ms", where=(("path", "away"),)),
    ),
    quick=("blocks={at_least: 4, at_most: 4}", "requests=10", "protocol=HTTP/2,HTTP/3"),
    by_itself=("era",),
)
