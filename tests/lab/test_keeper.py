"""The shell at the other end, here: what it is told, what it answers, and that nothing is left however it ends."""

from __future__ import annotations

import gzip
import hashlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from trifecta.lab.ssh import keeper

PATIENCE_S = "60"
SHORT_S = "2"
"""For what is to happen when it hears nothing."""


def wait_until(what: Callable[[], bool], within_s: float = 10) -> None:
    until = time.monotonic() + within_s
    while not what():
        assert time.monotonic() < until, "it does not come to that"
        time.sleep(0.02)


class Kept:
    """A keeper, and a program that was started in its folder."""

    def __init__(self, room: Path, *left: str, patience: str = PATIENCE_S) -> None:
        environment = {**os.environ, "TMPDIR": str(room), "SSH_CONNECTION": "192.0.2.1 50000 192.0.2.2 22"}
        self.process = subprocess.Popen(
            ["sh", "-c", keeper.KEEPER, "sh", patience, *left],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
        assert self.line() == "connection 192.0.2.1 50000 192.0.2.2 22"
        word, _, folder = self.line().partition(" ")
        assert word == "ready"
        self.folder = Path(folder)
        self.started: list[subprocess.Popen[bytes]] = []

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().decode().rstrip("\n")

    def say(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()

    def answer(self, number: int) -> list[str]:
        lines = []
        while (line := self.line()) != f"done {number}":
            lines.append(line)
        return lines

    def start(self, name: str = "p1") -> subprocess.Popen[bytes]:
        """A program that stands in for the engine, and does nothing."""
        program = self.folder.parent / "program"
        program.write_text("#!/bin/sh\nexec sleep 1000\n")
        program.chmod(0o755)
        started = subprocess.Popen(
            ["sh", "-c", keeper.START, "sh", str(self.folder), name, str(program), "load"], stdin=subprocess.PIPE
        )
        self.started.append(started)
        wait_until((self.folder / f"{name}.pid").exists)
        return started

    def group(self) -> list[int]:
        """The living processes of its session that are left."""
        command = ["ps", "-o", "pid=,stat=", "-s", str(self.process.pid)]
        lines = subprocess.run(command, capture_output=True, check=False, text=True).stdout.splitlines()
        return [int(pid) for pid, state in map(str.split, lines) if not state.startswith("Z")]


@pytest.fixture
def kept(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Kept]:
    one = Kept(tmp_path, patience=getattr(request, "param", PATIENCE_S))
    yield one
    for pid in one.group():
        os.kill(pid, signal.SIGKILL)
    one.process.wait()
    for program in one.started:
        program.kill()
        program.wait()


short = pytest.mark.parametrize("kept", [SHORT_S], indirect=True)


def test_its_folder_is_private_and_gone_at_the_end_of_its_input(kept: Kept) -> None:
    program = kept.start()
    assert kept.folder.stat().st_mode & 0o777 == 0o700
    assert kept.process.stdin is not None
    kept.process.stdin.close()
    assert kept.process.wait(10) == 0
    assert program.wait(10) == -signal.SIGKILL
    assert not kept.folder.exists()
    assert kept.group() == []


def test_a_program_gets_its_signals_and_no_other_does(kept: Kept) -> None:
    program = kept.start()
    other = subprocess.Popen(["sleep", "1000"])
    (kept.folder / "p2.pid").write_text(f"{other.pid}\n")  # an old number that somebody else's process has now
    kept.say("signal p2 KILL")
    kept.say("signal p3 KILL")
    kept.say("signal p1 TERM")
    assert program.wait(10) == -signal.SIGTERM
    assert other.poll() is None
    assert kept.process.stdin is not None
    kept.process.stdin.close()
    kept.process.wait(10)
    assert other.poll() is None
    other.kill()
    other.wait()


def test_it_shows_files_and_what_a_program_used(kept: Kept) -> None:
    program = kept.start()
    kept.say("show 7 /proc/sys/net/core/somaxconn /not/there")
    first, value, second, *rest = kept.answer(7)
    assert (first, second) == ("== /proc/sys/net/core/somaxconn", "== /not/there")
    assert value.isdecimal()
    assert not any(rest)
    kept.say("used 8 p1")
    name, numbers, *_ = kept.answer(8)
    assert name == f"== /proc/{program.pid}/task/{program.pid}/schedstat"
    assert len(numbers.split()) == 3
    kept.say("used 9 p2")
    assert not any(kept.answer(9))


@short
def test_one_that_hears_nothing_ends_all_of_it(kept: Kept) -> None:
    program = kept.start()
    assert program.wait(20) == -signal.SIGKILL
    wait_until(lambda: not kept.folder.exists())
    assert kept.process.wait(10) == -signal.SIGKILL
    wait_until(lambda: kept.group() == [])


@pytest.mark.parametrize("kept", ["4"], indirect=True)
def test_one_that_is_told_of_it_stays(kept: Kept) -> None:
    program = kept.start()
    until = time.monotonic() + 9
    while time.monotonic() < until:
        kept.say("beat")
        time.sleep(0.2)
    assert program.poll() is None
    assert kept.folder.is_dir()


@short
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGSTOP])
def test_nothing_is_left_of_one_that_is_killed_or_frozen(kept: Kept, number: signal.Signals) -> None:
    program = kept.start()
    kept.process.send_signal(number)
    assert program.wait(20) == -signal.SIGKILL
    wait_until(lambda: not kept.folder.exists())
    wait_until(lambda: [pid for pid in kept.group() if pid != kept.process.pid] == [])


