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
from trifecta.lab import agent_place
from trifecta.lab.agent_messages import Frames, Get, Tell
from trifecta.lab.engine import EngineError
from trifecta.lab.launcher import Output
from trifecta.lab.machines import Machines
from trifecta.lab.namespaces import Namespaces
from trifecta.lab.network import two_hosts

pytestmark = pytest.mark.skipif(not ENGINE.exists(), reason="the engine is not built")


@pytest.fixture
def nodes(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalLauncher]:
    monkeypatch.setenv("TMPDIR", str(tmp_path_factory.mktemp("there")))  # who is killed there removes nothing
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
    launcher.connect("client", Machine("here"))
    assert launcher.places() == {"client": "here"}
    programs_work(launcher, "client", tmp_path, 47_114)
    launcher.close()


def test_at_a_node(nodes: LocalLauncher, tmp_path: Path) -> None:
    programs_work(nodes, "place1", tmp_path, 47_115)
    folder = Path(nodes.talked.place("place1").ensure_started().folder)
    assert folder.is_dir()
    nodes.end("place1")
    assert not folder.exists(), "nothing is left behind"


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
    with pytest.raises(CannotError, match="n1: no engine program can be started there"):
        place.start("probe", tmp_path / "log")


def test_one_that_does_not_read_holds_up_no_other(nodes: LocalLauncher, tmp_path: Path) -> None:
    place = nodes.talked.place("place1")
    folder = Path(place.ensure_started().folder)
    with place.start("probe", tmp_path / "log") as deaf, place.start("probe", tmp_path / "log") as other:
        stands = nodes.hands["place1"]._process.pid
        until = time.monotonic() + 30
        while len(children := psutil.Process(stands).children()) < 2 and time.monotonic() < until:
            time.sleep(0.01)
        min(children, key=lambda child: child.pid).suspend()
        for _ in range(4):
            place.say(Tell(0, b" " * 300_000))
        other.configure(ReflectConfig(address="127.0.0.1", port=47_117))
        other.wait_ready(ReflectReady, 30.0)
        deaf.close()
        assert not deaf.running()
    nodes.end("place1")
    assert not folder.exists()


def test_what_is_told_is_whole_however_slowly_it_is_read(nodes: LocalLauncher, tmp_path: Path) -> None:
    place = nodes.talked.place("place1")
    with place.start("probe", tmp_path / "log") as program:
        place.say(Tell(0, b" " * 2_000_000))
        program.configure(ReflectConfig(address="127.0.0.1", port=47_118))
        program.wait_ready(ReflectReady, 30.0)


def test_an_end_amid_a_long_answer_leaves_nothing(nodes: LocalLauncher, tmp_path: Path) -> None:
    place = nodes.talked.place("place1")
    folder = Path(place.ensure_started().folder)
    (tmp_path / "large").write_bytes(bytes(10_000_000))
    place.put(tmp_path / "large")
    place.say(Get(str(tmp_path / "large")))
    time.sleep(0.2)
    nodes.end("place1")
    assert not folder.exists()


def test_a_late_answer_is_taken_for_no_other(
    nodes: LocalLauncher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = nodes.talked.place("place1")
    place.ensure_started()
    monkeypatch.setattr(agent_place, "_FILES_S", 0.3)
    psutil.Process(nodes.hands["place1"]._process.pid).suspend()
    with pytest.raises(CannotError, match=r"n1: .*no answer within 0 s"):
        place.put(tmp_path)
    with pytest.raises(CannotError, match=r"n1: .*no answer within 0 s"):
        place.put(tmp_path)
    assert nodes.talked.place("place1") is not place


def test_a_place_that_does_not_end_a_program_is_lost(
    nodes: LocalLauncher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_place, "_END_S", 0.3)
    place = nodes.talked.place("place1")
    program = place.start("probe", tmp_path / "log", name="reflector")
    psutil.Process(nodes.hands["place1"]._process.pid).suspend()
    program.close()
    assert not program.running()
    assert place.lost is not None
    assert "program reflector did not end" in place.lost


def test_who_waits_without_time_hears_what_is_there(nodes: LocalLauncher, tmp_path: Path) -> None:
    """A tick that takes longer than the time between two of them leaves none to wait."""
    with nodes.place("place1").start("probe", tmp_path / "log") as program:
        program.configure(ReflectConfig(address="127.0.0.1", port=47_119))
        program._wait_for("ready", ReflectReady, 30.0, None, lambda: time.sleep(0.15))


def test_a_line_that_somebody_prints_is_no_message(nodes: LocalLauncher, tmp_path: Path) -> None:
    place = nodes.talked.place("place1")
    with pytest.raises(ValueError, match="it begins with b'hello"):
        list(Frames().feed(b"hello, world\n"))
    place.ensure_started()
    place.take(Output(b"hello, world\n"))
    with pytest.raises(CannotError, match="what cannot be read"):
        place.start("probe", tmp_path / "log")


def test_a_path_does_not_lead_out_of_the_folder_there(nodes: LocalLauncher, tmp_path: Path) -> None:
    place = nodes.talked.place("place1")
    (tmp_path / "a").mkdir()
    (tmp_path / "b").write_text("b")
    place.put(tmp_path / "a" / ".." / "b")
    (tmp_path / "b").unlink()
    place.get(tmp_path / "a" / ".." / "b")
    assert (tmp_path / "b").read_text() == "b"
    with pytest.raises(CannotError, match="No such file"):
        place.get(Path("/../../../../../../etc/hostname"))


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
