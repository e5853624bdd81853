"""One seam: programs of the engine are started, told, heard and ended alike in a namespace, by SSH and at a node."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.engine.netns import ENGINE, can_make_namespaces
from tests.lab.launched import programs_work
from tests.workloads.local_launcher import LocalLauncher
from trifecta.contract.probe import ReflectConfig, ReflectReady
from trifecta.design.errors import CannotError
from trifecta.design.machine import Machine
from trifecta.lab.engine import EngineError
from trifecta.lab.machines import Machines
from trifecta.lab.namespaces import Namespaces
from trifecta.lab.network import two_hosts

pytestmark = pytest.mark.skipif(not ENGINE.exists(), reason="the engine is not built")


@pytest.fixture
def nodes() -> Iterator[LocalLauncher]:
    launcher = LocalLauncher(2)
    yield launcher
    launcher.close()


@pytest.mark.lab
@pytest.mark.skipif(not can_make_namespaces(), reason="network namespaces are not allowed here")
def test_in_a_namespace(tmp_path: Path) -> None:
    with two_hosts() as lab:
        launcher = Namespaces(lab, ENGINE)
        assert {"client", "server"} < set(launcher.places())
        programs_work(launcher, "client", tmp_path)


def test_on_this_machine_as_a_host_of_a_study(tmp_path: Path) -> None:
    launcher = Machines(ENGINE)
    launcher.stand("client", Machine("here"))
    assert launcher.places() == {"client": "here"}
    programs_work(launcher, "client", tmp_path, 47_114)
    launcher.close()


def test_at_a_node(nodes: LocalLauncher, tmp_path: Path) -> None:
    programs_work(nodes, "place1", tmp_path, 47_115)
    at = nodes.talked.place("place1").stand()
    assert Path(at.folder).is_dir()
    nodes.end("place1")
    assert not Path(at.folder).exists(), "nothing is left behind"


def test_a_node_that_is_killed_takes_its_programs_and_says_so(nodes: LocalLauncher, tmp_path: Path) -> None:
    place = nodes.place("place1")
    with place.start("probe", tmp_path / "log", name="reflector") as program:
        program.configure(ReflectConfig(address="127.0.0.1", port=47_116))
        program.wait_ready(ReflectReady, 30.0)
        stands = nodes.hands["place1"]._process.pid
        (child,) = psutil.Process(stands).children()
        os.kill(stands, signal.SIGKILL)
        with pytest.raises(EngineError, match=r"n1 is lost .*killed by signal 9"):
            program.wait_ready(ReflectReady, 30.0)
        assert not program.running()
        # The engine ends with its input, which was the other end of a pipe of the one that was killed.
        until = time.monotonic() + 10
        while child.is_running() and child.status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < until
            time.sleep(0.01)
    with pytest.raises(CannotError, match="n1: no program of the engine can be started there"):
        place.start("probe", tmp_path / "log")


def test_a_file_that_is_not_there_is_refused_in_one_line(nodes: LocalLauncher, tmp_path: Path) -> None:
    with nodes.place("place2").start("probe", tmp_path / "log") as program:
        with pytest.raises(EngineError, match=r"n2: No such file"):
            program.get(tmp_path / "samples.parquet")
        assert program.running()


def test_a_node_without_an_engine_says_so(
    nodes: LocalLauncher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIFECTA_ENGINE", "/nowhere/engine")
    with pytest.raises(CannotError, match=r"n1: TRIFECTA_ENGINE=/nowhere/engine is not a program"):
        nodes.place("place1").start("probe", tmp_path / "log")
