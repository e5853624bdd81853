"""Verdicts, noise floors and checks between arms, whatever the arms are levels of."""

import dataclasses

import numpy as np
import pytest

from trifecta.analysis.checks import noise_floor
from trifecta.analysis.checks.evidence import RunEvidence
from trifecta.analysis.decomposition import decompose
from trifecta.analysis.estimate import arm_pairs
from trifecta.analysis.interactions import interactions
from trifecta.analysis.league import league
from trifecta.analysis.planner import Planner
from trifecta.analysis.round_trips import explained
from trifecta.analysis.verdict import verdicts
from trifecta.design import plan
from trifecta.design.study_file import parse_study

TEXT = """study: arms
workload: {{requests: 100}}
paths: {{far: {{rtt: 80 ms}}}}
compare: {compare}
factors: {{{factors}}}
"""


def study_of(compare, factors):
    return parse_study(TEXT.format(compare=compare, factors=factors), "arms.yaml")


def rows_of(study, value, blocks=12, sigma=0.02):
    """Rows of trials whose median latency is ``value(levels)`` ns, but for noise."""
    rng, made = np.random.default_rng(7), []
    for block in range(blocks):
        for cell in plan.cells(study):
            for trial in plan.block_trials(study, cell, block, len(made)):
                levels = {name: str(level) for name, level in trial.levels.items()}
                made.append(
                    {
                        "trial": trial.trial, "cell": cell.key, "block": block, "arm": trial.arm, "valid": True,
                        "server": trial.server, "client": trial.client, "path": trial.path, "samples": 100,
                        "connection": trial.connection, "success_rate": 1.0,
                        "latency_p50_ns": value(levels) * rng.lognormal(0, sigma),
                    }
                )  # fmt: skip
    return made


SERVERS = ("server", "protocol: [HTTP/3], server: [origin, caddy, nginx]")


def test_a_study_of_servers_decides_between_servers():
    study = study_of(*SERVERS)
    assert arm_pairs(study) == [("caddy", "origin"), ("nginx", "origin"), ("nginx", "caddy")]
    rows = rows_of(study, lambda levels: {"origin": 1e6, "caddy": 2e6, "nginx": 0.5e6}[levels["server"]])
    found = {(one.arm, one.reference): one for one in verdicts(study, rows)}
    assert {pair: one.verdict for pair, one in found.items()} == {
        ("caddy", "origin"): "slower",
        ("nginx", "origin"): "faster",
        ("nginx", "caddy"): "faster",
    }
    assert found["caddy", "origin"].ratio == pytest.approx(2, rel=0.05)
    assert found["caddy", "origin"].noise_floor is not None, "the baseline against itself"


def test_the_order_of_the_pairs_of_levels_is_that_of_the_study():
    study = study_of("server", "protocol: [HTTP/3], server: [nginx, origin, caddy]")
    study = dataclasses.replace(study, baseline=dataclasses.replace(study.baseline, level="origin"))
    assert arm_pairs(study) == [("nginx", "origin"), ("caddy", "origin"), ("caddy", "nginx")]


def test_what_is_compared_is_named_in_reasons_and_checks():
    study = study_of("resumption", "protocol: [HTTP/3], connection: [new], resumption: [false, true]")
    rows = rows_of(study, lambda levels: 1e6)
    floor = noise_floor.check(RunEvidence(study, plan.cells(study), rows))
    assert floor[0].evidence.startswith("resumption off against itself: ratio")
    assert all("HTTP" not in one.reason for one in verdicts(study, rows))


def test_where_programs_are_compared_nothing_is_split_off_as_theirs():
    study = study_of("server", "protocol: [HTTP/2, HTTP/3], server: [origin, caddy], client: [load, curl]")
    rows = rows_of(study, lambda levels: 1e6 * (2 if levels["server"] == "caddy" else 1))
    assert decompose(study, rows) == league(study, rows) == interactions(study, rows) == []


def test_the_share_of_any_other_factor_is_split_from_that_of_the_programs():
    study = study_of(
        "congestion_control", "protocol: [HTTP/3], server: [origin, caddy], congestion_control: [cubic, bbr]"
    )
    rows = rows_of(study, lambda levels: 1e6 * (2 if levels["congestion_control"] == "bbr" else 1))
    one = next(one for one in decompose(study, rows) if not one.pooled)
    assert (one.arm, one.reference, one.ratio) == ("bbr", "cubic", pytest.approx(2, rel=0.05))
    assert {standing.arm for standing in league(study, rows)} == {"cubic", "bbr"}


def test_the_planner_asks_for_the_arms_of_the_study():
    study = study_of(*SERVERS)
    rows = rows_of(study, lambda levels: 1e6, blocks=1)[:2]
    decision = Planner(study, plan.cells(study)).next(rows, 0)
    assert decision.reason == "an interrupted block is completed first"


def test_round_trips_explain_a_compared_tls_version_and_no_compared_path():
    study = study_of("tls_version", "protocol: [HTTP/2], connection: [new], tls_version: [1.3, 1.2]")
    rows = rows_of(study, lambda levels: {"1.3": 240e6, "1.2": 320e6}[levels["tls_version"]])
    (one,) = explained(study, rows)
    assert (one.arm, one.trips, one.expected) == ("1.2", (4, 3), pytest.approx(4 / 3))
    paths = parse_study(
        "study: p\nworkload: {requests: 10}\npaths: {a: {rtt: 10 ms}, b: {rtt: 20 ms}}\ncompare: path\n"
        "factors: {protocol: [HTTP/2]}\n", "p.yaml",
    )  # fmt: skip
    assert explained(paths, rows_of(paths, lambda levels: 1e6)) == []
