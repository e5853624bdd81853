"""A client or a server that is limited by its own computing."""

from __future__ import annotations

from trifecta.design.document import Document
from trifecta.design.errors import UserError
from trifecta.design.factors import CLIENT_FACTOR
from trifecta.threats.changes import kind
from trifecta.threats.threat import Change, Effect, Threat


def _programs(server: str, client: str) -> Change:
    """A change of the programs of a study of requests."""

    def change(document: Document) -> None:
        if kind(document) != "requests":
            raise UserError("needs a study of the workload 'requests', whose programs can be chosen")
        document.tree.setdefault("factors", {}).update({"server": [server], CLIENT_FACTOR: [client]})

    return change


def _at(in_flight: int) -> Effect:
    """What the client does with so many requests in flight."""
    words, where = f"{in_flight} in flight", (("in_flight", str(in_flight)),)
    return Effect(CLIENT_FACTOR, "load", "python-client", "requests_per_s", words, where)


THREAT = Threat(
    id="cpu-bound",
    title="a program that measures its own computing",
    fact=(
        "One core does so many requests a second and no more; beyond that rate a study compares the cost of libraries, "
        "not protocols on a path. QUIC in Python costs several times what HTTP/2 costs there, because its packets are "
        "made in Python and those of TCP in the kernel. milicevic2023 says that its client was CPU bound."
    ),
    studies=("milicevic2023",),
    on=_programs("hypercorn", "python-client"),
    off=_programs("origin", "load"),
    check="headroom",
    experiment="cpu-bound",
    effects=(_at(32), _at(1)),
    quick=("in_flight=1,32", "requests=200", "blocks={at_least: 3, at_most: 3}"),
)
