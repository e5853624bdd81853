"""Round trips against what was measured."""

import json

import pytest

from trifecta.analysis.round_trips import explained, setup_round_trips
from trifecta.design import plan
from trifecta.design.study_file import parse_study

STUDY = """
study: trips
workload: {requests: 3, in_flight: 1}
factors:
  protocol: [HTTP/2, HTTP/3]
  path: [far, clean]
  connection: [reused, new]
  tls_version: [1.3, 1.2/1.3]
paths:
  far: {rtt: 40 ms}
"""


def test_round_trips_of_a_new_connection():
    assert [setup_round_trips(quic=True, early=early) for early in (False, True)] == [1, 0]
    assert [setup_round_trips(quic=False, early=early) for early in (False, True)] == [2, 1]
    assert [setup_round_trips(quic=False, tls_version="1.2", resumed=yes) for yes in (False, True)] == [3, 2]


def rows(study, beside_ns):
    trips = {
        ("reused", "1.3"): (1, 1),
        ("reused", "1.2/1.3"): (1, 1),
        ("new", "1.3"): (3, 2),
        ("new", "1.2/1.3"): (4, 2),
    }
    made = []
    for cell in plan.cells(study):
        rtt = 40e6 if cell.levels["path"] == "far" else 0
        h2, h3 = trips[str(cell.levels["connection"]), str(cell.levels["tls_version"])]
        for block in range(4):
            for arm, count in (("h2", h2), ("h2#aa", h2), ("h3", h3)):
                made.append(
                    {
                        "cell": cell.key,
                        "factors_json": json.dumps(cell.levels),
                        "arm": arm,
                        "block": block,
                        "valid": True,
                        "samples": 3,
                        "success_rate": 1.0,
                        "latency_p50_ns": count * rtt + beside_ns[arm.removesuffix("#aa")] + 1000 * block,
                    }
                )
    return made


def test_round_trips_explain_what_they_cause_and_nothing_else():
    study = parse_study(STUDY, "trips.yaml")
    found = explained(study, rows(study, {"h2": 1e5, "h3": 1e5}))
    assert {one.levels["path"] for one in found} == {"far"}, "without a delay there are no round trips to count"
    by = {(one.levels["connection"], one.levels["tls_version"]): one for one in found}
    assert by["new", "1.3"].trips == (2, 3)
    assert by["new", "1.2/1.3"].expected == 0.5
    assert by["new", "1.2/1.3"].share == pytest.approx(1, abs=0.01)
    assert by["reused", "1.3"].expected == 1
    assert by["reused", "1.3"].share is None


def test_what_is_beside_round_trips_lowers_their_share():
    study = parse_study(STUDY, "trips.yaml")
    found = explained(study, rows(study, {"h2": 80e6, "h3": 0}))
    one = next(one for one in found if one.levels["connection"] == "new" and one.levels["tls_version"] == "1.3")
    assert one.ratio == pytest.approx(80 / 200, abs=0.01)
    assert one.share == pytest.approx(0.44, abs=0.02)
