"""How long a study will take, before anything runs: round trips, rates and lengths as they are asked for.

An estimate, good within a factor of two (tests/design/test_duration.py holds it against runs): what a machine needs to
compute is taken from one with two cores, and losses are taken to stall a round trip by a good half of a timeout.
"""

from __future__ import annotations

import math

from trifecta.design import plan
from trifecta.design.model import (
    BrowserWorkload,
    Cell,
    Levelled,
    PageWorkload,
    PathSpec,
    RequestsWorkload,
    ServicesWorkload,
    Study,
    VideoWorkload,
)

_NEW_TRIPS = 3  # TCP, TLS 1.3, the request; QUIC needs two
_STALL_NS = 600_000_000  # of a lost packet: the first timeouts of TCP (RFC 6298, 1 s) and QUIC (RFC 9002), half early
_TRIAL_NS = 80_000_000  # link, checks, files
_RUN_NS = 1_500_000_000  # lab, servers, probe
_CONTAINER_NS = 1_100_000_000
_PROGRAM_NS = 550_000_000  # to start a client that is no part of the engine
_PYTHON_NS = 3_500_000  # a round trip of a client and a server in Python
_REQUEST_NS = 400_000
_VISIT_NS = 1_600_000_000
_PAGES = {"light": 3_500_000, "heavy": 7_300_000}  # octets of the bundled pages
_WATCH_NS = 2_300_000_000  # a browser before and after a video
_OWN = frozenset({"load", "", "chromium", "firefox"})


def study_ns(study: Study) -> int:
    """Wall time of a whole study; its budget where that is less."""
    blocks = study.min_blocks if study.min_blocks == study.max_blocks else (study.min_blocks + study.max_blocks) // 2
    whole = _RUN_NS + sum(blocks * block_ns(study, cell) for cell in plan.cells(study))
    return whole if study.budget_ns is None else min(whole, study.budget_ns)


def trials(study: Study) -> int | None:
    """How many trials a study has, where the number of its blocks is set in advance."""
    if study.min_blocks != study.max_blocks or study.budget_ns is not None:
        return None
    return study.min_blocks * len(plan.arms(study)) * len(plan.cells(study))


def block_ns(study: Study, cell: Cell) -> int:
    """Wall time of one block of a cell: of each arm, and of the baseline again."""
    return sum(trial_ns(study, plan.treatment(study, cell, arm)) for arm in plan.arms(study))


def trial_ns(study: Study, at: Levelled) -> int:
    """Wall time of one trial, with what is around it."""
    workload = plan.workload_for(study, at)
    path = study.paths.get(str(at.levels.get("path", "")), PathSpec("none"))
    if isinstance(workload, BrowserWorkload):
        return round(_TRIAL_NS + _PROGRAM_NS + _browsing_ns(workload, path))
    around = _TRIAL_NS
    if isinstance(workload, ServicesWorkload) and workload.place != "native":
        around += _CONTAINER_NS
    if at.client not in _OWN:
        around += _PROGRAM_NS
    return round(around + _asking_ns(workload, path, at, python="python" in at.client))


def _asking_ns(workload: RequestsWorkload, path: PathSpec, at: Levelled, *, python: bool) -> float:
    calls, at_once, own = 1, max(1, workload.in_flight), workload.requests + workload.warmup_requests
    trips = float(_NEW_TRIPS if at.connection == "new" else 1)
    if isinstance(workload, ServicesWorkload):
        at_once = 1
        if workload.kind == "fan-in":
            own *= 2 if workload.clients > 10 else 1  # each client's; many of them wait for each other
        elif workload.kind == "chain":
            calls = workload.depth - 1
    per_trip = _trip_ns(path)
    octets = workload.response_bytes + workload.request_bytes
    one = calls * (trips * (per_trip + _PYTHON_NS * python) + _REQUEST_NS + _sending_ns(octets, path))
    asked = own * one / at_once
    limit = workload.duration_ns + workload.warmup_ns
    if not workload.requests:
        return float(limit)
    return min(asked, limit) if workload.duration_ns else asked


def _trip_ns(path: PathSpec) -> float:
    return path.rtt_ns + _STALL_NS * min(1.0, 2 * path.loss)


def _sending_ns(octets: float, path: PathSpec) -> float:
    rate = path.rate_bits_per_s
    if rate is None:
        return octets * 8.0  # 1 Gbit/s, what two cores send
    trips = math.sqrt(max(0.0, octets / 14_480 - 1))  # slow start from ten packets (RFC 6928), roughly
    return max(octets * 8e9 / rate, trips * path.rtt_ns)


def _browsing_ns(workload: BrowserWorkload, path: PathSpec) -> float:
    visits = workload.visits + workload.warmup_visits
    if isinstance(workload, VideoWorkload):
        return visits * (workload.watch_ns + _WATCH_NS)
    octets = _PAGES.get(workload.page, 5_000_000) if isinstance(workload, PageWorkload) else 0
    return visits * (_VISIT_NS + workload.settle_ns + _sending_ns(octets, path) + 12 * _trip_ns(path))
