"""What is read out of the runs of a ladder, against the rows of the same runs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.report.synthetic import Shape, write_run
from trifecta.conclude import ladder as concluded
from trifecta.design.ladder_file import parse_ladder
from trifecta.store.run import RunDirectory

TEXT = """\
ladder: small
title: A small one
claim: milicevic2023.far-faster
arm: h3
to: h2
study:
  workload: {kind: requests, requests: 20}
  factors: {path: far, connection: new, server: origin}
  paths: {far: {rtt: 80 ms, rate: 100 Mbit/s, queue: 1 bdp}}
  metric: latency_mean
rounds: {quick: 4, full: 8}
steps:
  - {step: server, title: another server, exchange: {server: [origin, caddy]}, source: II, why: It differs.}
  - {step: rate, title: the rate, metric: [latency_mean, requests_per_s], source: V, why: A rate tells it as well.}
"""
ROUNDS = 4  # of the invented study


@pytest.fixture(scope="module")
def climbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ladder")
    shape = Shape(blocks=8, samples_per_trial=60, paths=("far",), connections=("new",), troubles=False,
                  http3_wait={"origin": 0.6, "caddy": 4.0})  # fmt: skip
    write_run(folder / concluded.STEPS, shape)
    write_run(folder / concluded.ORDERS, shape)
    ladder = parse_ladder(TEXT, "small.yaml")
    return folder, ladder, concluded.read(folder, ladder)


def logs(folder, server, metric):
    """By block the log of HTTP/3 : HTTP/2, from the rows of the run."""
    found = {}
    rows = [row for row in RunDirectory.open(folder / concluded.STEPS).rows() if row["server"] == server]
    for block in range(2 * ROUNDS):
        here = {row["arm"]: math.log(row[metric]) for row in rows if row["block"] == block}
        found[block] = here["h3"] - (here["h2"] + here["h2#aa"]) / 2
    return found


def test_rungs_steps_and_ends_are_those_of_the_rows(climbed):
    folder, _, found = climbed
    own, other = (logs(folder, server, "latency_mean_ns") for server in ("origin", "caddy"))
    even, odd = range(0, 2 * ROUNDS, 2), range(1, 2 * ROUNDS, 2)
    assert found["rungs"][0]["ratio"] == pytest.approx(math.exp(np.mean(list(own.values()))), rel=1e-6)
    step = [other[block] - own[block] for block in even]
    assert found["steps"][0]["ratio"] == pytest.approx(math.exp(np.mean(step)), rel=1e-6)
    assert found["steps"][0]["blocks"] == ROUNDS
    assert found["steps"][0]["low"] < found["steps"][0]["ratio"] < found["steps"][0]["high"]
    assert found["steps"][0]["counts"]
    rates = logs(folder, "caddy", "requests_per_s")
    whole = [-rates[block] - own[block] for block in odd]  # of a rate the ratio is turned
    assert found["whole"]["ratio"] == pytest.approx(math.exp(np.mean(whole)), rel=1e-6)
    product = math.prod(step["ratio"] for step in found["steps"])
    assert found["sum"]["ratio"] == pytest.approx(product, rel=1e-6)
    assert found["left"]["ratio"] == pytest.approx(found["whole"]["ratio"] / product, rel=1e-6)
    assert found["rungs"][2]["ratio"] == pytest.approx(math.exp(-np.mean(list(rates.values()))), rel=1e-6)


def test_both_orders_are_those_of_the_rungs_they_need(climbed):
    folder, ladder, found = climbed
    # The metric is exchanged by reading: only the two servers' cells are needed.
    own, other = (logs(folder, server, "latency_mean_ns") for server in ("origin", "caddy"))
    turned = [{block: -value for block, value in logs(folder, server, "requests_per_s").items()}
              for server in ("origin", "caddy")]  # fmt: skip
    server, rate = found["orders"]
    before = np.mean([other[block] - own[block] for block in own])
    after = np.mean([turned[1][block] - turned[0][block] for block in own])
    assert (server["step"], rate["step"]) == ("server", "rate")
    assert server["before"]["ratio"] == pytest.approx(math.exp(before), rel=1e-6)
    assert server["after"]["ratio"] == pytest.approx(math.exp(after), rel=1e-6)
    assert server["interaction"]["ratio"] == pytest.approx(math.exp(after - before), rel=1e-6)
    assert rate["interaction"]["ratio"] == pytest.approx(server["interaction"]["ratio"], rel=1e-6)
    assert found["no_orders"] == ""
    assert concluded.ranked_pairs(folder, ladder) == [(0, 1)]


def test_it_says_what_it_is_about_and_what_follows(climbed):
    _, _, found = climbed
    assert (found["claim"], found["arm"], found["to"], found["metric"]) == (
        "milicevic2023.far-faster", "h3", "h2", "latency_mean_ns"
    )  # fmt: skip
    assert (found["rounds"], found["complete"], found["runs"]) == (ROUNDS, ROUNDS, ["steps", "orders"])
    assert found["then"]["state"] == "confirmed"
    assert [rung["cell"] for rung in found["rungs"]] == ["server=origin", "server=caddy", "server=caddy"]
    assert found["rungs"][0]["valid"] == found["rungs"][0]["trials"] == 8 * 4


def test_what_is_true_at_the_lowest_rung_alone_held_then(climbed):
    folder, *_ = climbed
    found = concluded.read(folder, parse_ladder(TEXT.rpartition("  - {step: rate")[0], "small.yaml"))
    assert (found["then"]["state"], found["now"]["state"]) == ("confirmed", "contradicted")
    assert found["answer"] == "held then"
    assert found["no_orders"] == "no two of its steps can be in either order, or none has a value"


def test_a_run_without_both_orders_says_why(climbed, tmp_path):
    folder, ladder, _ = climbed
    (tmp_path / concluded.STEPS).symlink_to(folder / concluded.STEPS)
    found = concluded.read(tmp_path, ladder)
    assert (found["orders"], found["no_orders"], found["runs"]) == ([], "not measured yet", ["steps"])
    assert concluded.read(tmp_path, ladder, "b before a cannot be")["no_orders"] == "b before a cannot be"
