"""`--cluster` on a real Ray cluster of this machine: kill -9 of a node, of a worker and of the head; a frozen node."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.lab.ended import all_ended
from tests.workloads import drive
from tests.workloads.fake_engine import stand_in
from trifecta.design import extras, plan
from trifecta.store.run import RunDirectory
from trifecta.studies import known_servers, load

pytestmark = [
    pytest.mark.lab,
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(extras.missing("cluster")), reason="the extra cluster is not installed"),
]
BLOCKS = 6
PATIENT = ["workload.request_timeout=1 s", "workload.connect_timeout=1 s"]
SETTINGS = [
    "protocol=h2,h3", "path=clean", "server=origin", "connection=new,reused", f"blocks.at_least={BLOCKS}",
    f"blocks.at_most={BLOCKS}", "budget=20 min", "conformance=off", "workload.requests=20",
    "workload.warmup=2 requests", *PATIENT, "seed=1",
    "give_up=false",  # on a busy machine few trials count, and here it is about which are run
]  # fmt: skip
TRIALS = 2 * BLOCKS * 3
NODE = "trifecta.workloads.cluster.node"
UNDECIDED = 4
"""Of a gate."""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """With a stand-in for the engine: what is tested is who is killed, not what is measured."""
    engine = stand_in(tmp_path / "engine")
    own = {"TRIFECTA_ENGINE": str(engine), "PYTHONPATH": str(drive.REPOSITORY), "FAKE_SECONDS": "0.5"}
    return {**os.environ, **own}


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    """What a test starts, ended with everything below it however the test ends."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        below = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
        process.kill()
        for one in below:
            if one.is_running():
                one.kill()


def begin(folder: Path, environment: dict[str, str], *command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "trifecta", *command, "--quiet", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=folder.parent,
    )


def run(folder: Path, environment: dict[str, str], nodes: int = 3) -> subprocess.Popen[str]:
    settings = [word for setting in SETTINGS for word in ("--set", setting)]
    return begin(folder, environment, "run", "race", *settings, "--out", str(folder), "--cluster", f"local:{nodes}")


def committed(folder: Path) -> int:
    return len(list((folder / "trials").glob("t*.parquet"))) if (folder / "trials").is_dir() else 0


def wait_for_trials(folder: Path, process: subprocess.Popen[str], many: int) -> None:
    until = time.monotonic() + 240
    while committed(folder) < many:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < until
        time.sleep(0.05)


