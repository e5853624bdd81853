"""Nodes that are labs of their own, on this machine and without Ray: the program, its pipe, and who is killed when."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from tests.lab.ended import all_ended, command
from tests.workloads import drive
from tests.workloads.fake_engine import stand_in
from tests.workloads.local_launcher import LocalLauncher
from trifecta.analysis.mapping.search import first_blocks
from trifecta.design import plan
from trifecta.design.errors import CannotError, UserError
from trifecta.design.mapping import make_plan
from trifecta.store import node_blocks
from trifecta.store.run import RunDirectory
from trifecta.studies import known_servers, load
from trifecta.workloads.cluster import loop
from trifecta.workloads.cluster.head import refuse, run_on_cluster

pytestmark = pytest.mark.lab
SETTINGS = [
    "protocol=h2,h3", "path=clean", "server=origin", "connection=new,reused", "blocks.at_least=4", "blocks.at_most=4",
    "budget=5 min", "conformance=off", "workload.requests=20", "workload.warmup=2 requests",
    "workload.request_timeout=1 s", "workload.connect_timeout=1 s",
    "give_up=false",  # on a busy machine few trials count, and here it is about which are run
]  # fmt: skip
TRIALS = 2 * 4 * 3


@pytest.fixture(autouse=True)
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = stand_in(tmp_path / "engine")
    monkeypatch.setenv("TRIFECTA_ENGINE", str(path))
    monkeypatch.setenv("PYTHONPATH", str(drive.REPOSITORY))
    monkeypatch.setenv("FAKE_SECONDS", "0.2")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return path


def head(folder: Path, **request: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.workloads.drive_cluster", str(folder), json.dumps({"set": SETTINGS, **request})],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=drive.REPOSITORY,
    )


def rows(folder: Path) -> list[dict[str, Any]]:
    return RunDirectory.open(folder).rows()  # type: ignore[return-value]


def assert_whole(folder: Path, trials: int = TRIALS) -> None:
    """Every block whole, of one node, as planned; none twice."""
    study = load("race", SETTINGS, known_servers())
    found = rows(folder)
    assert len(found) == trials
    assert len({(row["cell"], row["block"], row["arm"]) for row in found}) == trials
    cells = {cell.key: cell for cell in plan.cells(study)}
    for key, number in {(row["cell"], row["block"]) for row in found}:
        own = [row for row in found if (row["cell"], row["block"]) == (key, number)]
        expected = plan.block_trials(study, cells[key], number, int(own[0]["trial"][1:]))
        assert [(row["trial"], row["arm"], row["seed"]) for row in own] == [(t.trial, t.arm, t.seed) for t in expected]
        assert len({row["node"] for row in own}) == 1
    assert not (folder / node_blocks.FOLDER).exists()


def nodes_of(root: int) -> list[psutil.Process]:
    """The programs of nodes below a process, the outer of each sandbox."""
    every = psutil.Process(root).children()
    return [one for one in every if "trifecta.workloads.cluster.node" in command(one)]


def wait_for(process: subprocess.Popen[str], event: str, many: int = 1) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        many -= json.loads(line)[0] == event
        if not many:
            return
    raise AssertionError(process.communicate()[1])


def test_two_nodes_make_one_ordinary_run(tmp_path: Path) -> None:
    process = head(tmp_path / "run", nodes=2)
    out, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors
    assert json.loads(out.splitlines()[-1])["trials"] == TRIALS
    assert_whole(tmp_path / "run")
    assert {row["node"] for row in rows(tmp_path / "run")} == {"n1", "n2"}
    facts = RunDirectory.open(tmp_path / "run").facts
    assert set(facts["nodes"]) == {"n1", "n2"}
    assert "lost_blocks" not in facts
    assert not list(tmp_path.glob("trifecta-node-*/*")), "a node leaves nothing but its lock"


GATED = [
    *(one for one in SETTINGS if not one.startswith(("protocol=", "blocks.", "connection="))),
    "protocol=h2", "connection=new", "budget=10 s",
]  # fmt: skip


def test_a_gate_is_decided_by_the_blocks_of_two_nodes(tmp_path: Path) -> None:
    pair = ["tcp_nodelay=on", "tcp_nodelay=off"]  # the invented engine heeds neither
    process = head(tmp_path / "run", nodes=2, set=GATED, gate=pair)
    out, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors
    found = rows(tmp_path / "run")
    assert {row["node"] for row in found} == {"n1", "n2"}
    blocks = [(row["cell"], row["block"]) for row in found]
    assert len(found) == 3 * len(set(blocks)), "every block has its baseline, that again, and the candidate, once"
    said = json.loads(out.splitlines()[-1])
    assert said["state"] in ("pass", "undecided"), said  # on a busy machine few trials count
    assert len(set(blocks)) >= 2  # how many a busy machine has in the time is its affair


@pytest.mark.long
def test_a_map_is_measured_by_two_nodes_and_gone_on_with(tmp_path: Path) -> None:
    asked = ["workload.request_timeout=1 s", "workload.connect_timeout=1 s"]
    process = head(tmp_path / "run", nodes=2, set=asked, map=6)
    wait_for(process, "block_finished", 2)
    process.kill()
    process.communicate()
    second = head(tmp_path / "run", nodes=2, set=asked, map=6, resume=True)
    out, errors = second.communicate(timeout=240)
    assert second.returncode == 0, errors
    said = json.loads(out.splitlines()[-1])
    assert (said["kind"], said["blocks"]) == ("blocks", 6)
    found = rows(tmp_path / "run")
    blocks = {(row["cell"], row["block"]): row["node"] for row in found}
    assert len(found) == 3 * len(blocks) == 18, "every block whole, none twice"
    assert set(blocks.values()) == {"n1", "n2"}
    first = first_blocks(np.array(make_plan("rtt=5ms..50ms", "loss=0..2%", "4x4", "h3,h2").shares()))
    assert len(blocks) == len({cell for cell, _ in blocks}) == len(set(first[:6])), "the first places, each once"


def test_a_node_that_is_killed_loses_its_block_and_it_is_run_again(tmp_path: Path) -> None:
    process = head(tmp_path / "run", nodes=2)
    wait_for(process, "trial_finished", 9)
    time.sleep(0.3)  # in the middle of a block: three trials take 0.6 s and more
    killed = nodes_of(process.pid)[0]
    killed.kill()
    out, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors
    assert_whole(tmp_path / "run")
    assert any("is lost: it was killed by signal 9" in line for line in out.splitlines())
    (lost,) = RunDirectory.open(tmp_path / "run").facts["lost_blocks"]
    assert lost["reason"] == "it was killed by signal 9"


@pytest.mark.parametrize("resume_on_nodes", [True, pytest.param(False, marks=pytest.mark.long)])
def test_a_head_that_is_killed_loses_nothing_that_was_committed(tmp_path: Path, resume_on_nodes: bool) -> None:
    process = head(tmp_path / "run", nodes=2)
    wait_for(process, "block_finished", 2)
    nodes = nodes_of(process.pid)
    assert len(nodes) == 2
    process.kill()
    process.communicate()
    before = rows(tmp_path / "run")
    assert len(before) >= 6
    assert all_ended(nodes, 30), "the nodes end with their head"
    if resume_on_nodes:
        second = head(tmp_path / "run", nodes=2, resume=True)
        _, errors = second.communicate(timeout=240)
        assert second.returncode == 0, errors
        assert_whole(tmp_path / "run")
    else:
        code, _, _, errors = drive.finish(tmp_path / "run", set=SETTINGS, resume=True)
        assert code == 0, errors
        assert {row["node"] for row in rows(tmp_path / "run")} >= {None}
        assert len(rows(tmp_path / "run")) == TRIALS
    known = {row["trial"]: row for row in rows(tmp_path / "run")}
    assert all(known[row["trial"]]["started_ns"] == row["started_ns"] for row in before)


@pytest.mark.long
def test_ctrl_c_keeps_what_is_committed(tmp_path: Path) -> None:
    process = head(tmp_path / "run", nodes=2)
    wait_for(process, "block_finished", 1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert RunDirectory.open(tmp_path / "run").facts["state"] == "interrupted"
    assert len(rows(tmp_path / "run")) % 3 == 0
    assert len(rows(tmp_path / "run")) >= 3


@pytest.mark.long
def test_a_frozen_node_is_lost_and_thawed_it_changes_nothing(tmp_path: Path) -> None:
    process = head(tmp_path / "run", nodes=2)
    wait_for(process, "trial_finished", 9)
    frozen = nodes_of(process.pid)[0]
    stopped = [frozen, *frozen.children(recursive=True)]
    for one in stopped:
        one.suspend()
    _, errors = process.communicate(timeout=280)
    assert process.returncode == 0, errors
    assert_whole(tmp_path / "run")
    assert all_ended(stopped, 5)
    (lost,) = RunDirectory.open(tmp_path / "run").facts["lost_blocks"]
    assert "said nothing" in lost["reason"]


def test_a_run_with_a_block_that_was_interrupted_here_is_not_gone_on_with_there(tmp_path: Path) -> None:
    process = drive.start(tmp_path / "run", {"FAKE_SECONDS": "1"}, set=SETTINGS)
    wait_for(process, "trial_started", 5)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert len(rows(tmp_path / "run")) % 3 in (1, 2)
    second = head(tmp_path / "run", nodes=1, resume=True)
    _, errors = second.communicate(timeout=60)
    assert second.returncode == 2
    assert "a block never leaves its machine" in errors
    assert errors.count("\n") == 1


def test_a_node_with_another_engine_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Path) -> None:
    other = tmp_path / "other"
    other.write_text(engine.read_text() + "# another\n")
    other.chmod(0o755)
    monkeypatch.setattr(loop, "ALONE_S", 3.0)

    class Other(LocalLauncher):
        def start(self, place: str, arguments: Any) -> None:
            os.environ["TRIFECTA_ENGINE"] = str(other)
            super().start(place, arguments)
            os.environ["TRIFECTA_ENGINE"] = str(engine)

    with pytest.raises(CannotError, match=r"no node .*n1: its code is .*install the same version there"):
        run_on_cluster(load("race", SETTINGS, known_servers()), tmp_path / "run", launch=lambda: Other(1))
    assert "its code is" in RunDirectory.open(tmp_path / "run").facts["nodes_left_out"]["n1"]


@pytest.mark.long
def test_a_second_run_on_a_node_waits_for_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = head(tmp_path / "first", nodes=1)
    wait_for(first, "trial_finished", 1)
    second = head(tmp_path / "second", nodes=1)
    for process in (first, second):
        _, errors = process.communicate(timeout=240)
        assert process.returncode == 0, errors
    spans = [(row["started_ns"], row["ended_ns"]) for name in ("first", "second") for row in rows(tmp_path / name)]
    spans.sort()
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))


@pytest.mark.parametrize(
    ("setting", "reason"),
    [("capture=true", "captures packets"), ("hosts.client=here", "names its hosts")],
)
def test_what_cannot_be_spread_is_refused(setting: str, reason: str) -> None:
    more = ["hosts.server=ssh://b"] if "hosts" in setting else []
    with pytest.raises(UserError, match=reason):
        refuse(load("race", [setting, *more], known_servers()))
