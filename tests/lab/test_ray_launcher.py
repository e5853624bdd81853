"""The launcher over Ray: addresses, the program in an actor's hand, and, long, a cluster of this machine."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.lab.ended import gone
from tests.lab.launched import programs_work
from trifecta.design import extras
from trifecta.design.errors import CannotError, UserError
from trifecta.lab.launcher import Output
from trifecta.lab.ray_actor import NodeActor
from trifecta.lab.ray_driver import plainly
from trifecta.lab.ray_launcher import RayLauncher, local_nodes, reach

ECHO = "import os\nwhile octets := os.read(0, 1 << 16):\n    os.write(1, octets)\n"
WITH_RAY = pytest.mark.skipif(bool(extras.missing("cluster")), reason="the extra cluster is not installed")


@pytest.mark.parametrize(
    ("address", "nodes"),
    [("local:1", 1), ("local:64", 64), ("auto", 0), ("head.example.org:6379", 0), ("[fd00::1]:6379", 0)],
)
def test_addresses(address: str, nodes: int) -> None:
    assert local_nodes(address) == nodes


@pytest.mark.parametrize(
    "address", ["", "local:", "local:0", "local:65", "local:x", "head", "ray://a:1", "a:b", "fd00::1:6379"]
)
def test_what_is_no_address_is_one_line(address: str) -> None:
    with pytest.raises(UserError, match="option --cluster") as said:
        local_nodes(address)
    assert "\n" not in str(said.value)


@WITH_RAY
def test_where_nobody_listens_it_is_said_at_once() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(CannotError, match="nothing answers there"):
            reach(f"127.0.0.1:{taken.getsockname()[1]}")


def read_until(hand: NodeActor, wanted: bytes) -> bytes:
    said, until = b"", time.monotonic() + 20
    while wanted not in said and time.monotonic() < until:
        said += hand.read(0.5)[0]
    return said


def test_a_hand_carries_octets_there_and_back() -> None:
    hand = NodeActor(["-c", ECHO])
    hand.write(1, b"three\n")
    hand.write(0, b"one\ntwo\n")
    assert read_until(hand, b"three\n") == b"one\ntwo\nthree\n", "in the order of the numbers"
    assert hand.read(0.0) == (b"", None)
    hand.end()
    assert hand.read(1.0) == (b"", "it ended with exit code 0")
    hand.write(2, b"late")  # nobody reads it, and nothing is raised


def test_how_a_program_ended_is_its_last_line_or_its_signal() -> None:
    refused = NodeActor(["-c", "import sys; print('x', file=sys.stderr); sys.exit('trifecta: the kernel refuses')"])
    killed = NodeActor(["-c", "import os; os.kill(os.getpid(), 9)"])
    assert refused.read(20.0) == (b"", "the kernel refuses")
    assert killed.read(20.0) == (b"", "it was killed by signal 9")


def test_a_frozen_program_is_killed() -> None:
    hand = NodeActor(["-c", "import time\nprint('up', flush=True)\ntime.sleep(600)"])
    assert read_until(hand, b"up\n") == b"up\n"
    pid = hand._process.pid
    psutil.Process(pid).suspend()
    hand.end()
    assert not psutil.pid_exists(pid)


DIED = """The actor died unexpectedly before finishing this task.
	class_name: Hand
	actor_id: c9078728bfb8023be8200c3b01000000
	pid: 463
	namespace: 2ef97761-70dd-49a3-b29b-0b8a0d4f262d, of which a name of any length may be told before the reason
	ip: 10.78.0.3
