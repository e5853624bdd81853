"""League tables: who is before whom, and who cannot be distinguished."""

import json
import math

import numpy as np
import pytest
from scipy import stats

from tests.analysis.test_decomposition import rows_of, study_of
from trifecta.analysis.league import league, rank
from trifecta.analysis.sessions import OF_TIMES, between_starts, starts_of
from trifecta.design.metrics import METRICS


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


def ranked_apart(servers, blocks, noise, between, starts, runs, seed):
    """Share of tables of equal servers in which any is ranked before another; ``between`` starts they differ."""
    rng, apart = np.random.default_rng(seed), 0
    for _ in range(runs):
        drawn = rng.normal(0, between, (servers, starts))
        logs = [rng.normal(0, noise, blocks) + np.resize(own, blocks) for own in drawn]
        ranks = rank(logs, 0.05, True, [OF_TIMES**2 / starts] * servers)
        apart += any(one != (1, servers) for one in ranks)
    return apart / runs


@pytest.mark.parametrize("between", [0.005, 0.01])
@pytest.mark.parametrize(("servers", "blocks", "noise"), [(2, 60, 0.005), (6, 60, 0.002), (6, 8, 0.01), (4, 30, 0.05)])
def test_equal_servers_of_other_starts_are_ranked_apart_in_one_table_of_twenty(servers, blocks, noise, between):
    runs = 200
    found = ranked_apart(servers, blocks, noise, between, 1, runs, seed=blocks)
    assert found * runs <= stats.binom.ppf(0.999, runs, 0.05)


def test_without_what_starts_differ_by_most_tables_rank_equal_servers_apart():
    rng = np.random.default_rng(5)
    apart = 0
    for _ in range(50):
        logs = [rng.normal(drawn, 0.005, 60) for drawn in rng.normal(0, 0.01, 6)]
        apart += any(one != (1, 6) for one in rank(logs, 0.05, True))
    assert apart >= 45


def test_a_server_started_anew_for_every_block_pays_little():
    assert ranked_apart(6, 60, 0.005, 0.01, 60, 200, seed=3) <= stats.binom.ppf(0.999, 200, 0.05) / 200
    study = study_of(server=("caddy", "origin", "nginx"))
    rows = rows_of(study)
    for row in rows:
        renewed = row["block"] if row["server"] == "nginx" else 0
        row["server_json"] = json.dumps({"restarts": 0, "renewals": renewed, "proxy": False})
    found = {one.server: one for one in table(study, rows)}
    assert {server: one.starts for server, one in found.items()} == {"nginx": 8, "origin": 1, "caddy": 1}
    reach = {server: math.log(one.high / one.low) / 2 for server, one in found.items()}
    assert reach["origin"] > 0.0196 > 0.018 > 0.0196 / math.sqrt(8)
    assert reach["nginx"] < reach["origin"]


def test_how_much_starts_differ_by_metric():
    assert between_starts(METRICS["latency_p50_ns"]) == 0.01
    assert between_starts(METRICS["server_cpu_ns_per_request"]) == 0.02
    assert between_starts(METRICS["success_rate"]) == 0
    assert starts_of([]) == 1
    told = [{"valid": True, "server_json": json.dumps({"restarts": 0, "renewals": n})} for n in (0, 1, 1, 2)]
    assert starts_of(told) == 3
    assert starts_of([row | {"valid": False} for row in told]) == 1


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
