"""Hidden retries on samples whose truth is known, and out of a run's files."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.analysis.test_resampling import world
from tests.cli.test_run import trifecta
from trifecta import studies
from trifecta.analysis.resampling import Times
from trifecta.workloads.experiments import _outcome
from trifecta.workloads.retry_experiment import of_blocks

STUDY = studies.experiment("retries-hidden", ())


def rows(found, metric):
    (effect,) = [one for one in found if one["metric"] == metric]
    return {(row["arm"], row["reference"]): row for row in effect["rows"]}


def test_failures_of_one_protocol_make_it_slow_and_none_is_left_in_the_table():
    blocks = world(1, 6, 80, 0.0, 0.1, 0.01)
    rng = np.random.default_rng(2)
    blocks = [
        {"h2": block["h2"], "h3": [Times(20e6 * np.exp(rng.normal(0, 0.1, 64)), np.full(16, 1500e6))]}
        for block in blocks
    ]
    found = of_blocks(blocks, STUDY)
    success, times = rows(found, "success_rate"), rows(found, "latency_mean_ns")
    assert success["h3", None]["off"]["value"] == pytest.approx(0.8)
    assert success["h3", None]["on"]["value"] == 1
    assert success["h3", None]["outcome"] == "more"
    assert success["h2", None]["outcome"] == "undecided"  # none failed: nothing to hide
    h3, pair = times["h3", None], times["h3", "h2"]
    # Of a fifth that fails each costs 1.5 s and a pause of half a second or more, some of them twice: 500 ms on 20 ms.
    assert 15 < h3["ratio"] < 60
    assert (h3["outcome"], pair["outcome"]) == ("more", "more")
    assert pair["ratio"] == pytest.approx(h3["ratio"], rel=0.05)
    assert times["h2", None]["ratio"] == pytest.approx(1.0, abs=0.05)
    assert pair["low"] < pair["ratio"] < pair["high"]
    assert _outcome(found) == "effect"
    assert {(one["off"], one["on"]) for one in found} == {("counted", "hidden")}


def test_alike_failures_change_no_comparison():
    found = of_blocks(world(3, 40, 200, 0.0, 0.1, 0.01, fail=0.05), STUDY)
    pair = rows(found, "latency_mean_ns")["h3", "h2"]
    assert pair["low"] < 1 < pair["high"]
    assert pair["outcome"] in ("undecided", "same")


def test_without_a_failure_there_is_nothing_to_say():
    assert of_blocks(world(4, 4, 50, 0.0, 0.1, 0.01), STUDY) == []
    assert of_blocks([], STUDY) == []
    assert _outcome([]) == "not measured"


def test_a_protocol_without_any_success_is_left_out():
    blocks = [{"h2": [Times(np.full(9, 1e6), np.full(1, 1e9))], "h3": [Times(np.empty(0), np.full(9, 1e9))]}] * 3
    found = of_blocks(blocks, STUDY)
    assert rows(found, "success_rate")["h3", None]["off"]["value"] == 0
    assert ("h3", "h2") not in rows(found, "latency_mean_ns")


@pytest.mark.lab
@pytest.mark.long
def test_the_experiment_fails_requests_and_says_what_hiding_them_does(tmp_path):
    changes = ["--set", "blocks={at_least: 2, at_most: 2}", "--set", "paths.lossy.loss=15 %"]
    done = trifecta(
        "threats", "measure", "retries-hidden", "--quick", "--quiet", "--json", "--out", "here", *changes, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    (one,) = json.loads(done.stdout)
    assert one["outcome"] == "effect", one["reason"]
    assert {effect["metric"] for effect in one["effects"]} == {"success_rate", "latency_mean_ns"}
    known = [row["off"]["value"] for row in one["effects"][0]["rows"] if row["off"]]  # none where no trial counts
    assert known and max(known) < 1
