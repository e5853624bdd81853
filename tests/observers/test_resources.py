"""Processes, their threads, control groups and traffic, read while they run and when they are gone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.inside import run_inside
from trifecta.lab.cgroups import cgroup_paths, parse_cgroups
from trifecta.observers.cgroup import CgroupReader
from trifecta.observers.process import ProcessReader
from trifecta.observers.resources import ResourceObserver
from trifecta.store.schema import RESOURCES

SLEEPS = 50
# Sleeps as often as it is told to in a thread of its own, then says so; the thread ends or waits.
SLEEPER = """
import sys, threading, time
stay = threading.Event()
def work(ends):
    for _ in range(SLEEPS):
        time.sleep(0.0001)
    print("slept", flush=True)
    if not ends:
        stay.wait()
for line in sys.stdin:
    threading.Thread(target=work, args=(line == "end\\n",), daemon=True).start()
"""


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(
        [sys.executable, "-c", f"SLEEPS = {SLEEPS}\n{SLEEPER}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )
    yield child
    child.kill()
    child.communicate()


def ask(child: subprocess.Popen[str], word: str) -> None:
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(f"{word}\n")
    child.stdin.flush()
    assert child.stdout.readline() == "slept\n"


def test_threads_that_come_later_are_counted_with_their_switches(sleeper: subprocess.Popen[str]) -> None:
    ask(sleeper, "end")  # the interpreter is up
    reader = ProcessReader(sleeper.pid)
    until = time.monotonic() + 60
    while (before := reader.take()).threads != 1 and time.monotonic() < until:
        time.sleep(0.01)  # the first thread has spoken, and is about to end
    assert before.voluntary_switches is not None
    assert before.threads is not None
    ask(sleeper, "stay")
    ask(sleeper, "stay")
    after = reader.take()
    reader.close()
    assert after.threads == 3
    assert after.voluntary_switches is not None
    assert after.voluntary_switches >= before.voluntary_switches + 2 * SLEEPS
    assert after.cpu_ns > before.cpu_ns
    assert (after.rss_bytes or 0) > 1 << 20


def test_what_an_ended_thread_did_is_not_lost() -> None:
    go, end = threading.Event(), threading.Event()

    def work() -> None:
        for _ in range(SLEEPS):
            threading.Event().wait(0.0001)
        go.set()
        end.wait()

    thread = threading.Thread(target=work)
    thread.start()
    go.wait()
    reader = ProcessReader(os.getpid())
    with_it = reader.take()
    end.set()
    thread.join()
    without = reader.take()
    reader.close()
    assert with_it.voluntary_switches is not None
    assert with_it.voluntary_switches >= SLEEPS
    assert without.voluntary_switches is not None
    assert without.voluntary_switches >= with_it.voluntary_switches
    assert without.run_delay_ns is not None
    assert with_it.run_delay_ns is not None
    assert without.run_delay_ns >= with_it.run_delay_ns


def test_a_process_that_ends_has_no_more_rows(sleeper: subprocess.Popen[str]) -> None:
    observer = ResourceObserver("t00001", {"B": sleeper.pid})
    observer.sample()
    sleeper.kill()
    sleeper.wait()
    observer.sample()
    observer.close()
    assert [row["process"] for row in observer.rows] == ["B"]
    assert observer.cpu_used_ns("B") is None
    assert observer.latest_cpu_ns() == {"B": observer.rows[0]["cpu_ns"]}


def test_a_process_that_waits_to_be_waited_for_tells_its_cpu_time_only() -> None:
    child = subprocess.Popen([sys.executable, "-c", "sum(range(10**6))"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    observer = ResourceObserver("t00001", {"B": child.pid})
    observer.sample()
    observer.close()
    child.wait()
    assert observer.rows[0]["cpu_ns"] > 1_000_000
    assert observer.rows[0]["rss_bytes"] is None


def test_several_processes_are_read_as_one_with_what_those_used_that_ended(sleeper: subprocess.Popen[str]) -> None:
    ask(sleeper, "stay")
    work = "import sys; sum(range(10**6)); print(flush=True); sys.stdin.read()"
    child = subprocess.Popen([sys.executable, "-c", work], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    alone = ResourceObserver("t00001", {"A": sleeper.pid, "B": child.pid})
    both = ResourceObserver("t00001", {"A": [sleeper.pid, child.pid]})
    alone.sample()
    both.sample()
    child.communicate()
    both.sample()
    one, other = alone.rows
    before, after = both.rows
    for name in ("cpu_ns", "threads", "run_delay_ns", "voluntary_switches"):
        assert before[name] >= one[name] + other[name], name  # type: ignore[literal-required]
        # On an idle machine neither has waited for a processor.
        assert one[name] + other[name] > 0 or name == "run_delay_ns", name  # type: ignore[literal-required]
    assert other["cpu_ns"] > 0 < other["threads"]
    assert (before["rss_bytes"] or 0) > max(one["rss_bytes"] or 0, other["rss_bytes"] or 0)
    assert after["cpu_ns"] >= before["cpu_ns"]
    assert after["threads"] == one["threads"]
    assert 0 < (after["rss_bytes"] or 0) < (before["rss_bytes"] or 0)
    sleeper.kill()
    sleeper.wait()
    both.sample()
    assert len(both.rows) == 2
    for observer in (alone, both):
        observer.close()


def test_columns_are_those_of_the_schema_and_the_cost_is_told() -> None:
    observer = ResourceObserver("t00001", {"A": os.getpid()}, cgroups={"A": [{"memory": Path("/nowhere")}]})
    observer.sample()
    observer.sample()
    observer.close()
    assert set(observer.rows[0]) <= set(RESOURCES.names)
    assert observer.rows[0]["cgroup_memory_bytes"] is None
    cost = observer.cost()
    assert cost["samples"] == 2
    assert 0 < cost["cpu_ns"] <= cost["wall_ns"]
    assert cost["share"] == pytest.approx(cost["cpu_ns"] / cost["wall_ns"], rel=0.5)


def test_no_file_stays_open() -> None:
    before = set(Path("/proc/self/fd").iterdir())
    observer = ResourceObserver("t00001", {"A": os.getpid()})
    observer.follow("A", os.getpid())
    assert set(Path("/proc/self/fd").iterdir()) > before
    observer.close()
    assert set(Path("/proc/self/fd").iterdir()) == before


MOUNTS = """\
25 18 0:22 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755
26 25 0:23 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
27 25 0:24 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
28 25 0:25 /lab /sys/fs/cgroup/unified rw shared:9 - cgroup2 cgroup2 rw
"""


def test_the_groups_of_a_process_are_found_in_either_version() -> None:
    v1 = "4:memory:/docker/abc\n2:cpu,cpuacct:/docker/abc\n1:name=systemd:/x\n"
    assert parse_cgroups(v1, MOUNTS) == {
        "memory": Path("/sys/fs/cgroup/memory/docker/abc"),
        "cpuacct": Path("/sys/fs/cgroup/cpu,cpuacct/docker/abc"),
    }
    # the mount shows only what is below /lab
    assert parse_cgroups("0::/lab/b\n", MOUNTS) == {"unified": Path("/sys/fs/cgroup/unified/b")}
    assert parse_cgroups("0::/\n4:memory:/\n", MOUNTS) == {}, "a root accounts for the whole machine"
    assert parse_cgroups("0::/../other\n4:memory:/../other\n", MOUNTS) == {}, "it lies outside of what is mounted"
    assert parse_cgroups("", "") == {}
    assert all(path.is_dir() for path in cgroup_paths(os.getpid()).values())
    assert cgroup_paths(2**22 - 3) == {}


def test_a_group_of_version_1(tmp_path: Path) -> None:
    for name, text in (("memory.usage_in_bytes", "4096\n"), ("cpuacct.usage", "7000000123\n")):
        (tmp_path / name).write_text(text)
    (tmp_path / "cpu.stat").write_text("nr_periods 0\nnr_throttled 0\nthrottled_time 0\n")
    reader = CgroupReader([tmp_path])
    assert (reader.take().memory_bytes, reader.take().cpu_ns) == (4096, 7000000123)
    (tmp_path / "memory.usage_in_bytes").write_text("8192\n")
    assert reader.take().memory_bytes == 8192
    reader.close()


def test_a_group_of_version_2(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu memory\n")
    (tmp_path / "memory.current").write_text("12288\n")
    (tmp_path / "cpu.stat").write_text("usage_usec 1500\nuser_usec 1000\nsystem_usec 500\n")
    reader = CgroupReader([tmp_path])
    assert (reader.take().memory_bytes, reader.take().cpu_ns) == (12288, 1_500_000)
    reader.close()


@pytest.mark.lab
def test_traffic_is_told_of_hosts_and_of_a_process_alone_in_its_own() -> None:
    done = run_inside(
        """
        import json, os, socket, subprocess, sys, threading, time
        from trifecta.lab.host_graph import host_graph
        from trifecta.lab.topology import Wire
        from trifecta.observers.resources import ResourceObserver
        BYTES = 200_000
        with host_graph(["host1", "host2"], [Wire("host1", "host2")]) as lab:
            one, two = lab.host("host1"), lab.host("host2")
            sleep = ["sleep", "60"]
            alone = one.popen(sleep)
            pair = [two.popen(sleep), two.popen(sleep)]
            observer = ResourceObserver(
                "t1", {"A": alone.pid, "B": pair[0].pid, "C": pair[1].pid}, hosts=lab.hosts
            )
            with two.inside():
                server = socket.create_server((lab.address("host2"), 80))
            observer.sample()
            for host in (one, two):  # across the wire, then within host2
                with host.inside():
                    client = socket.create_connection((lab.address("host2"), 80))
                accepted = server.accept()[0]
                thread = threading.Thread(target=client.sendall, args=(b"x" * BYTES,))
                thread.start()
                got = 0
                while got < BYTES:
                    got += len(accepted.recv(65536))
                thread.join()
                observer.sample()
            observer.close()
            for child in (alone, *pair):
                child.kill()
            columns = ("received_bytes", "received_packets", "sent_bytes", "sent_packets")
            found = {}
            for row in observer.rows:
                found.setdefault(row["process"], []).append([row.get(name) for name in columns])
            print(json.dumps(found))
        """
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["B"] == found["C"] == [[None] * 4] * 3, "two services share the host's devices"
    across = [after - before for before, after in zip(found["A"][0], found["A"][1], strict=True)]
    assert found["A"][1] == found["host host1"][1]
    assert 200_000 < across[2] < 260_000, "sent, with headers"
    assert across[0] < 60_000
    arrived = found["host host2"][1][0] - found["host host2"][0][0]
    assert 200_000 < arrived < 260_000
    within = found["host host2 lo"][2][0] - found["host host2 lo"][1][0]
    assert 200_000 < within < 320_000
    assert found["host host1 lo"][2] == found["host host1 lo"][1]
