"""What a study sends to servers elsewhere, before it sends anything: requests, octets, time."""

from __future__ import annotations

from dataclasses import dataclass

from trifecta.analysis.polite import look_requests
from trifecta.design import plan
from trifecta.design.manners import Manners
from trifecta.design.model import Study
from trifecta.design.workloads.far import FarWorkload
from trifecta.workloads.far.supported import targets, workloads
from trifecta.workloads.preflight import preflight


@dataclass(frozen=True)
class Coming:
    """From the fewest blocks that can decide anything to the caps, in requests, octets both ways, and ns."""

    hosts: tuple[str, ...]
    fewest_requests: int
    most_requests: int
    most_bytes: int
    time_ns: tuple[int, int]
    manners: Manners
    owned: bool


def coming(study: Study, answer_bytes: int | None = None) -> Coming:
    """What the study comes to; ``answer_bytes``: of one answer with its connection, where one was seen."""
    every = workloads(study)
    own = every[0].manners
    round_requests = sum(
        plan.workload_of(FarWorkload, study, one).every_request(one.connection)
        for cell in plan.cells(study)
        for one in (plan.treatment(study, cell, arm) for arm in plan.arms(study))
    )
    looks = look_requests(every)
    expected = preflight(study)
    fewest = expected.blocks * round_requests + looks
    most = min(own.most_requests, study.max_blocks * round_requests + looks)
    budget_ns = study.budget_ns or round(most * own.gap_ns(answer_bytes or 0))
    return Coming(
        tuple(dict.fromkeys(target.host for target in targets(study).values())),
        min(fewest, most),
        most,
        own.most_bytes if answer_bytes is None else min(own.most_bytes, most * answer_bytes),
        (min(expected.time_ns[0], budget_ns), budget_ns),
        own,
        bool(every[0].owned),
    )