The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker """
AWAY = """The actor e20ce1af24a5605564a7edbd01000000 is unavailable: The actor is temporarily unavailable: RpcError:
RPC error: Socket closed rpc_code: 14. The task may or may not have been executed on the actor."""


@pytest.mark.parametrize(
    ("kind", "said", "plain"),
    [
        ("ActorDiedError", DIED, "its worker process has died"),
        ("ActorDiedError", "The actor is dead because its node has died. Node Id: 7f", "its node has died"),
        ("ActorUnavailableError", AWAY, "Ray cannot reach it (Socket closed)"),
        ("ActorUnavailableError", "It is away.", "Ray cannot reach it"),
        ("RaySystemError", "Disk full.", "Disk full."),
    ],
)
def test_what_ray_says_of_a_lost_node_is_said_plainly(kind: str, said: str, plain: str) -> None:
    assert plainly(kind, said) == plain


def say(launcher: RayLauncher, patience_s: float = 60.0) -> dict[str, Output]:
    """What every place says, put together, until each has said something or it takes too long."""
    found: dict[str, Output] = {}
    until = time.monotonic() + patience_s
    while time.monotonic() < until and set(found) != set(launcher.places()):
        for place, said in launcher.read(1.0).items():
            before = found.get(place, Output())
            found[place] = Output(before.octets + said.octets, said.ended or before.ended)
    return found


@WITH_RAY
@pytest.mark.lab
@pytest.mark.long
def test_programs_run_at_the_nodes_of_a_cluster_and_go_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))
    launcher = RayLauncher("local:2")
    try:
        places = launcher.places()
        assert sorted(places.values()) == ["node1", "node2"]
        for place in places:
            launcher.start(place, ["-c", f"import os\nos.write(1, b'%d\\n' % os.getpid())\n{ECHO}"])
        pids = {place: int(said.octets) for place, said in say(launcher).items()}
        assert len(set(pids.values())) == 2
        for place in places:
            launcher.write(place, f"{place}\n".encode())
        assert {place: said.octets for place, said in say(launcher).items()} == {
            place: f"{place}\n".encode() for place in places
        }
        one, sent = next(iter(places)), b"".join(b"%d\n" % number for number in range(500))
        for line in sent.splitlines(keepends=True):
            launcher.write(one, line)
        assert read_of(launcher, one, len(sent)) == sent, "in the order in which it was written"
        first, second = pids.values()
        psutil.Process(first).parent().kill()  # type: ignore[union-attr]  # the actor's process
        (lost,) = [said for said in say_of_one(launcher).values() if said.ended is not None]
        assert lost.ended
        assert gone(first), "the program ends with the actor"
        assert psutil.pid_exists(second)
    finally:
        launcher.close()
    assert gone(second)


@WITH_RAY
@pytest.mark.lab
@pytest.mark.long
def test_nodes_are_places_as_any_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))
    launcher = RayLauncher("local:2")
    try:
        for number, place in enumerate(launcher.places()):
            (tmp_path / place).mkdir()
            programs_work(launcher, place, tmp_path / place, 47_120 + number)
    finally:
        launcher.close()


@WITH_RAY
@pytest.mark.lab
@pytest.mark.long
def test_doctor_asks_every_node_of_a_cluster() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    command = [sys.executable, "-m", "trifecta", "doctor", "--cluster", "local:2"]
    done = subprocess.run([*command, "--json"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    nodes = json.loads(done.stdout)["nodes"]
    assert sorted(nodes) == ["node1", "node2"]
    for node in nodes.values():
        assert node["able"]
        assert {"namespaces", "engine program"} <= {finding["name"] for finding in node["findings"]}
    plain = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert "2 of 2 nodes can run blocks." in plain.stdout


def read_of(launcher: RayLauncher, place: str, many: int) -> bytes:
    """So many octets of a place, unless it takes too long."""
    until, found = time.monotonic() + 60, b""
    while time.monotonic() < until and len(found) < many:
        found += launcher.read(1.0).get(place, Output()).octets
    return found


def say_of_one(launcher: RayLauncher) -> dict[str, Output]:
    until, found = time.monotonic() + 40, {}
    while time.monotonic() < until and not any(said.ended for said in found.values()):
        found |= launcher.read(1.0)
    return found


def test_importing_it_does_not_import_ray() -> None:
    """A plain install has no Ray, and every command imports quickly."""
    code = "import sys, trifecta.lab.ray_launcher, trifecta.workloads.cluster.node; sys.exit('ray' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0
