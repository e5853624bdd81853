"""League tables: who is before whom, and who cannot be told apart."""

import math

import numpy as np
import pytest
from scipy import stats

from tests.analysis.test_decomposition import rows_of, study_of
from trifecta.analysis.league import league, rank


def table(study, rows, arm="h3", place="path=far,connection=new", **options):
    return [one for one in league(study, rows, **options) if (one.arm, one.place) == (arm, place)]


def test_the_best_comes_first_and_those_that_are_alike_share_places():
    study = study_of(server=("caddy", "origin", "nginx"))
    found = table(study, rows_of(study))
    assert {one.server for one in found[:2]} == {"origin", "nginx"}
    assert [(one.server, one.best, one.worst) for one in found[2:]] == [("caddy", 3, 3)]
    assert [(one.best, one.worst) for one in found[:2]] == [(1, 2), (1, 2)]
    assert found[2].value == pytest.approx(1.4e6, rel=0.03)
    assert found[2].low < found[2].value < found[2].high
    assert all(one.blocks == 8 for one in found)


def test_more_is_better_for_some_metrics():
    study = study_of(server=("caddy", "origin"))
    rows = [row | {"requests_per_s": 1e9 / row["latency_p50_ns"]} for row in rows_of(study)]
    assert [one.server for one in table(study, rows, metric="requests_per_s")] == ["origin", "caddy"]
    assert [one.server for one in table(study, rows)] == ["origin", "caddy"]


def test_proxies_are_marked_and_clients_are_programs_too():
    study = study_of(server=("origin", "envoy"), client=("load", "curl"))
    rows = [
        row | {"server_json": '{"proxy": true}' if row["server"] == "envoy" else '{"version": "1"}'}
        for row in rows_of(study)
    ]
    found = table(study, rows)
    assert {(one.server, one.client): one.proxy for one in found} == {
        ("origin", "load"): False,
        ("origin", "curl"): False,
        ("envoy", "load"): True,
        ("envoy", "curl"): True,
    }


def test_failing_is_never_good():
    study = study_of(server=("caddy", "origin", "nginx"))
    rows = rows_of(study)
    for row in rows:
        if row["server"] == "origin" and row["arm"] == "h3" and row["block"] != 2:
            row |= {"success_rate": 0.2, "latency_p50_ns": 1}
    found = table(study, rows)
    assert [one.server for one in found] == ["nginx", "caddy", "origin"]
    last = found[-1]
    assert (last.value, last.low, last.high, last.censored) == (None, None, None, 7)
    assert (last.best, last.worst) == (3, 3)


def test_a_place_that_is_claimed_holds_in_19_of_20_tables_without_any_difference():
    rng, wrong = np.random.default_rng(2), 0
    runs = 300
    for _ in range(runs):
        ranks = rank([rng.normal(0, 0.05, 8) for _ in range(6)], 0.05, True)
        wrong += any(one != (1, 6) for one in ranks)
    assert wrong <= stats.binom.ppf(0.999, runs, 0.05)


def test_ranks_of_clear_differences():
    rng = np.random.default_rng(3)
    programs = [rng.normal(middle, 0.02, 8) for middle in (0.5, 0.0, 0.01, 1.0)]
    assert rank(programs, 0.05, True) == [(3, 3), (1, 2), (1, 2), (4, 4)]
    assert rank(programs, 0.05, False) == [(2, 2), (3, 4), (3, 4), (1, 1)]
    assert rank([programs[0], programs[1][:1]], 0.05, True) == [(1, 2), (1, 2)], "one block tells nothing"
    assert rank([np.full(6, math.inf), np.full(6, math.inf)], 0.05, True) == [(1, 2), (1, 2)]
    assert rank([], 0.05, True) == []


def test_one_program_has_no_league():
    study = study_of(server=("origin",))
    assert league(study, rows_of(study)) == []
