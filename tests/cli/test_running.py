"""Exit codes of a run, and the name of its folder."""

import re
from pathlib import Path

import pytest

from trifecta import studies
from trifecta.cli import running
from trifecta.design.errors import UserError
from trifecta.design.study import chain, requests, study
from trifecta.design.study_file import parse_study
from trifecta.lab import cgroups
from trifecta.workloads.runner import StudyOutcome


@pytest.mark.parametrize(
    ("kind", "valid", "code"),
    [
        ("decided", 40, 0),
        ("budget", 40, 0),
        ("blocks", 1, 0),
        ("blocks", 0, 1),
        ("unmeasurable", 3, 1),
        ("interrupted", 40, 130),
        ("interrupted", 0, 130),
        ("captured", 0, 0),
    ],
)
def test_exit_codes(kind, valid, code):
    outcome = StudyOutcome(
        run_path=Path(), verdicts=[], checks=[], reason="", kind=kind, trials=40, valid_trials=valid,
        whole_trials=40, elapsed_ns=1,
    )  # fmt: skip
    assert running.exit_code(outcome) == code


def test_captured_trials_of_which_none_is_whole_are_a_failure():
    outcome = StudyOutcome(Path(), [], [], "", "captured", trials=4, valid_trials=0, whole_trials=0, elapsed_ns=1)
    assert running.exit_code(outcome) == 1


def test_the_default_folder_is_new_each_time(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("time.strftime", lambda _: "20260101-120000")
    race = studies.load("race")
    first = running.default_folder(race)
    assert re.fullmatch(r"runs/race-20260101-120000", str(first))
    first.mkdir(parents=True)
    assert str(running.default_folder(race)) == "runs/race-20260101-120000-2"


@pytest.mark.parametrize(("places", "after"), [(["native"], None), (["native", "docker-host"], cgroups.forget)])
def test_with_containers_what_outlives_them_is_removed_afterwards(places, after, monkeypatch):
    asked = []
    monkeypatch.setattr("trifecta.lab.sandbox.enter", asked.append)
    race = studies.load("race")
    running.enter_lab([race, study("c", workload=chain(requests=1), factors={"place": places})])
    assert asked == [after]


BETWEEN = ["hosts.client=ssh://a", "hosts.server=ssh://b"]


def test_a_study_between_hosts_enters_no_lab(monkeypatch):
    monkeypatch.setattr("trifecta.lab.sandbox.enter", lambda _: pytest.fail("it lost this machine's network"))
    running.enter_lab([studies.load("race", BETWEEN)])


def test_a_lab_and_hosts_cannot_be_had_in_one_command(monkeypatch):
    monkeypatch.setattr("trifecta.lab.sandbox.enter", lambda _: pytest.fail("it was entered"))
    with pytest.raises(UserError, match=r"needs this machine's own network, and study race a lab: .*separately"):
        running.enter_lab([studies.load("race"), studies.load("race", BETWEEN)])


def test_a_command_that_asks_nobody_measures_no_server_elsewhere(monkeypatch):
    monkeypatch.setattr("trifecta.lab.sandbox.enter", lambda _: pytest.fail("it was entered"))
    far = parse_study("study: site\nworkload: {kind: far, requests: 4, url: 'https://a.example/'}\n", "site.yaml")
    with pytest.raises(UserError, match="study 'site' asks a server elsewhere, and this command measures in a lab"):
        running.enter_lab([studies.load("race"), far])


def test_a_service_of_a_compose_file_is_a_container(monkeypatch):
    asked = []
    monkeypatch.setattr("trifecta.lab.sandbox.enter", asked.append)
    web = {"folder": "/x", "service": {"build": ".", "command": "web {port} {cert} {key}"}}
    mine = study("c", workload=requests(requests=20), factors={"server": ["web"]}, servers={"web": web})
    running.enter_lab([mine])
    running.enter_lab([study("c", workload=requests(requests=20))])
    assert asked == [cgroups.forget, None]


@pytest.mark.parametrize(
    ("tolerated", "written"),
    [
        (frozenset(), {}),
        (frozenset({"parity", "drops"}), {"counted_elsewhere": ["drops", "parity"]}),
        ({"a": frozenset({"parity"}), "b": frozenset()}, {"counted_elsewhere": ["parity"]}),
    ],
)
def test_a_run_knows_which_failures_count_in_what_it_is_part_of(monkeypatch, tmp_path, tolerated, written):
    asked = {}
    monkeypatch.setattr("trifecta.workloads.run_on.runner_on", lambda _: lambda *_, **how: asked.update(how))
    running.runner(lambda: False, quiet=True, tolerated=tolerated)(None, tmp_path, False)
    assert asked["more_facts"] == written
