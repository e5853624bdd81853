"""Programs of this machine: one that is ending counts as ended from the moment its connections are closed."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trifecta.lab import linux
from trifecta.lab.host import LocalHost
from trifecta.lab.place import LocalPlace, OpenPlace

# It ends by the first octet, as a server does that dies of a request, and has more to close than that connection.
DIES = """
import os, socket, sys
before = [socket.socket() for _ in range(400)]
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
    after = [socket.socket() for _ in range(400)]
    connection.recv(1)
    os._exit(7)
"""

# The exit of a thread alone is SYS_exit, 60 on x86-64 and 93 on arm64; Python's own ends a thread, or the process.
LOSES_ITS_FIRST_THREAD = """
import ctypes, platform, threading, time
threading.Thread(target=time.sleep, args=(100,)).start()
ctypes.CDLL(None).syscall(60 if platform.machine() == "x86_64" else 93, 0)
"""


@pytest.fixture
def place() -> OpenPlace:
    return LocalPlace(LocalHost())


def test_who_has_closed_its_connections_to_exit_has_ended(place: OpenPlace, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        for _ in range(20):
            program = place.run([sys.executable, "-S", "-c", DIES, str(listener.getsockname()[1])], tmp_path / "log")
            connection, _ = listener.accept()
            with connection:
                connection.send(b"x")
                assert connection.recv(1) == b""
                assert (program.running(), program.exit_code) == (False, 7)


def test_so_has_one_that_speaks_the_contract_of_the_engine(place: OpenPlace, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        for _ in range(20):
            command = [sys.executable, "-S", "-c", DIES, str(listener.getsockname()[1])]
            with place.drive(command, "load", tmp_path / "log") as program:
                connection, _ = listener.accept()
                with connection:
                    connection.send(b"x")
                    assert connection.recv(1) == b""
                    assert not program.running()


def test_who_has_lost_its_first_thread_only_runs(place: OpenPlace, tmp_path: Path) -> None:
    program = place.run([sys.executable, "-c", LOSES_ITS_FIRST_THREAD], tmp_path / "log")
    try:
        stat = Path(f"/proc/{program.pid}/stat")
        until = time.monotonic() + 10
        while stat.read_text().rpartition(")")[2].split()[0] != "Z":
            assert time.monotonic() < until
            time.sleep(0.01)
        assert program.running()
        assert not linux.exiting(program.pid)
    finally:
        program.close()


def test_who_has_ended_is_exiting_until_it_is_waited_for_and_then_unknown() -> None:
    program = subprocess.Popen(["true"])
    linux.wait_for_end(program.pid, 10)
    assert linux.exiting(program.pid)
    program.wait()
    assert not linux.exiting(program.pid)


def test_of_who_goes_while_it_is_looked_at_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's folder of its threads is there at one look and gone at the next."""

    def gone(folder: Path, pattern: str) -> list[Path]:
        raise FileNotFoundError(2, "No such file or directory", str(folder))

    monkeypatch.setattr(Path, "glob", gone)
    assert not linux.exiting(os.getpid())
