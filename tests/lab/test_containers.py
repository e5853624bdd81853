"""Services in containers on a real Docker Engine: that they work as processes do, and that nothing is left of them."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from trifecta.design.errors import CannotError
from trifecta.lab import containers
from trifecta.lab.containers import docker_state, state
from trifecta.lab.containers.image import image_archive
from trifecta.lab.engine import find_engine

STATE = docker_state("bridge")
needs_docker = pytest.mark.skipif(not STATE.usable, reason=f"{STATE.reason}; {STATE.remedy}")
pytestmark = pytest.mark.lab

PRELUDE = '''
import json, os, signal, subprocess, sys, time
from pathlib import Path
from msgspec.structs import replace
from trifecta.lab import cgroups, sandbox
sandbox.enter(cgroups.forget)
from trifecta.contract.codec import plain
from trifecta.contract.load import ClosedLoop, LoadConfig, LoadReady, LoadSummary
from trifecta.contract.origin import OriginConfig, OriginReady, OriginSummary
from trifecta.contract.probe import ReflectConfig
from trifecta.design.errors import CannotError
from trifecta.lab.certificates import make_certificates
from trifecta.lab.containers import ContainerProcess, DockerEngine
from trifecta.lab.engine import EngineError, EngineProcess, find_engine
from trifecta.lab.names import Names
from trifecta.lab.host_graph import host_graph
from trifecta.lab.topology import Wire
folder, network = Path(sys.argv[1]), sys.argv[2]
def names(topology):
    return Names(topology.hosts.values(), {"b.lab": (topology.address("host1"), topology.address_6("host1"))},
                 also_at={name: topology.address(name) for name in topology.names})
def origin(certificates):
    return OriginConfig(address="0.0.0.0", port=8443, certificate_file=str(certificates.chain),
                        key_file=str(certificates.key), udp_receive_buffer_bytes=4194304)
def load(certificates, protocol, address, samples):
    return LoadConfig(trial="t", protocol=protocol, address=address, port=8443, server_name="b.lab",
                      ca_file=str(certificates.authority), connection_mode="new", loop=ClosedLoop(), requests=20,
                      method="GET", path="/bytes/1000", expect_body_bytes=1000, expect_status=200,
                      samples_file=str(samples))
def ask_from_everywhere(lab, one, two, certificates, **changes):
    """Print a line for each protocol, of processes of both hosts and of containers of both engines."""
    (folder / "samples").mkdir()
    for protocol in ("h1", "h2", "h3"):
        for place in ("host1", "host2", one, two):
            samples = folder / "samples" / f"{protocol}-{getattr(place, 'host', place)}.parquet"
            if isinstance(place, str):
                client = EngineProcess(find_engine(), "load", lab.host(place), folder / "a.log")
            else:
                client = ContainerProcess(place, "load", folder / "a.log", name="A",
                                          readable=[folder / "pki"], writable=[folder / "samples"])
            with client:
                client.configure(replace(load(certificates, protocol, None, samples), **changes))
                address = client.wait_ready(LoadReady, 20).address
                summary = client.wait_summary(LoadSummary, 60)
            print(json.dumps([protocol, address, summary.samples, summary.errors, samples.exists()]))
'''


def start(code: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-u", "-c", PRELUDE + textwrap.dedent(code), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def inside(code: str, *arguments: str) -> list[object]:
    process = start(code, *arguments)
    out, error = process.communicate(timeout=120)
    assert process.returncode == 0, error
    return [json.loads(line) for line in out.splitlines()]


@needs_docker
@pytest.mark.parametrize("network", ["host", "bridge"])
def test_services_in_containers_are_asked_from_processes_and_containers_of_both_hosts(
    network: str, tmp_path: Path
) -> None:
    found = inside(
        """
        with host_graph(["host1", "host2"], [Wire("host1", "host2")], congestion_control="reno") as lab, names(lab):
            made = make_certificates(folder / "pki", ["b.lab"], [])
            with (DockerEngine(lab, "host1", network, find_engine(), folder / "docker1") as one,
                  DockerEngine(lab, "host2", network, find_engine(), folder / "docker2") as two):
                with ContainerProcess(one, "origin", folder / "b.log", cpus=frozenset({1}), name="B", ports=[8443],
                                      aliases=["b.lab"], readable=[folder / "pki"]) as service:
                    service.configure(origin(made))
                    service.wait_ready(OriginReady, 20)
                    routes = subprocess.run(["nsenter", "--net", "--target", str(service.pid), "ip", "route"],
                                            capture_output=True, text=True, check=True).stdout.splitlines()
                    status = Path(f"/proc/{service.pid}/status").read_text()
                    print(json.dumps({
                        "command": Path(f"/proc/{service.pid}/comm").read_text().strip(),
                        "cpus": status.split("Cpus_allowed_list:")[1].split()[0],
                        "groups": sorted({path.is_dir() for path in service.cgroup_paths.values()}),
                        "reno": [route.endswith("congctl reno ") for route in routes],
                        "running": service.running()}))
                    ask_from_everywhere(lab, one, two, made)
                    print(json.dumps(plain(service.finish(OriginSummary).requests)))
                    time.sleep(0.2)
                    print(json.dumps(service.running()))
                left = [one.client.containers(all=True), two.client.containers(all=True)]
            print(json.dumps(left))
        """,
        str(tmp_path),
        network,
    )
    assert found[0] == {
        "command": "trifecta-engine",
        "cpus": "1",
        "groups": [True],
        "reno": [True] if network == "host" else [True, True],
        "running": True,
    }
    # Another container of that host is given the address behind the bridge, everybody else that of the host.
    inner = "10.79.0.2" if network == "bridge" else "10.78.0.1"
    addresses = ["10.78.0.1", "10.78.0.1", inner, "10.78.0.1"]
    assert found[1:13] == [[protocol, address, 20, 0, True] for protocol in ("h1", "h2", "h3") for address in addresses]
    assert found[13] == {protocol: {"200": 80} for protocol in ("h1", "h2", "h3")}
    assert found[14] is False
    assert found[15] == [[], []]


@needs_docker
@pytest.mark.parametrize("network", ["host", "bridge"])
def test_only_a_bridge_brings_a_firewall_into_the_host_and_a_container_can_raise_its_buffers(
    network: str, tmp_path: Path
) -> None:
    rules, forward, buffer = inside(
        """
        with host_graph(["host1"], []) as lab, names(lab):
            made = make_certificates(folder / "pki", ["b.lab"], [])
            with DockerEngine(lab, "host1", network, find_engine(), folder / "docker") as docker:
                with ContainerProcess(docker, "origin", folder / "log", readable=[folder]) as service:
                    service.configure(origin(made))
                    print(json.dumps(len(lab.host("host1").popen(["iptables-save"], stdout=subprocess.PIPE)
                                         .communicate()[0].splitlines())))
                    print(lab.host("host1").read("/proc/sys/net/ipv4/ip_forward").strip())
                    service.wait_ready(OriginReady, 20)
                    sockets = subprocess.run(["nsenter", "--net", "--target", str(service.pid), "ss", "-ulnmH"],
                                             capture_output=True, text=True, check=True).stdout
                    print(sockets.split(":8443")[1].split("(")[1].split(",")[1].removeprefix("rb"))
        """,
        str(tmp_path),
        network,
    )
    assert (rules == 0, forward == 0) == ((True, True) if network == "host" else (False, False))
    assert buffer == 2 * 4194304  # the kernel doubles it, socket(7)


@needs_docker
def test_any_program_runs_there_with_what_was_put_there(tmp_path: Path) -> None:
    found = inside(
        """
        from trifecta.lab.containers import ContainerPlace
        engine = find_engine()
        with host_graph(["host1"], []) as lab, names(lab):
            with DockerEngine(lab, "host1", network, engine, folder / "docker") as docker:
                place, log = ContainerPlace(docker), folder / "version.log"
                log.write_text("before\\n")
                try:
                    place.run([engine, "--version"], log)
                except CannotError as error:
                    print(json.dumps("cannot be started" in str(error)))
                place.put(engine)
                place.put(folder)
                place.put(folder, writable=True)
                program = place.run([engine, "--version"], log, environment={"A": "b"}, largest_file_bytes=1 << 20)
                program.wait_end(20)
                time.sleep(0.5)
                print(json.dumps([program.running(), program.exit_code, log.read_text().splitlines()[0],
                                  '"quinn_proto"' in log.read_text()]))
                program.close()
                print(json.dumps(program.exit_code))
                waits = place.run([engine, "load", "-"], folder / "load.log")
                root = Path(f"/proc/{waits.pid}/root")
                print(json.dumps([waits.running(), (root / "usr/bin").exists(), (root / str(engine)[1:]).exists(),
                                  (root / str(folder)[1:]).exists()]))
                waits.close()
                print(json.dumps([waits.running(), waits.exit_code]))
        """,
        str(tmp_path),
        "host",
    )
    assert found == [True, [False, 0, "before", True], 0, [True, False, True, True], [False, -9]]


@needs_docker
def test_how_a_container_ends_is_said_as_of_a_process(tmp_path: Path) -> None:
    found = inside(
        """
        def end(service):
            try:
                service.wait_ready(OriginReady, 20)
            except EngineError as error:
                return [error.role, error.code, error.message]
        with host_graph(["host1"], []) as lab, names(lab):
            with DockerEngine(lab, "host1", network, find_engine(), folder / "docker") as docker:
                with ContainerProcess(docker, "origin", folder / "log", name="B") as service:
                    service.configure(ReflectConfig(address="127.0.0.1", port=9))
                    print(json.dumps(end(service)))
                with ContainerProcess(docker, "origin", folder / "log", name="C") as service:
                    os.kill(service.pid, signal.SIGKILL)
                    print(json.dumps(end(service)))
                    print(json.dumps(service.running()))
                service = ContainerProcess(docker, "origin", folder / "log", name="D")
                os.killpg(docker._process.pid, signal.SIGKILL)
                print(json.dumps(end(service)))
                service.close()
                try:
                    ContainerProcess(docker, "origin", folder / "log", name="E")
                except CannotError as error:
                    print(json.dumps(str(error)))
        """,
        str(tmp_path),
        "host",
    )
    role, code, message = found[0]  # type: ignore[misc]
    assert (role, code) == ("B", 2)
    assert message.startswith("error: role: unknown field")  # a probe's document, which says whose it is
    assert found[1] == ["C", -9, "was killed by signal 9"]
    assert found[2] is False
    role, code, message = found[3]  # type: ignore[misc]
    assert (role, code) == ("D", None)
    assert "Docker Engine of host1: how D ended is unknown (it ended: " in message
    assert str(found[4]).startswith("Docker Engine of host1: the container of E cannot be made (it ended: ")
    assert "\n" not in str(found[4])


@needs_docker
def test_a_container_that_does_not_start_is_one_clear_line_and_leaves_none(tmp_path: Path) -> None:
    found = inside(
        """
        with host_graph(["host1"], []) as lab, names(lab):
            with DockerEngine(lab, "host1", network, find_engine(), folder / "docker") as docker:
                try:
                    ContainerProcess(docker, "origin", folder / "log", name="B", readable=[folder / "absent"])
                except CannotError as error:
                    print(json.dumps(str(error)))
                try:
                    with ContainerProcess(docker, "origin", folder / "log", name="B", ports=[8443]):
                        ContainerProcess(docker, "origin", folder / "log", name="C", ports=[8443])
                except CannotError as error:
                    print(json.dumps(str(error)))
                print(json.dumps(docker.client.containers(all=True)))
        """,
        str(tmp_path),
        "bridge",
    )
    assert str(found[0]).startswith("Docker Engine of host1: the container of B cannot be made (")
    assert "absent" in str(found[0])
    assert str(found[1]).startswith("Docker Engine of host1: the container of C cannot be started (")
    assert "port is already allocated" in str(found[1])
    assert not any("\n" in str(line) for line in found)
    assert found[2] == []


@needs_docker
def test_hosts_of_the_same_name_in_two_topologies_do_not_end_each_others_containers(tmp_path: Path) -> None:
    assert inside(
        """
        with host_graph(["host1"], []) as one, host_graph(["host1"], []) as two:
            engine = find_engine()
            with (DockerEngine(one, "host1", network, engine, folder / "docker1") as first,
                  ContainerProcess(first, "origin", folder / "log") as service):
                with (DockerEngine(two, "host1", network, engine, folder / "docker2") as second,
                      ContainerProcess(second, "origin", folder / "log")):
                    pass
                print(json.dumps(service.running()))
        """,
        str(tmp_path),
        "host",
    ) == [True]


def _fake(folder: Path, program: str, script: str) -> str:
    path = folder / program
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


@needs_docker
@pytest.mark.parametrize(
    ("program", "script", "said"),
    [
        (
            "dockerd",
            "echo 'level=warning msg=dull' >&2; echo 'failed to start daemon: no room' >&2; exit 1",
            "does not start (failed to start daemon: no room)",
        ),
        ("ldd", "echo 'libgone.so.1 => not found'", "lacks libgone.so.1; run `make setup`"),
    ],
)
def test_what_keeps_the_docker_engine_from_starting_is_one_clear_line(
    program: str, script: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", _fake(tmp_path, program, f'[ "$1" = --version ] && exec echo version 1.0\n{script}'))
    found = inside(
        """
        with host_graph(["host1"], []) as lab, names(lab):
            try:
                DockerEngine(lab, "host1", network, find_engine(), folder / "docker").__enter__()
            except CannotError as error:
                print(json.dumps(str(error)))
        time.sleep(0.3)
        print(json.dumps(len([name for name in os.listdir("/proc") if name.isdigit()])))
        """,
        str(tmp_path),
        "host",
    )
    assert said in str(found[0])
    assert "\n" not in str(found[0])
    assert found[1] == 2, "the Docker Engine left a process"


def _groups(mark: str) -> list[str]:
    root = Path("/sys/fs/cgroup")
    return [str(path) for path in (root / mark, *(point / mark for point in root.iterdir())) if path.exists()]


def _traces() -> list[str]:
    """What a Docker Engine leaves on a machine where it usually lives; others may change everything else meanwhile."""
    mounts = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    folders = [str(path) for place in ("/etc/docker", "/opt", "/run", "/var/lib") for path in Path(place).glob("*")]
    return sorted(
        line for line in mounts + folders if any(word in line for word in ("docker", "containerd", "trifecta"))
    )


@needs_docker
@pytest.mark.parametrize("victim", ["parent", "init", "run", "nobody"])
def test_nothing_is_left_however_the_run_ends(victim: str, tmp_path: Path) -> None:
    before = _traces()
    process = start(
        """
        with host_graph(["host1", "host2"], [Wire("host1", "host2")]) as lab, names(lab):
            with (DockerEngine(lab, "host1", network, find_engine(), folder / "docker1") as one,
                  DockerEngine(lab, "host2", network, find_engine(), folder / "docker2") as two):
                services = [ContainerProcess(docker, "origin", folder / "log") for docker in (one, two)]
                print(sandbox.mark(), os.readlink("/proc/thread-self/ns/pid"), flush=True)
                if len(sys.argv) > 3:
                    raise SystemExit(7)
                time.sleep(60)
        """,
        str(tmp_path),
        "bridge",
        *(["end"] if victim == "nobody" else []),
    )
    assert process.stdout is not None
    mark, namespace = process.stdout.readline().split()
    if victim != "nobody":
        assert _groups(mark), "the containers have control groups"
        parent = psutil.Process(process.pid)
        init = next(child for child in parent.children() if child.children())
        assert {"dockerd", "containerd"} <= {child.name() for child in init.children(recursive=True)}
        # Its first child is the run; the daemons' orphans that it takes in later may have lower ids.
        run = min(init.children(), key=psutil.Process.create_time)
        {"parent": parent, "init": init, "run": run}[victim].kill()
    process.communicate(timeout=60)
    if victim == "nobody":
        assert process.returncode == 7
    deadline = time.monotonic() + 20
    while (left := [*_groups(mark), *_inhabitants(namespace)]) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == []
    assert _traces() == before


def _inhabitants(namespace: str) -> list[str]:
    """Processes of a process namespace; network and mount namespaces of a run live no longer than these."""
    found = []
    for pid in psutil.pids():
        try:
            if os.readlink(f"/proc/{pid}/ns/pid") == namespace:  # noqa: PTH115
                found.append(psutil.Process(pid).name())
        except (OSError, psutil.NoSuchProcess):
            continue
    return found


def test_the_image_holds_the_engine_its_libraries_and_little_else() -> None:
    archive = image_archive(find_engine())
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        entries = {entry.name: entry for entry in tar}
    assert entries["trifecta-engine"].mode == 0o755
    assert any("ld-linux" in name or "ld-musl" in name for name in entries)
    assert {"etc/nsswitch.conf", "tmp"} <= set(entries)
    assert len(entries) < 16
    assert archive == image_archive(find_engine()), "the same content must give the same image"


def test_a_missing_program_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "search_path", lambda: "")
    found = docker_state()
    assert (found.usable, found.version) == (False, None)
    assert (found.reason, found.remedy) == ("dockerd is not installed", "sudo apt-get install -y docker.io")
    monkeypatch.setattr(state, "_find", lambda program: None if program == "iptables" else "/bin/true")
    assert docker_state("bridge").reason == "iptables is not installed"


@pytest.mark.skipif(shutil.which("dockerd") is None, reason="Docker is not installed")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv to give capabilities up")
def test_an_ordinary_user_is_told_why_not() -> None:
    code = """
from trifecta.lab import sandbox
sandbox.enter()
from trifecta.lab.containers import docker_state
print(docker_state())
"""
    wrapper = ("setpriv", "--bounding-set=-all,+setfcap", "--inh-caps=-all") if os.geteuid() == 0 else ()
    done = subprocess.run(
        [*wrapper, sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "the Docker Engine makes control groups and mounts, which only root may" in done.stdout


def test_a_sandbox_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match="inside a sandbox only"):
        containers.DockerEngine(None, "host1", "host", Path(), Path())  # type: ignore[arg-type]
    monkeypatch.setattr("trifecta.lab.sandbox.entered", lambda: True)
    monkeypatch.setattr(
        "trifecta.lab.containers.daemon.docker_state", lambda _: state.DockerState(None, "why", "what mends it")
    )
    with pytest.raises(CannotError, match="no containers here: why; what mends it"):
        containers.DockerEngine(None, "host1", "host", Path(), Path())  # type: ignore[arg-type]
