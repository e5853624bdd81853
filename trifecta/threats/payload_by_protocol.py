"""a different payload size over each protocol

## Why
bourbon2020's text has four versions of what suite B requested: 128 B (table 11); 128 B in test B1, 1 kB in B2 and
10 kB in B3 (table 2); "all the payload sizes, in all the HTTP versions" (5.3); and one that is "constant, and is the
same used in test case 1, 4 and 7" (6.2), which have three. Its code has table 2 (`services/testbed.go`, `testMap`), and
its scripts run B1 over HTTP/1.1, B2 over HTTP/2 and B3 over HTTP/3: the figures show the effect of the sizes as that of
the protocols.

## Switch
`response='128 B/1 kB/10 kB'` (in a chain `request`) for HTTP/1.1, HTTP/2 and HTTP/3, and back to the first of them.

## Experiment
A fan-in of four clients with a new connection for every request, as in the study, on its normal network and with its
delay: 128 B over every protocol, and a size for each.
"""

from __future__ import annotations

from trifecta.design.by_protocol import BETWEEN
from trifecta.design.document import Document
from trifecta.design.errors import UserError
from trifecta.threats.changes import Node, kind, workload
from trifecta.threats.threat import Effect, Threat

ONE, APART = "128 B", "128 B/1 kB/10 kB"
_FIELDS = {"requests": "response", "fan-in": "response", "chain": "request"}


def _on(document: Document) -> None:
    """Every request or response has the study's sizes."""
    field = _field(document)
    factors = document.tree.get("factors")
    if isinstance(factors, dict) and field in factors:
        factors[field] = [APART]
    else:
        workload(document)[field] = APART


def _off(document: Document) -> None:
    """The first of three sizes is that of all protocols."""
    field = _field(document)
    sections = [one for one in (document.tree.get("factors"), workload(document)) if isinstance(one, dict)]
    apart = [one for one in sections if any(map(_is_apart, _levels(one.get(field))))]
    if not apart:
        raise UserError(f"the {field} of this study has one size over all protocols; there is nothing to switch")
    for section in apart:
        first = [str(level).partition(BETWEEN)[0].strip() for level in _levels(section[field])]
        section[field] = list(dict.fromkeys(first)) if isinstance(section[field], list) else first[0]


def _field(document: Document) -> str:
    """Which of the two has the payload in question."""
    field = _FIELDS.get(kind(document))
    if field is None:
        raise UserError(f"needs a workload whose payload can be chosen: {', '.join(_FIELDS)}")
    return field


def _levels(value: Node) -> list[Node]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _is_apart(level: Node) -> bool:
    return isinstance(level, str) and BETWEEN in level


THREAT = Threat(
    id="payload-by-protocol",
    docstring=__doc__,
    studies=("bourbon2020",),
    on=_on,
    off=_off,
    check="same_work",
    evidence_words="the study asks for a",
    experiment="payload-by-protocol",
    effects=(
        Effect("response", ONE, APART, title="on the normal network", where=(("path", "normal"),)),
        Effect("response", ONE, APART, title="with delay", where=(("path", "lag"),)),
    ),
    quick=("blocks={at_least: 4, at_most: 4}",),
)
