"""What a study comes to before it runs."""

import pytest

from trifecta import studies
from trifecta.implementations.registry import CLIENTS, SERVERS
from trifecta.workloads.preflight import preflight
from trifecta.workloads.requests.supported import requests_supported

NOTHING = "this run can give no verdict: one needs 6 blocks of its cell, and it ends at "


def race(*settings):
    return studies.load("race", settings)


def test_a_race_is_counted_timed_and_weighed():
    found = preflight(race())
    assert (found.cells, found.arms, found.blocks, found.trials) == (12, 4, 6, 12 * 4 * 6)
    assert found.time_ns[1] == 4 * found.time_ns[0]  # half to twice of what is estimated
    assert found.sent_bytes > 12 * 4 * 6 * 10 * 10_000
    assert found.warnings == []
    (line,) = found.lines()
    assert line.startswith("12 cells x 4 arms x 6 blocks: 288 trials, ")
    assert " of a budget of 3 min, " in line
    assert line.endswith(" to keep")


def test_between_hosts_a_time_is_told_without_what_nobody_knows():
    between = race("hosts.client=ssh://a", "hosts.server=ssh://b")
    assert " (without the round trips between the hosts) of a budget of 3 min, " in preflight(between).lines()[0]
    assert "round trips" not in preflight(race()).lines()[0]


def test_octets_are_those_of_every_request():
    settings = ("path=far", "connection=new", "server=origin", "requests=7", "warmup=3 requests", "response=2 kB")
    assert preflight(race(*settings)).sent_bytes == 6 * 4 * 10 * 2_000
    assert preflight(race(*settings[:3], "paths.far.trial.new={duration: 1 s}")).sent_bytes is None


@pytest.mark.parametrize(("blocks", "warned"), [(1, True), (2, True), (5, True), (6, False), (9, False)])
def test_below_six_blocks_it_warns_that_nothing_can_be_decided(blocks, warned):
    found = preflight(race(f"blocks={{at_least: {blocks}, at_most: {blocks}}}", "budget=none"))
    assert found.blocks == blocks
    assert any(warning.startswith(NOTHING) for warning in found.warnings) == warned


def test_the_fewest_blocks_follow_the_confidence():
    assert preflight(race("confidence=99 %", "blocks={at_least: 7, at_most: 7}", "budget=none")).warnings
    assert not preflight(race("confidence=99 %", "blocks={at_least: 8, at_most: 8}", "budget=none")).warnings
    assert not preflight(race("confidence=90 %", "blocks={at_least: 5, at_most: 5}", "budget=none")).warnings


def test_a_budget_that_does_not_hold_six_blocks_is_warned_of():
    few = ("blocks={at_least: 1, at_most: 200}",)
    (said,) = preflight(race(*few, "budget=15 s")).warnings
    assert said.startswith("the budget of 15 s is too short for 6 blocks of every cell")
    (said,) = preflight(race(*few, "budget=45 s")).warnings
    assert said.startswith("the budget of 45 s may be too short for 6 blocks of every cell")
    assert preflight(race(*few, "budget=3 min")).warnings == []


@pytest.mark.parametrize("settings", [("protocol=h2", "baseline=h2"), ("capture=true",)])
def test_a_study_without_verdicts_is_not_warned(settings):
    assert preflight(race(*settings, "blocks={at_least: 2, at_most: 2}", "budget=none")).warnings == []


def test_a_server_that_cannot_do_the_work_is_left_out_with_its_reason():
    study = race("method=POST")
    here = requests_supported(study, SERVERS, CLIENTS)
    found = preflight(study, here.cells, here.left_out)
    assert found.cells == 6
    assert any(
        line.startswith("left out: server caddy: Caddy's file server does not answer POST") for line in found.lines()
    )


@pytest.mark.parametrize("name", studies.bundled())
def test_every_bundled_study_has_one(name):
    found = preflight(studies.load(name))
    assert found.trials >= found.cells * found.arms
    assert all("\n" not in line for line in found.lines())
