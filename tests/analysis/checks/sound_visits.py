"""The evidence of a sound trial of a browser, and ways to spoil it."""

import dataclasses

from tests.analysis.checks import sound
from trifecta.analysis.checks import TRIAL_CHECKS
from trifecta.analysis.checks.visits import FetchResult, Visit, Visits
from trifecta.design import plan
from trifecta.design.model import PageWorkload, PathSpec, VideoWorkload

MS = 1_000_000
PAGE = PageWorkload(visits=2, warmup_visits=1)
VIDEO = VideoWorkload(visits=1, warmup_visits=0, watch_ns=20_000 * MS)
BARE = PathSpec(name="clean")
SEGMENTS = {(0, 0): 150_000, (1, 1): 450_000, (1, 2): 440_000}
GOT = {
    "GET https://www.light.lab/": FetchResult(1, 200, 40_000),
    "GET https://www.light.lab/a.css": FetchResult(1, 200, 9_000),
    "GET https://cdn.light.lab/b.png": FetchResult(2, 200, 120_000),
}


def page(number, **changes):
    given = {"load_ns": 900 * MS, "cpu_ns": 500 * MS, "fetched": GOT, "connections": 2, "resumed_connections": 0}
    return Visit(number, **(given | changes))


def watch(number=0, **changes):
    given = {
        "load_ns": 200 * MS, "cpu_ns": 8_000 * MS, "startup_ns": 700 * MS, "watched_ns": 20_000 * MS,
        "played_ns": 18_200 * MS, "rebuffer_ns": 1_000 * MS, "frames_shown": 540, "frames_dropped": 4,
        "frames_dropped_floor": 2,
    }  # fmt: skip
    return Visit(number, **(given | changes))


def seen(protocol, *visits, **changes):
    """The visits of a trial over one protocol."""
    visits = visits or (page(1), page(2))
    visits = tuple(
        each if each.first_protocol or each.error else dataclasses.replace(each, first_protocol=protocol)
        for each in visits
    )
    given = {
        "warmup_visits": 1, "fetches": 8, "protocols": {protocol: 8}, "examples": {protocol: ("https://www.light.lab/",)}
    }  # fmt: skip
    return Visits(visits, **(given | changes))


def watched(protocol, *visits, **changes):
    given = {"warmup_visits": 0, "segments": SEGMENTS}
    return seen(protocol, *(visits or (watch(),)), **(given | changes))


def evidence(arm="h3", workload=PAGE, path=sound.PATH, **changes):
    """A sound trial of a browser, but for the changes."""
    protocol = arm[:2]
    made, warmup = workload.visits, workload.warmup_visits
    load = {
        "client": "chromium", "version": "156.0", "declared": {"headless": "new"}, "ended": "requests",
        "started_ns": 1_010, "ended_ns": 1_000_000_000, "wall_ns": 1_000_000_000, "run_delay_ns": 10_000_000,
        "cpus": 2, "stray_lookups": 0, "tcp": None, "quic": None, "schedule_lag_ns": None,
    }  # fmt: skip
    given = {
        "samples": sound.facts(
            samples=made, warmup_samples=warmup, protocols={protocol: made}, tls_versions={"1.3": made},
            ciphers={"TLS_AES_128_GCM_SHA256": made}, statuses={"200": made}, bytes_in={3_500_000: made},
            first_half_p50_ns=None, second_half_p50_ns=None,
        ),
        "load": load | changes.pop("told", {}),
        "link": {"links": {"client-router": sound.LINK}},
        "probe": sound.PROBE | {"wire": "client-router"},
        "server": sound.SERVER | {"cpu_ns": 100_000_000},
        "visits": seen(protocol) if isinstance(workload, PageWorkload) else watched(protocol),
    }  # fmt: skip
    own = sound.evidence(arm, path=path, workload=workload, **(given | changes))
    cell = plan.cell_of(own.trial.cell.levels | {"client": "chromium", "connection": "browser"})
    return dataclasses.replace(own, trial=dataclasses.replace(own.trial, cell=cell))


def judge(name, *args, **changes):
    (result,) = TRIAL_CHECKS[name].function(evidence(*args, **changes))
    assert result.evidence
    assert result.remedy or result.status in ("pass", "unknown") or name == "errors", result
    return result
