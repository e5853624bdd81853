"""a program that measures its own computing

## Why
One core serves so many requests per second and no more; beyond that rate a study compares the cost of libraries, not
protocols on a path. QUIC in Python costs several times as much as HTTP/2 there, because its packets are built in Python
and those of TCP in the kernel. milicevic2023 says "our benchmark is CPU bound" (VI), but not which side. A container
with a CPU limit is a program with less than a core (sched-bwc.rst): `--set client_cpu=10%` and `--set server_cpu=25%`
emulate one.

## Switch
Hypercorn and `python-client`; `origin` and `load`, with one core each.

## Experiment
Both clients over 5 ms, with more and more requests in flight; a sweep of request rates with a client that has 10 % of
a core, and with Hypercorn on its own core and on 25 % of it.

## Notes
The figures at few and at many requests in flight show where the two clients diverge. A client in Python needs some
hundred requests to reach its steady rate: trials of 200 requests, 50 ms, made it faster over HTTP/3 than over HTTP/2 by
1.2 [1.1, 1.3] in one session and by 1.1 [1.06, 1.15] in another, trials of a thousand say that it is slower.
`client_cpu` and `server_cpu` give a program a share of a core, by a cgroup quota (`trifecta/lab/cpu_share.py`; v1 or
v2, as root): containers are limited like this, in periods of 100 ms by default, here in periods of 10 ms. The share is
exact; a program that used it up waits for the next period, up to 16 ms with a 250 Hz timer. Where no cgroup can be
written, the cells are left out with the reason.

A *sweep* (`cpu-client`, `cpu-server`, and any study with several levels of `rate`) finds the rate above which a program
measures itself: latency counts from when a request was due; a rate departs when the interval of its latency, as a ratio
to that without the limit or else at the lowest rate, lies above the margin, or when `headroom` complained in most of
its trials and the program used half of its CPU time. The answer is an interval, from the last rate up to which all keep
up to the first from which all depart (`analysis/knee.py`). The run's report has the curves, `trifecta sql RUN "SELECT *
FROM rate_sweep"` the figures.
"""

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
    docstring=__doc__,
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
