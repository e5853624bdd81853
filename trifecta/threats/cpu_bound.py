"""A client or a server that is limited by its own computing."""

from __future__ import annotations

from trifecta.design.document import Document
from trifecta.design.errors import UserError
from trifecta.design.factors import CLIENT_FACTOR
from trifecta.threats.changes import kind, workload
from trifecta.threats.threat import Change, Effect, Threat

CPU_FACTORS = ("client_cpu", "server_cpu")


def _programs(server: str, client: str, *, off: bool = False) -> Change:
    """A change of the programs of a study of requests; ``off``: with a whole core each."""

    def change(document: Document) -> None:
        if kind(document) != "requests":
            raise UserError("needs a study of the workload 'requests', whose programs can be chosen")
        factors = document.tree.setdefault("factors", {})
        for name in CPU_FACTORS if off else ():
            factors.pop(name, None)
            workload(document).pop(name, None)
        factors.update({"server": [server], CLIENT_FACTOR: [client]})

    cores = ", with a core each" if off else ""
    change.__doc__ = f"The server is {server} and the client {client}{cores}."
    return change


def _at(in_flight: int) -> Effect:
    """What the client does with so many requests in flight."""
    words, where = f"{in_flight} in flight", (("in_flight", str(in_flight)),)
    return Effect(CLIENT_FACTOR, "load", "python-client", "requests_per_s", words, where)


def _starved(factor: str, share: str, rate: str, title: str, experiment: str) -> Effect:
    """What a share of a core does to the latency at the highest rate of a sweep."""
    return Effect(factor, "none", share, "latency_p50_ns", title, (("rate", rate),), experiment)


THREAT = Threat(
    id="cpu-bound",
    title="a program that measures its own computing",
    fact=(
        "One core can do only so many requests per second; beyond that rate a study compares the cost of libraries, "
        "not protocols on a path. QUIC in Python costs several times what HTTP/2 costs there, because its packets are "
        "made in Python and those of TCP in the kernel. milicevic2023 says that its client was CPU bound. A container "
        "with a limit of CPU time is a program with less than a core (sched-bwc.rst): `--set client_cpu=10%` and "
        "`--set server_cpu=25%` make one."
    ),
    studies=("milicevic2023",),
    on=_programs("hypercorn", "python-client"),
    off=_programs("origin", "load", off=True),
    check="headroom",
    experiment="cpu-bound",
    effects=(
        _at(32),
        _at(8),
        _starved("client_cpu", "10 %", "3200/s", "a client with 10 % of a core, 3,200 requests/s", "cpu-client"),
        _starved("server_cpu", "25 %", "1600/s", "Hypercorn with 25 % of a core, 1,600 requests/s", "cpu-server"),
    ),
    quick=("in_flight=8,32", "blocks={at_least: 4, at_most: 4}"),
    quick_of=(
        ("cpu-client", ("rate=100/s,400/s,1600/s,3200/s", "blocks={at_least: 3, at_most: 3}")),
        ("cpu-server", ("rate=25/s,100/s,400/s,1600/s", "blocks={at_least: 3, at_most: 3}")),
    ),
    by_itself=("cpu-client", "cpu-server"),
    model="knee",
)
