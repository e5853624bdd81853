"""`trifecta reproduce` from end to end: a small part of a study, its folder, and going on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.workloads.drive import REPOSITORY
from tests.workloads.test_campaign import trifecta
from trifecta.design.errors import UserError

pytestmark = pytest.mark.lab
SMALL = ("--only", "engine-latency", "--no-threats", "--set", "path=near", "--set", "blocks={at_least: 2, at_most: 2}")


def test_a_study_is_run_and_set_beside_what_was_published(tmp_path: Path) -> None:
    done = trifecta("reproduce", "milicevic2023", *SMALL, "--out", "out", "--json", folder=tmp_path)
    assert done.returncode in (0, 1), done.stderr  # 1: a busy machine, where no trial counts
    said = json.loads(done.stdout)
    assert said["reproduction"]["depth"] == "quick"
    assert [run["name"] for run in said["runs"]] == ["engine-latency"]
    assert {claim["id"].partition(".")[0] for claim in said["claims"]} == {"milicevic2023"}
    for name in ("reproduction.html", "reproduction.json", "milicevic2023/engine-latency/report.html"):
        assert (tmp_path / "out" / name).exists(), name
    before = (tmp_path / "out" / "milicevic2023" / "engine-latency" / "run.json").read_bytes()
    again = trifecta("resume", "out", "-q", folder=tmp_path)
    assert again.returncode == done.returncode, again.stderr
    assert "Of 5 claims" in again.stdout
    assert (tmp_path / "out" / "milicevic2023" / "engine-latency" / "run.json").read_bytes() == before


@pytest.mark.long
def test_both_kinds_of_conditions_stand_in_one_folder(tmp_path: Path) -> None:
    """As published first, in a folder of its own; today's page and data take both."""
    programs = ("--set", "server=origin", "--set", "client=load", "--as-published", "--today")
    done = trifecta("reproduce", "milicevic2023", *SMALL, *programs, "--out", "out", "--json", folder=tmp_path)
    assert done.returncode in (0, 1), done.stderr
    said = json.loads(done.stdout)
    nested = json.loads((tmp_path / "out" / "as-published" / "reproduction.json").read_text())
    assert (nested["reproduction"]["as_published"], said["reproduction"]["as_published"]) == (True, False)
    study = tmp_path / "out" / "as-published" / "milicevic2023" / "engine-latency" / "study.yaml"
    assert "1.2/1.3" in study.read_text()
    assert "1.2/1.3" not in (tmp_path / "out" / "milicevic2023" / "engine-latency" / "study.yaml").read_text()
    rows = {row["id"]: row for row in said["claims"]}
    assert all(row["as_published"]["by"] == "as-published" for row in rows.values())
    assert not any(row["answer"] == "contradicted" for row in rows.values())
    again = trifecta("resume", "out", "-q", folder=tmp_path)
    assert again.returncode == done.returncode, again.stderr


