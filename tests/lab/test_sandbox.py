"""The sandbox: private, gone with its processes, and a Ctrl-C that arrives once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.lab.inside import run_inside, start_inside
from trifecta.lab import sandbox

pytestmark = pytest.mark.lab


def test_it_is_private() -> None:
    done = run_inside(
        """
        import os
        from pathlib import Path
        print(os.getpid(), sorted(p for p in os.listdir("/proc") if p.isdigit()))
        print(open("/proc/net/dev").read().count(":"), os.readlink("/proc/self/ns/net"), os.geteuid())
        """
    )
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == "2 ['1', '2']"
    assert second.startswith("1 ")  # the loopback device only
    assert str(Path("/proc/self/ns/net").readlink()) not in second
    assert second.endswith(" 0")


@pytest.mark.parametrize(("code", "expected"), [("raise SystemExit(7)", 7), ("", 0), ("1 / 0", 1)])
def test_the_exit_code_passes_through(code: str, expected: int) -> None:
    assert run_inside(code).returncode == expected


def test_a_killed_run_is_said_and_its_code_is_128_plus_the_signal() -> None:
    done = run_inside("import os; os.kill(os.getpid(), 9)")
    assert done.returncode == 128 + 9
    assert "trifecta resume" in done.stderr


def test_output_is_not_written_twice() -> None:
    done = run_inside("print('once')")
    assert done.stdout == "once\n"


@pytest.mark.parametrize("to_all", [False, True], ids=["to the command", "to its process group, as a terminal does"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_reaches_the_run_once(number: signal.Signals, to_all: bool) -> None:
    process = start_inside(
        """
        import signal, sys, time
        seen = []
        for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(n, lambda number, frame: seen.append(number))
        print("there", flush=True)
        while not seen:
            time.sleep(0.01)
        time.sleep(0.3)
        print(seen, flush=True)
        sys.exit(5)
        """
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "there\n"
    (os.killpg if to_all else os.kill)(process.pid, number)
    out, _ = process.communicate(timeout=20)
    assert out == f"[{int(number)}]\n"
    assert process.returncode == 5


def _alive_with(mark: str) -> list[int]:
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if mark in " ".join(process.info["cmdline"] or []):
            found.append(process.pid)  # noqa: PERF401
    return found


@pytest.mark.parametrize("victim", ["parent", "init", "run"])
def test_killing_any_process_leaves_nothing(victim: str) -> None:
    mark = f"987{os.getpid()}{['parent', 'init', 'run'].index(victim)}"
    process = start_inside(
        f"""
        import subprocess, time
        subprocess.Popen(["sleep", "{mark}"], start_new_session=True)
        subprocess.Popen(["sh", "-c", "sleep {mark} & sleep {mark}"], start_new_session=True)
        print("there", flush=True)
        time.sleep(60)
        """
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "there\n"
    time.sleep(0.2)
    parent = psutil.Process(process.pid)
    init = parent.children()[0]
    run = init.children()[0]
    namespace = os.readlink(f"/proc/{run.pid}/ns/net")  # noqa: PTH115
    assert len([pid for pid in _alive_with(mark) if pid != parent.pid]) >= 3
    {"parent": parent, "init": init, "run": run}[victim].kill()
    process.wait(timeout=20)
    deadline = time.monotonic() + 10
    while (left := _alive_with(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == []
    for pid in psutil.pids():
        try:
            assert os.readlink(f"/proc/{pid}/ns/net") != namespace  # noqa: PTH115
        except (FileNotFoundError, PermissionError, ProcessLookupError):
            continue


def test_orphans_are_reaped() -> None:
    done = run_inside(
        """
        import subprocess, time, os
        subprocess.run(["sh", "-c", "sleep 0.05 &"])
        until = time.monotonic() + 20
        while len(left := sorted(p for p in os.listdir("/proc") if p.isdigit())) > 2 and time.monotonic() < until:
            time.sleep(0.05)
        print(left)
        """
    )
    assert done.stdout == "['1', '2']\n"


def test_a_process_with_threads_is_refused() -> None:
    code = "import threading, time\nthreading.Thread(target=time.sleep, args=(1,), daemon=True).start()\n"
    done = run_inside("")  # the plain case works here
    assert done.returncode == 0
    done = subprocess.run(
        [sys.executable, "-c", code + "from trifecta.lab import sandbox\nsandbox.enter()"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 1
    assert "before threads are started" in done.stderr


def test_a_refusing_kernel_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n"}
    monkeypatch.setattr(Path, "exists", lambda self: str(self) in settings)
    monkeypatch.setattr(Path, "read_text", lambda self, **_: settings[str(self)])
    message = str(sandbox.refusal(PermissionError(1, "Operation not permitted"), user_namespace=True))
    assert "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0" in message
    assert "\n" not in message


def _filled(file: Path) -> bool:
    return file.exists() and file.stat().st_size > 0


@pytest.mark.parametrize("victim", ["nobody", "parent", "init", "run"])
def test_what_comes_afterwards_comes_outside_however_the_run_ends(victim: str, tmp_path: Path) -> None:
    file = tmp_path / "afterwards"
    code = f"""
import os, sys, time
from pathlib import Path
from trifecta.lab import sandbox
def afterwards():
    Path({str(file)!r}).write_text(sandbox.mark() + " " + os.readlink("/proc/self/ns/net"))
sandbox.enter(afterwards)
print(sandbox.mark(), flush=True)
sys.stdin.read() if {victim == "nobody"} else time.sleep(60)
raise SystemExit(7)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    mark = process.stdout.readline().strip()
    assert not file.exists()
    if victim != "nobody":
        parent = psutil.Process(process.pid)
        init = next(child for child in parent.children() if child.children())
        {"parent": parent, "init": init, "run": init.children()[0]}[victim].kill()
    process.communicate(timeout=20)
    if victim == "nobody":
        assert process.returncode == 7
    deadline = time.monotonic() + 20
    # Who waits for the command finds it done, unless it was the command that was killed.
    while victim == "parent" and not _filled(file) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert file.read_text(encoding="ascii") == f"{mark} {Path('/proc/self/ns/net').readlink()}"
