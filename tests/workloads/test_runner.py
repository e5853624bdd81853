"""The runner with a stand-in for the engine: order, commits, stops, resumption, and what is said of failures."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.workloads import drive
from tests.workloads.fake_engine import stand_in
from trifecta.design import plan
from trifecta.store.run import RunDirectory
from trifecta.store.views import connect
from trifecta.studies import known_servers, load

pytestmark = pytest.mark.lab
SETTINGS = [
    "protocol=h2,h3", "path=clean", "server=origin", "connection=new", "blocks.at_least=2", "blocks.at_most=2",
    "budget=2 min", "conformance=off", "workload.requests=20",
    "workload.warmup=2 requests", "workload.request_timeout=1 s", "workload.connect_timeout=1 s",
]  # fmt: skip


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = stand_in(tmp_path / "engine")
    monkeypatch.setenv("TRIFECTA_ENGINE", str(path))
    return path


def rows(folder: Path) -> list[dict[str, Any]]:
    return RunDirectory.open(folder).rows()


def told(folder: Path) -> list[int]:
    """Of how many comparisons each block says how they stand now."""
    return [len(made["intervals"]) for made in RunDirectory.open(folder).decisions() if "block" in made]


def assert_as_planned(folder: Path, settings: list[str]) -> None:
    """Every block once, each trial in the place the plan gives it, none twice."""
    study = load("race", settings, known_servers())
    found = rows(folder)
    assert len({row["trial"] for row in found}) == len(found)
    assert len({(row["cell"], row["block"], row["arm"]) for row in found}) == len(found)
    for cell in plan.cells(study):
        for block in range(study.max_blocks):
            own = [row for row in found if (row["cell"], row["block"]) == (cell.key, block)]
            first = min(int(row["trial"][1:]) for row in own)
            expected = plan.block_trials(study, cell, block, first)
            assert [(row["trial"], row["arm"], row["position"], row["seed"]) for row in own] == [
                (trial.trial, trial.arm, trial.position, trial.seed) for trial in expected
            ]


@pytest.mark.usefixtures("engine")
def test_a_study_runs_as_planned(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    code, events, outcome, errors = drive.finish(folder, set=SETTINGS)
    assert code == 0, errors
    assert outcome["trials"] == 6
    assert_as_planned(folder, SETTINGS)
    assert not list(folder.rglob(".tmp-*"))
    facts = RunDirectory.open(folder).facts
    assert facts["state"] == outcome["kind"]
    assert facts["measuring_share"] == pytest.approx(outcome["share"]["load"])
    assert facts["faults"] == {}
    assert [event[0] for event in events].count("block_finished") == 2
    views = connect(folder)
    assert views.execute("SELECT count(*), count(DISTINCT trial) FROM samples").fetchall() == [(120, 6)]
    assert views.execute("SELECT count(*) FROM verdicts").fetchall() == [(1,)]
    # On a busy machine trials of this engine may not count, and blocks without any say nothing.
    then = views.execute("SELECT blocks FROM intervals ORDER BY blocks").fetchall()
    assert then[-1:] == views.execute("SELECT blocks FROM verdicts WHERE blocks > 0").fetchall()
    assert len(then) == sum(told(folder))
    trial_checks = views.execute("SELECT count(DISTINCT scope) FROM checks WHERE scope LIKE 't%'").fetchall()
    assert trial_checks == [(6,)]
    assert views.execute("SELECT count(*) FROM resources WHERE process = 'client'").fetchall()[0][0] >= 12


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
def test_a_stop_keeps_what_is_finished_and_resume_completes_it(tmp_path: Path, number: signal.Signals) -> None:
    folder = tmp_path / "run"
    process = drive.start(folder, {"FAKE_SECONDS": "0.5"}, set=SETTINGS)
    assert process.stdout is not None
    begun = 0
    for line in process.stdout:
        begun += json.loads(line)[0] == "trial_started"
        if begun == 5:  # in the middle of the second block
            break
    process.send_signal(number)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert json.loads(out.splitlines()[-1])["kind"] == "interrupted"
    assert RunDirectory.open(folder).facts["state"] == "interrupted"
    before = rows(folder)
    assert 4 <= len(before) <= 6
    assert not list(folder.rglob(".tmp-*"))
    code, _, outcome, errors = drive.finish(folder, set=SETTINGS, resume=True)
    assert code == 0, errors
    assert outcome["trials"] == 6
    assert rows(folder)[: len(before)] == before
    assert_as_planned(folder, SETTINGS)
    assert len(before) == 6 or told(folder)[-1] == 1  # who goes on knows nothing of what was said


@pytest.mark.usefixtures("engine")
def test_resume_refuses_another_study(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    one = [*SETTINGS, "blocks.at_least=1", "blocks.at_most=1"]
    assert drive.finish(folder, set=one)[0] == 0
    code, _, _, errors = drive.finish(folder, set=[*one, "seed=2"], resume=True)
    assert code == 2
    assert errors == "trifecta: the study is not the one this run began with; start a new run with --out\n"


@pytest.mark.usefixtures("engine")
def test_a_client_that_crashes_is_a_trial_that_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    one = [*SETTINGS, "blocks.at_least=1", "blocks.at_most=1"]
    faults = {"FAKE_LOAD": '{"1": "crash", "2": "hang"}'}
    code, _, outcome, errors = drive.finish(folder, environment=faults, set=one, grace_s=0.5)
    assert code == 0, errors
    assert outcome["trials"] == 3
    crashed, hung = rows(folder)[1:3]
    assert (crashed["valid"], crashed["error"]) == (False, "client was killed by signal 11")
    assert crashed["load_json"] is None
    assert hung["valid"] is False
    assert "did not end within" in hung["error"]
    assert not (folder / "samples" / "t00001.parquet").exists()


@pytest.mark.usefixtures("engine")
def test_a_client_that_cannot_write_ends_the_run_with_one_line(tmp_path: Path) -> None:
    code, _, _, errors = drive.finish(tmp_path / "run", environment={"FAKE_LOAD": '{"1": "refuse"}'}, set=SETTINGS)
    assert code == 3
    assert errors.count("\n") == 1
    assert "cannot be written" in errors


def test_a_missing_engine_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIFECTA_ENGINE", str(tmp_path / "none"))
    code, _, _, errors = drive.finish(tmp_path / "run", set=SETTINGS)
    assert code == 3
    assert errors.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("engine")
def test_a_run_is_not_written_twice_at_a_time(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = drive.start(folder, {"FAKE_SECONDS": "1"}, set=SETTINGS)
    try:
        deadline = time.monotonic() + 30
        while not (folder / "run.json").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        code, _, _, errors = drive.finish(folder, set=SETTINGS, resume=True)
        assert code == 3
        assert "being written by another run" in errors
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def _server_of(folder: Path) -> psutil.Process:
    for process in psutil.process_iter(["cmdline"]):
        command = process.info["cmdline"] or []
        if "origin" in command and command[-1].startswith(str(folder)):
            return process
    raise AssertionError("the server does not run")


@pytest.mark.usefixtures("engine")
def test_a_server_that_dies_is_noted_and_started_again(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = drive.start(folder, {"FAKE_SECONDS": "0.5"}, set=SETTINGS)
    assert process.stdout is not None
    events = []
    for line in process.stdout:
        events.append(json.loads(line))
        if events[-1][0] == "trial_started" and len([e for e in events if e[0] == "trial_started"]) == 3:
            time.sleep(0.1)
            _server_of(folder).kill()
            break
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    hit = [row for row in rows(folder) if row["error"]]
    assert [row["error"] for row in hit] == ["server origin was killed by signal 9"]
    assert hit[0]["valid"] is False
    notes = [json.loads(line) for line in out.splitlines() if line.startswith('["note"')]
    assert notes == [["note", "server origin was killed by signal 9; it is started again"]]
    after = [row for row in rows(folder) if row["trial"] > hit[0]["trial"]]
    assert after
    assert all(json.loads(row["server_json"])["restarts"] == 1 for row in after)
    assert_as_planned(folder, SETTINGS)