def programs(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """The outer process of every node's program."""
    found = []
    for one in psutil.Process(process.pid).children(recursive=True):
        with suppress(psutil.Error):  # many are there for a moment only
            parent = one.parent()
            if NODE in one.cmdline() and parent is not None and NODE not in parent.cmdline():
                found.append(one)
    return found


def raylet_of(program: psutil.Process) -> psutil.Process:
    return next(one for one in program.parents() if "raylet" in one.name())


def of_a_worker(process: subprocess.Popen[str]) -> psutil.Process:
    """A program that is not at the node of Ray's own head, which the driver needs."""
    drivers = raylets_with_head(process)
    return next(one for one in programs(process) if raylet_of(one).pid not in drivers)


def raylets_with_head(process: subprocess.Popen[str]) -> set[int]:
    """The raylet that came first: that of the head's node."""
    every = []
    for one in psutil.Process(process.pid).children(recursive=True):
        with suppress(psutil.Error):
            every += [one] if "raylet" in one.name() else []
    return {min(every, key=lambda one: one.create_time()).pid}


def assert_whole(folder: Path) -> list[dict[str, Any]]:
    study = load("race", SETTINGS, known_servers())
    found: list[dict[str, Any]] = RunDirectory.open(folder).rows()  # type: ignore[assignment]
    assert len(found) == TRIALS
    assert len({(row["cell"], row["block"], row["arm"]) for row in found}) == TRIALS
    for cell in plan.cells(study):
        for block in range(BLOCKS):
            own = [row for row in found if (row["cell"], row["block"]) == (cell.key, block)]
            expected = plan.block_trials(study, cell, block, int(own[0]["trial"][1:]))
            assert [(row["arm"], row["seed"]) for row in own] == [(trial.arm, trial.seed) for trial in expected]
            assert len({row["node"] for row in own}) == 1
    return found


def outcome(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, errors = process.communicate(timeout=400)
    assert process.returncode in (0, 1), errors  # 1: the stand-in's trials pass no check
    found: dict[str, Any] = json.loads(out)
    return found


def test_three_nodes_make_one_run_and_leave_nothing(tmp_path: Path, environment: dict[str, str], started: Any) -> None:
    process = run(tmp_path / "run", environment)
    started.append(process)
    wait_for_trials(tmp_path / "run", process, 3)
    below = psutil.Process(process.pid).children(recursive=True)
    outcome(process)
    assert {row["node"] for row in assert_whole(tmp_path / "run")} == {"node1", "node2", "node3"}
    assert all_ended(below, 30)


@pytest.mark.parametrize("who", ["node", "worker", "program"])
def test_what_is_killed_loses_its_block_at_most(
    tmp_path: Path, environment: dict[str, str], started: Any, who: str
) -> None:
    process = run(tmp_path / "run", environment)
    started.append(process)
    wait_for_trials(tmp_path / "run", process, 9)
    program = of_a_worker(process)
    actor = program.parent()
    assert actor is not None
    {"node": raylet_of(program), "worker": actor, "program": program}[who].kill()
    outcome(process)
    assert_whole(tmp_path / "run")
    lost = RunDirectory.open(tmp_path / "run").facts.get("lost_blocks", [])
    assert len(lost) <= 1
    assert all_ended([program], 5)


def test_a_frozen_node_is_lost(tmp_path: Path, environment: dict[str, str], started: Any) -> None:
    process = run(tmp_path / "run", environment)
    started.append(process)
    wait_for_trials(tmp_path / "run", process, 9)
    raylet = raylet_of(of_a_worker(process))
    frozen = [raylet, *raylet.children(recursive=True)]
    for one in frozen:
        one.suspend()
    try:
        outcome(process)
    finally:
        for one in frozen:
            if one.is_running():
                one.resume()
    assert_whole(tmp_path / "run")
    (lost,) = RunDirectory.open(tmp_path / "run").facts["lost_blocks"]
    assert lost["reason"]


def test_a_node_that_is_cut_off_is_lost_and_comes_back(
    tmp_path: Path, environment: dict[str, str], started: Any
) -> None:
    """Three hosts in network namespaces of their own, with a raylet each."""
    folder = tmp_path / "run"
    words = str(folder), json.dumps(SETTINGS)
    code, said = drive.said_last(started, "drive_partition", *words, environment=environment, timeout_s=500)
    assert code in (0, 1), said
    assert {row["node"] for row in assert_whole(folder)} == {"n1", "n2"}
    (lost,) = RunDirectory.open(folder).facts["lost_blocks"]
    assert lost["node"] == "n2"


MAP = ["map", "--x", "rtt=5ms..50ms", "--y", "loss=0..2%", "--resolution", "4x4", "--blocks", "8"]
GATE = ["gate", "race", "--baseline", "tcp_nodelay=on", "--candidate", "tcp_nodelay=off", "--budget", "40 s"]
ALONE = ["protocol=h2", "path=clean", "server=origin", "connection=new,reused", "conformance=off", "give_up=false"]


@pytest.mark.parametrize(
    ("words", "settings", "least"), [(MAP, PATIENT, 8), (GATE, [*ALONE, *PATIENT], 2)], ids=["map", "gate"]
)
def test_maps_and_gates_are_measured_by_every_node(
    tmp_path: Path, environment: dict[str, str], started: Any, words: list[str], settings: list[str], least: int
) -> None:
    changes = [word for setting in settings for word in ("--set", setting)]
    folder = tmp_path / "run"
    process = begin(folder, environment, *words, *changes, "--out", str(folder), "--cluster", "local:2")
    started.append(process)
    _, errors = process.communicate(timeout=400)
    assert process.returncode in (0, 1, UNDECIDED), errors
    found: list[dict[str, Any]] = RunDirectory.open(folder).rows()  # type: ignore[assignment]
    blocks = {(row["cell"], row["block"]): row["node"] for row in found}
    assert len(found) == 3 * len(blocks), "every block whole, none twice"
    assert len(blocks) >= least
    assert set(blocks.values()) == {"node1", "node2"}


REPRODUCED = ["path=near", "blocks={at_least: 6, at_most: 6}", "conformance=off", "give_up=false", *PATIENT]


def test_a_reproduction_is_measured_by_every_node(tmp_path: Path, environment: dict[str, str], started: Any) -> None:
    changes = [word for setting in REPRODUCED for word in ("--set", setting)]
    asked = ["reproduce", "milicevic2023", "--quick", "--only", "engine-latency", "--no-threats", *changes]
    process = begin(tmp_path / "out", environment, *asked, "--out", "out", "--cluster", "local:2")
    started.append(process)
    out, errors = process.communicate(timeout=400)
    assert process.returncode in (0, 1), errors  # 1: the stand-in's trials pass no check
    said = json.loads(out)
    assert said["reproduction"]["depth"] == "quick"
    assert [one["name"] for one in said["runs"]] == ["engine-latency"]
    assert {claim["id"].partition(".")[0] for claim in said["claims"]} == {"milicevic2023"}
    assert (tmp_path / "out" / "reproduction.html").exists()
    folder = tmp_path / "out" / "milicevic2023" / "engine-latency"
    found: list[dict[str, Any]] = RunDirectory.open(folder).rows()  # type: ignore[assignment]
    blocks = {(row["cell"], row["block"]): row["node"] for row in found}
    assert {block for _, block in blocks} == set(range(6))
    assert len(found) == len({(row["cell"], row["block"], row["arm"]) for row in found}) == 3 * len(blocks)
    assert set(blocks.values()) == {"node1", "node2"}
    made = {path.name: path.read_bytes() for path in (folder / "trials").glob("t*.parquet")}
    again = begin(tmp_path / "out", environment, "resume", "out", "--cluster", "local:2")
    started.append(again)
    out, errors = again.communicate(timeout=400)
    assert again.returncode == process.returncode, errors
    assert {path.name: path.read_bytes() for path in (folder / "trials").glob("t*.parquet")} == made


@pytest.mark.parametrize("on_a_cluster", [True, False])
def test_a_head_that_is_killed_loses_nothing_that_was_committed(
    tmp_path: Path, environment: dict[str, str], started: Any, on_a_cluster: bool
) -> None:
    folder = tmp_path / "run"
    process = run(folder, environment)
    started.append(process)
    wait_for_trials(folder, process, 9)
    nodes = programs(process)
    process.kill()
    process.communicate()
    assert all_ended(nodes, 60), "the nodes' programs end with their head"
    before = {row["trial"]: row["started_ns"] for row in RunDirectory.open(folder).rows()}
    assert len(before) >= 9
    more = ("--cluster", "local:2") if on_a_cluster else ()
    second = begin(folder, environment, "resume", str(folder), *more)
    started.append(second)
    outcome(second)
    after = {row["trial"]: row["started_ns"] for row in assert_whole(folder)}
    assert before.items() <= after.items()
