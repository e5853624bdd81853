"""What a study sends to servers elsewhere, before it sends anything: requests, octets, time."""

from __future__ import annotations

from dataclasses import dataclass

from trifecta.analysis.polite_planner import look_requests, trial_traffic
from trifecta.design import plan
from trifecta.design.manners import Manners
from trifecta.design.model import Study
from trifecta.workloads.far.supported import targets, workloads
from trifecta.workloads.preflight import preflight


@dataclass(frozen=True)
class TrafficEstimate:
    """From the fewest blocks that can decide anything to the caps, in requests, octets both ways, and ns.

    ``fewest_requests`` is 0 where nobody knows yet. ``blocks`` of every cell fit below the caps; None: not known.
    Before ``needed`` nothing can be decided.
    """

    hosts: tuple[str, ...]
    fewest_requests: int
    most_requests: int
    most_bytes: int
    time_ns: tuple[int, int]
    manners: Manners
    owned: bool
    blocks: int | None
    needed: int
    vantages: list[str]
    """From where it is asked."""


def traffic_estimate(study: Study, answer_bytes: int | None = None, requests: int | None = None) -> TrafficEstimate:
    """What the study comes to.

    ``answer_bytes`` and ``requests``: of one answer with its connection, or of one visit of a page, where one was seen.
    """
    every = workloads(study)
    own = every[0].manners
    hosts = [target.host for target in targets(study).values()] + [host for one in every for host in one.hosts_beside]
    here = trial_traffic(study, plan.cells(study))
    turns = sum(one.workload.turns(one.connection) for one in here)
    expected = preflight(study)
    if requests is None and not every[0].visiting:
        requests = 1
    looks = look_requests(here, requests or 0)
    fit: int | None = None
    if requests is None:
        fewest, most = 0, own.most_requests
    else:
        fewest = expected.blocks * turns * requests + looks
        most = min(own.most_requests, study.max_blocks * turns * requests + looks)
        fit = max(0, own.most_requests - looks) // (turns * requests)
        if answer_bytes:
            fit = min(fit, own.most_bytes // (turns * answer_bytes))
    most_turns = -(-most // (requests or 1))
    budget_ns = study.budget_ns or round(most_turns * own.gap_ns(answer_bytes or 0, requests or 1))
    low_ns = expected.time_ns[0]
    if requests is not None and every[0].visiting:
        low_ns = expected.blocks * turns * own.gap_ns(answer_bytes or 0, requests)
    return TrafficEstimate(
        tuple(dict.fromkeys(hosts)),
        min(fewest, most),
        most,
        own.most_bytes if answer_bytes is None else min(own.most_bytes, most_turns * answer_bytes),
        (min(low_ns, budget_ns), budget_ns),
        own,
        bool(every[0].owned),
        fit,
        expected.fewest,
        list(dict.fromkeys(one.asked_from for one in every)),
    )