def test_the_next_one_removes_what_the_last_one_left(tmp_path: Path) -> None:
    first = Kept(tmp_path, patience="1000")
    program = first.start()
    second = Kept(tmp_path, str(first.folder), patience="1000")
    assert program.wait(10) == -signal.SIGKILL
    assert not first.folder.exists()
    assert second.folder.is_dir()
    for one in (first, second):
        assert one.process.stdin is not None
        one.process.stdin.close()
        one.process.wait(10)
    wait_until(lambda: first.group() == [] and second.group() == [])
    assert [path.name for path in tmp_path.iterdir()] == ["program"]


def test_a_folder_that_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    one = Kept(tmp_path, str(theirs))
    assert one.process.stdin is not None
    one.process.stdin.close()
    one.process.wait(10)
    assert theirs.is_dir()


def run(script: str, *arguments: str, home: Path, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    environment = {name: value for name, value in os.environ.items() if name != "XDG_CACHE_HOME"}
    return subprocess.run(
        ["sh", "-c", script, "sh", *arguments],
        input=given,
        capture_output=True,
        env=environment | {"HOME": str(home)},
        check=False,
    )


def test_an_engine_is_kept_by_its_digest(tmp_path: Path) -> None:
    content = b"#!/bin/sh\necho engine\n" * 1000
    digest = hashlib.sha256(content).hexdigest()
    assert run(keeper.LOOK, digest, home=tmp_path).stdout == b"absent\n"
    brought = run(keeper.BRING, digest, home=tmp_path, given=gzip.compress(content))
    assert brought.returncode == 0, brought.stderr
    engine = Path(brought.stdout.decode())
    assert engine == tmp_path / ".cache/trifecta/engine" / digest / "trifecta-engine"
    assert engine.read_bytes() == content
    assert engine.stat().st_mode & 0o777 == 0o700
    assert run(keeper.LOOK, digest, home=tmp_path).stdout.decode().splitlines()[:2] == [f"engine {engine}", "engine"]
    assert [path.name for path in engine.parent.iterdir()] == ["trifecta-engine"]
    engine.write_bytes(content + b"x")
    assert run(keeper.LOOK, digest, home=tmp_path).stdout == b"absent\n", "another one was taken for it"


@pytest.mark.parametrize("given", ["cut short", "another"])
def test_an_engine_that_comes_otherwise_is_refused_and_not_kept(tmp_path: Path, given: str) -> None:
    content = os.urandom(100_000)
    digest = hashlib.sha256(content).hexdigest()
    packed = gzip.compress(content)[:-5000] if given == "cut short" else gzip.compress(content + b"x")
    done = run(keeper.BRING, digest, home=tmp_path, given=packed)
    assert done.returncode != 0
    assert done.stderr
    assert list((tmp_path / ".cache/trifecta/engine" / digest).iterdir()) == []


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    done = run(keeper.LOOK, "0" * 64, *keeper.NEEDED, "no-such-tool", "nor-this", home=tmp_path)
    assert done.stdout == b"lacking no-such-tool nor-this\n"
    assert run(keeper.LOOK, "0" * 64, *keeper.NEEDED, home=tmp_path).stdout == b"absent\n"
