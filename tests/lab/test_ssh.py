"""Hosts by SSH: the engine comes there once, works by its contract, and leaves nothing, whatever ends it."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from tests.lab.inside import told_inside
from tests.lab.three_hosts import missing
from tests.workloads.test_checks_fail import _engine_missing

WHY = missing() or _engine_missing()
pytestmark = [pytest.mark.lab, pytest.mark.skipif(bool(WHY), reason=WHY or "there")]

HELPERS = """
import json, os, signal, sys, time
from pathlib import Path
from tests.lab.three_hosts import CLIENT, HERE, SERVER, three_hosts
from trifecta.lab import linux

def sit(hosts):
    "Go where the user sits, for good: what is asked from now on is asked over these wires."
    linux.setns(hosts.lab.host(HERE).descriptor, linux.CLONE_NEWNET)
    os.environ.update(HOME=str(hosts.home), SSH_AUTH_SOCK="")

def opened(hosts, name):
    from trifecta.design.machine import Machine
    from trifecta.lab.engine import find_engine
    from trifecta.lab.ssh.host import SshHost
    host = SshHost(name, Machine(hosts.url(name)), find_engine())
    host.open()
    return host
"""

inside = partial(told_inside, HELPERS, timeout_s=120)


def test_the_engine_comes_once_and_its_programs_speak_by_their_contract(tmp_path: Path) -> None:
    found = inside(
        tmp_path,
        """
        found = {}
        with three_hosts(folder) as hosts:
            sit(hosts)
            from trifecta.contract.probe import MeasureConfig, MeasureSummary, ReflectConfig, ReflectReady
            from trifecta.lab.ssh.place import SshPlace
            client, server = opened(hosts, CLIENT), opened(hosts, SERVER)
            found["brought"] = [client.brought, server.brought]
            found["addresses"] = [client.address, client.peer]
            samples = folder / "samples"
            samples.mkdir()
            near, far = SshPlace(client), SshPlace(server)
            near.put(samples, writable=True)
            with far.start("probe", folder / "log") as reflect, near.start("probe", folder / "log") as measure:
                reflect.configure(ReflectConfig(address=server.address, port=9000))
                found["ready"] = reflect.wait_ready(ReflectReady, 10).port
                file = samples / "probe.parquet"
                measure.configure(
                    MeasureConfig(address=server.address, port=9000, packets=50, samples_file=str(file))
                )
                summary = measure.wait_summary(MeasureSummary, 20)
                measure.get(file)
                found["received"] = summary.received
                found["there"] = file.stat().st_size > 100
                found["used"] = reflect.used() is not None
            found["running"] = [reflect.running(), measure.running()]
            found["facts"] = client.facts()["kernel"]
            client.close()
            server.close()
            again = opened(hosts, CLIENT)
            found["again"] = again.brought
            again.close()
            found["left"] = hosts.wait_clean(30)
        print(json.dumps(found))
        """,
    )
    assert found["brought"] == [True, True]
    assert found["addresses"] == ["10.78.0.2", "10.78.0.1"]
    assert (found["ready"], found["received"], found["there"], found["used"]) == (9000, 50, True, True)
    assert found["running"] == [False, False]
    assert found["facts"].startswith("Linux")
    assert found["again"] is False
    assert found["left"] == {"client": [], "server": []}


def test_hosts_of_a_study_are_places_as_any_other(tmp_path: Path) -> None:
    found = inside(
        tmp_path,
        """
        with three_hosts(folder) as hosts:
            sit(hosts)
            from tests.lab.launched import programs_work
            from trifecta.design.machine import Machine
            from trifecta.lab.engine import find_engine
            from trifecta.lab.machines import Machines
            launcher = Machines(find_engine())
            launcher.connect("client", Machine(hosts.url(CLIENT)))
            programs_work(launcher, "client", folder)
            launcher.close()
            print(json.dumps(hosts.wait_clean(30)))
        """,
    )
    assert found == {"client": [], "server": []}


def test_what_a_program_says_at_its_end_is_its_error(tmp_path: Path) -> None:
    found = inside(
        tmp_path,
        """
        found = {}
        with three_hosts(folder) as hosts:
            sit(hosts)
            from trifecta.contract.probe import ReflectConfig, ReflectReady
            from trifecta.lab.engine import EngineError
            from trifecta.lab.ssh.place import SshPlace
            host = opened(hosts, CLIENT)
            place = SshPlace(host)
            for name, number in (("bad", 0), ("killed", signal.SIGKILL)):
                with place.start("probe", folder / name) as program:
                    address = "203.0.113.7" if name == "bad" else host.address
                    program.configure(ReflectConfig(address=address, port=9000))
                    try:
                        program.wait_ready(ReflectReady, 10)
                        os.kill(hosts.engines(CLIENT)[0], number)
                        program.wait_ready(ReflectReady, 10)
                    except EngineError as error:
                        found[name] = [error.code, error.message]
            host.close()
        print(json.dumps(found))
        """,
    )
    code, message = found["bad"]
    assert code == 3
    assert message.startswith("error: address: ")
    assert found["killed"][0] == -9


@pytest.mark.parametrize("what", ["killed sshd", "frozen sshd", "killed keeper", "frozen engine", "cut for good"])
def test_nothing_is_left_whatever_ends_a_connection(tmp_path: Path, what: str) -> None:
    found = inside(
        tmp_path,
        f"""
        what = {what!r}
        found = {{}}
        with three_hosts(folder) as hosts:
            sit(hosts)
            from trifecta.contract.probe import ReflectConfig, ReflectReady
            from trifecta.lab.engine import EngineError
            from trifecta.lab.ssh import keeper
            from trifecta.lab.ssh.place import SshPlace
            keeper.PATIENCE_S = 3
            host = opened(hosts, CLIENT)
            program = SshPlace(host).start("probe", folder / "log")
            program.configure(ReflectConfig(address=host.address, port=9000))
            program.wait_ready(ReflectReady, 10)
            kept = host.session.keeping.folder
            began = time.monotonic()
            if what == "killed sshd":
                os.kill(hosts.sessions(CLIENT)[-1], signal.SIGKILL)
            elif what == "frozen sshd":
                for pid in hosts.sessions(CLIENT):
                    os.kill(pid, signal.SIGSTOP)
            elif what == "killed keeper":
                shells = [pid for pid in hosts.processes(CLIENT) if os.readlink(f"/proc/{{pid}}/cwd") == kept]
                os.kill(min(set(shells) - set(hosts.engines(CLIENT))), signal.SIGKILL)
            elif what == "frozen engine":
                os.kill(hosts.engines(CLIENT)[0], signal.SIGSTOP)
            else:
                hosts.cut(HERE, CLIENT)
            if what == "frozen engine":
                program.close()
                found["error"] = "closed"
            else:
                try:
                    program.wait_summary(type(program), 40)
                except EngineError as error:
                    found["error"] = error.message
            found["lost"] = host.lost
            found["took_s"] = time.monotonic() - began
            program.close()
            host.close()
            found["left"] = hosts.wait_clean(15)
        print(json.dumps(found))
        """,
    )
    assert found["left"] == {"client": [], "server": []}
    assert found["took_s"] < 20
    if what == "frozen engine":
        assert found["lost"] is None
    else:
        assert found["lost"]
        assert "lost" in found["error"] or "killed by signal 9" in found["error"]


def test_a_host_that_was_lost_is_connected_to_again_and_its_port_is_free(tmp_path: Path) -> None:
    found = inside(
        tmp_path,
        """
        found = {}
        with three_hosts(folder) as hosts:
            sit(hosts)
            from trifecta.contract.probe import ReflectConfig, ReflectReady
            from trifecta.lab.ssh.place import SshPlace
            host = opened(hosts, CLIENT)
            place = SshPlace(host)
            file = folder / "ca.pem"
            file.write_text("a certificate")
            place.put(file)
            first = place.start("probe", folder / "log")
            first.configure(ReflectConfig(address=host.address, port=9000))
            first.wait_ready(ReflectReady, 10)
            hosts.cut(HERE, CLIENT)
            until = time.monotonic() + 30
            while host.lost is None and time.monotonic() < until:
                time.sleep(0.1)
            found["lost"] = host.lost
            hosts.cut(HERE, CLIENT, mend=True)
            host.reopen()
            second = place.start("probe", folder / "log")
            second.configure(ReflectConfig(address=host.address, port=9000))
            found["port"] = second.wait_ready(ReflectReady, 10).port
            found["files"] = [path.read_text() for path in hosts.room(CLIENT).rglob("ca.pem")]
            first.close()
            second.close()
            host.close()
            found["left"] = hosts.wait_clean(35)  # the watch of the connection that was lost looks every 15 s
        print(json.dumps(found))
        """,
    )
    assert found["lost"]
    assert found["port"] == 9000
    assert found["files"] == ["a certificate"]
    assert found["left"] == {"client": [], "server": []}


@pytest.mark.parametrize(
    ("change", "said", "remedy"),
    [
        (
            "(hosts.home / '.ssh/known_hosts').write_text('')",
            "its key is not verified",
            "connect once with `ssh -p 2222",
        ),
        ("(folder / 'client/authorized_keys').write_text('')", "it accepts none of your keys", "ssh-add"),
        ("hosts.listeners[CLIENT].kill()", "cannot be reached", "try `ssh -p 2222 root@10.78.0.2`"),
    ],
)
def test_who_is_refused_is_told_why_in_one_line(tmp_path: Path, change: str, said: str, remedy: str) -> None:
    line = inside(
        tmp_path,
        f"""
        with three_hosts(folder) as hosts:
            sit(hosts)
            {change}
            from trifecta.design.errors import CannotError
            try:
                opened(hosts, CLIENT)
            except CannotError as error:
                print(json.dumps(str(error)))
        """,
    )
    assert line.startswith("host ssh://root@10.78.0.2:2222: ")
    assert said in line
    assert remedy in line
    assert "\n" not in line


def test_doctor_tries_every_host_that_is_named(tmp_path: Path) -> None:
    code, said, errors = inside(
        tmp_path,
        """
        with three_hosts(folder) as hosts:
            done = hosts.run("doctor", "--json", "--host", hosts.url(CLIENT), "--host", "ssh://root@10.78.0.3:1")
        print(json.dumps(done))
        """,
    )
    assert code == 1, errors
    found = json.loads(said)["hosts"]
    good, bad = found["ssh://root@10.78.0.2:2222"], found["ssh://root@10.78.0.3:1"]
    assert good["able"] and not bad["able"]
    assert {"connection", "engine", "system", "cores", "clock source", "netem", "disk"} <= {
        one["name"] for one in good["findings"]
    }
    (refused,) = bad["findings"]
    assert refused["status"] == "missing"
    assert refused["remedy"].startswith("try `ssh -p 1")