def test_parts_are_asked_of_the_studies_that_have_them() -> None:
    from trifecta.cli.reproduce import _parts_of_studies

    names = ["bourbon2020", "baccichet2021", "ding2022", "milicevic2023"]
    assert _parts_of_studies(names, ["page", "engine"]) == {
        "baccichet2021": ["page"],
        "ding2022": ["engine"],
        "milicevic2023": ["engine"],
    }
    assert _parts_of_studies(names, []) == {name: [] for name in names}
    with pytest.raises(UserError, match="no study, scenario or suite of these studies"):
        _parts_of_studies(names, ["page", "pag"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["bourbon"], "no published study 'bourbon'; did you mean 'bourbon2020'"),
        (["bourbon2020", "--only", "singel"], "no such study, scenario or suite"),
        (["bourbon2020", "--with", "nothing"], "no threat 'nothing'"),
        ([], "missing argument"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = trifecta("reproduce", *arguments, folder=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_it_is_stopped_and_killed_and_goes_on_with_the_same_command(tmp_path: Path) -> None:
    """At full depth: after Ctrl-C and after kill -9 in the middle of a trial nothing is lost but that trial."""
    asked = ["milicevic2023", "--full", "--only", "engine-latency", "--no-threats", "--out", "out"]
    for change in ("path=near", "request=600 B", "requests=150", "blocks={at_least: 3, at_most: 3}"):
        asked += ["--set", change]
    trials = tmp_path / "out" / "milicevic2023" / "engine-latency" / "trials"
    told = interrupted(asked, tmp_path, trials, committed=2, how=signal.SIGINT)
    assert "1 run, 9 trials, about" in told
    assert "Ctrl-C keeps finished trials" in told
    first = {one.name: one.read_bytes() for one in trials.glob("t*.parquet")}
    assert 2 <= len(first) < 9
    told = interrupted(asked, tmp_path, trials, committed=len(first) + 2, how=signal.SIGKILL)
    assert f"{len(first)} trials are finished; 1 of 1 run left, {9 - len(first)} trials" in told
    second = {one.name: one.read_bytes() for one in trials.glob("t*.parquet")}
    assert len(first) < len(second) < 9
    done = trifecta("reproduce", *asked, folder=tmp_path)
    assert done.returncode in (0, 1), done.stderr  # 1: a busy machine, where no trial counts
    assert f"{len(second)} trials are finished" in done.stderr
    last = {one.name: one.read_bytes() for one in trials.glob("t*.parquet")}
    assert sorted(last) == [f"t{number:05d}.parquet" for number in range(9)]
    assert {name: last[name] for name in second} == second  # none runs twice
    assert {name: second[name] for name in first} == first
    rows = [pq.ParquetFile(trials / name).read(columns=["block", "arm"]).to_pylist()[0] for name in last]
    assert {(row["block"], row["arm"]) for row in rows} == {(b, arm) for b in range(3) for arm in ("h2", "h2#aa", "h3")}
    assert not list(trials.glob(".tmp-*"))
    other = trifecta("reproduce", *asked[:-2], folder=tmp_path)
    assert other.returncode == 2
    assert "holds another reproduction (overrides of milicevic2023 differs)" in other.stderr


def interrupted(asked: list[str], folder: Path, trials: Path, *, committed: int, how: signal.Signals) -> str:
    """Begin it, end it in the middle of the trial after so many, and return what it said."""
    with (folder / "said.txt").open("w") as said:
        running = subprocess.Popen(
            [sys.executable, "-m", "trifecta.cli.main", "reproduce", *asked],
            cwd=folder, env={**os.environ, "PYTHONPATH": str(REPOSITORY)}, stdout=said, stderr=said,
        )  # fmt: skip
        end = time.monotonic() + 90
        while len(list(trials.glob("t*.parquet"))) < committed:
            assert running.poll() is None, (folder / "said.txt").read_text()
            assert time.monotonic() < end, (folder / "said.txt").read_text()
            time.sleep(0.05)
        time.sleep(0.4)  # a trial takes about a second
        running.send_signal(how)
        code = running.wait(timeout=30)
    assert code == (130 if how == signal.SIGINT else -signal.SIGKILL)
    return (folder / "said.txt").read_text()


def test_two_reproductions_are_compared_with_an_exit_code(tmp_path: Path) -> None:
    one = {"id": "s.x", "kind": "claim", "text": "A text.", "state": "confirmed", "form": "ratio", "ratio": 1.2,
           "low": 1.1, "high": 1.3, "blocks": 6}  # fmt: skip
    for name, state in (("a", "confirmed"), ("b", "contradicted")):
        (tmp_path / name).mkdir()
        document = {"reproduction": {"began": "2026-01-01"}, "claims": [one | {"state": state}], "figures": []}
        (tmp_path / name / "reproduction.json").write_text(json.dumps(document))
    assert trifecta("reproduce", "--compare", "a", "a", folder=tmp_path).returncode == 0
    done = trifecta("reproduce", "--compare", "a", "b", "--json", folder=tmp_path)
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["claims"][0]["relation"] == "differs"
    refused = trifecta("reproduce", "all", "--compare", "a", "b", folder=tmp_path)
    assert (refused.returncode, "--compare runs nothing; leave studies out" in refused.stderr) == (2, True)
    assert trifecta("reproduce", "--compare", "a", "nowhere", folder=tmp_path).returncode == 2
