"""``trifecta ladder``: what there is, and what is wrong with a command or a file."""

from __future__ import annotations

import json

import pytest

from trifecta.cli import main
from trifecta.design import plan
from trifecta.design.ladder import pairs_of
from trifecta.studies import ladder_files, read_text
from trifecta.threats import THREATS
from trifecta.workloads import ladder as workload

LADDERS = {name: ladder_files.read(read_text(path), path.name) for name, path in ladder_files.bundled().items()}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "missing argument 'CLAIM|STUDY|all'"),
        (["milicevic2023-twent"], "'milicevic2023-twent'; did you mean 'milicevic2023-twenty'?"),
        (["milicevic2023.near-faster"], "there is no ladder of milicevic2023.near-faster yet; choose from "),
        (["none.yaml"], "none.yaml"),
        (["all", "--blocks", "1"], "--blocks"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_exit_code_2(arguments, said, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main.run(["ladder", *arguments]) == 2
    out, error = capsys.readouterr()
    assert said in error
    assert (out, error.count("\n"), list(tmp_path.iterdir())) == ("", 1, [])


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("2023.reused-more", "2023.reused", "no published claim 'milicevic2023.reused'; did"),
        ("reused-more", "gap-grows-with-distance", "compares no two protocols by"),
        ("milicevic2023.reused-more", "ding2022.closer-frames", "compares no two protocols by"),
        ("arm: h3", "arm: h1", "l.yaml: arm: milicevic2023.reused-more is about h3; name one of them"),
        ("progression_mean", "latency_p50", "study.metric: milicevic2023.reused-more is about progr"),
        ("threat: delayed-ack", "threat: delayed", "l.yaml: nagle: no threat 'delayed'; did you mean 'delayed-ack'?"),
    ],
)  # fmt: skip
def test_what_a_file_names_must_be_there(old, new, said, tmp_path, monkeypatch, capsys):
    text = read_text(ladder_files.bundled()["milicevic2023-twenty"])
    assert old in text
    (tmp_path / "l.yaml").write_text(text.replace(old, new))
    monkeypatch.chdir(tmp_path)
    assert main.run(["ladder", "l.yaml"]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_names_stand_for_ladders():
    assert list(ladder_files.find("all")) == sorted(LADDERS)
    assert list(ladder_files.find("milicevic2023")) == ["milicevic2023-half", "milicevic2023-twenty"]
    assert list(ladder_files.find("milicevic2023.reused-more")) == ["milicevic2023-twenty"]
    assert list(ladder_files.find("fifth-of-the-time")) == ["ding2022-fifth"]


@pytest.mark.parametrize("name", sorted(LADDERS))
def test_every_ladder_is_named_as_its_file_says_what_it_lacks_and_can_be_turned(name):
    ladder = LADDERS[name]
    assert ladder.id == name
    assert name.startswith(f"{ladder.study}-")
    assert ladder.lacks
    assert pairs_of(ladder)
    for step in ladder.steps:
        assert step.why.endswith(".")
        assert not step.title.endswith(".")
    for depth in ("quick", "full"):
        study = workload.study_of(ladder, depth=depth, blocks=None, seed=1)
        assert study.min_blocks >= 6


def test_a_step_of_programs_leaves_the_largest_steps_in_either_order():
    """One that shares a factor with another may not stand between it and a third."""
    ladder = LADDERS["milicevic2023-twenty"]
    pairs = {(ladder.steps[first].id, ladder.steps[second].id) for first, second in pairs_of(ladder)}
    assert {("nagle", "client"), ("tls", "client"), ("tls", "server")} <= pairs


def test_trials_that_show_the_published_condition_count():
    ladder = LADDERS["milicevic2023-twenty"]
    found = [ladder_files.tolerated(ladder, rung) for rung in ladder.rungs()]
    assert found == [{"delayed_ack", "headroom", "parity"}, *[{"headroom"}] * 3, *[set()] * 4]
    assert THREATS["delayed-ack"].check == "delayed_ack"
    lag = LADDERS["bourbon2020-fan-in-lag"]
    ids = ["alpn", "client", "tls", "era", "server", "reordering", "reuse", "loss"]
    assert [lag.unapplied_steps(rung)[0].id for rung in lag.rungs()[:8]] == ids
    assert lag.unapplied_steps(lag.rungs()[8]) == []


def test_what_counts_on_a_rung_counts_while_it_is_measured():
    ladder = LADDERS["milicevic2023-twenty"]
    study = workload.study_of(ladder, depth="quick", blocks=2, seed=1)
    tolerated = workload.tolerated_in(ladder, study, ladder.rungs())
    assert set(tolerated) == {cell.key for cell in plan.cells(study)}
    with_nagle = {cell for cell, checks in tolerated.items() if "parity" in checks}
    assert with_nagle == {cell for cell in tolerated if "server=hypercorn-2023," in cell}
    assert len(with_nagle) == 1


def test_the_list_has_every_ladder_and_step(capsys):
    assert main.run(["ladder", "--list", "--json"]) == 0
    told = {one["ladder"]: one for one in json.loads(capsys.readouterr().out)}
    assert told.keys() == LADDERS.keys()
    steps = [step["step"] for step in told["milicevic2023-twenty"]["steps"]]
    assert steps == ["nagle", "tls", "balancer", "client", "server", "load", "statistic"]
    assert main.run(["ladder", "--list", "ding2022"]) == 0
    out = capsys.readouterr().out
    assert "ding2022-fifth" in out
    assert "milicevic2023" not in out
