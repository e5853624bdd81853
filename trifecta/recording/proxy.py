"""The recording proxy as a child process: started, told of visits, listened to, ended."""

from __future__ import annotations

import fcntl
import json
import os
import queue
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trifecta.design.errors import CannotError
from trifecta.implementations.recipes.recorder import PROGRAM, RECIPE
from trifecta.implementations.server import Unsupported

_START_S, _END_S = 60.0, 10.0
_PREFIX = "trifecta-record-"
_ABANDONED_S = 60  # a folder that is being made has no lock yet


@dataclass(frozen=True)
class Flow:
    """A request that went through the proxy, and what became of it."""

    visit: int
    method: str
    url: str
    status: int | None
    headers: tuple[tuple[str, str], ...]
    body: Path | None
    note: str | None
    """``service-worker``, ``stream`` or ``websocket``: not replayed."""
    error: str | None


class Proxy:
    """The running proxy."""

    def __init__(self, process: subprocess.Popen[str], work: Path) -> None:
        self._process = process
        self._work = work
        self._lines: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.flows: list[Flow] = []
        self.version = ""
        self.port = 0
        threading.Thread(target=self._listen, daemon=True).start()
        ready = self._next(_START_S).get("ready")
        if not isinstance(ready, dict):
            raise CannotError("the recording proxy did not start; run: trifecta get recorder --force")
        self.port, self.version = int(ready["port"]), str(ready["version"])

    def visit(self, number: int) -> None:
        """A visit begins: flows that begin from now on are of it."""
        if self._process.stdin is None:
            raise RuntimeError("the proxy was started without a pipe")
        try:
            self._process.stdin.write(json.dumps({"visit": number}) + "\n")
            self._process.stdin.flush()
        except OSError as error:
            raise CannotError(f"the recording proxy ended ({error}); record again") from error
        while "visit" not in self._next(_START_S):
            pass

    def end(self) -> None:
        """Let it tell of what is still open, and end."""
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        with suppress(CannotError):
            while True:
                self._next(_END_S)

    def _listen(self) -> None:
        for line in self._process.stdout or ():
            with suppress(ValueError):
                self._lines.put(json.loads(line))
        self._lines.put(None)

    def _next(self, timeout_s: float) -> dict[str, Any]:
        """The next line that is no flow; flows before it are kept."""
        end = time.monotonic() + timeout_s
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                line = None
            if line is None:
                raise CannotError("the recording proxy ended or hangs; run: trifecta get recorder --force")
            if "flow" not in line:
                return line
            self.flows.append(self._flow(line["flow"]))

    def _flow(self, record: dict[str, Any]) -> Flow:
        headers = tuple((name, value) for name, value in record.pop("headers"))
        body = record.pop("body")
        return Flow(**record, headers=headers, body=self._work / "bodies" / body if body else None)


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for all files of a recording: contents, the proxy's authority, the browser's profile.

    What a recording that was killed left behind is removed by the next one: nobody holds its lock.
    """
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/lock"):
        with suppress(OSError), left.open("r+") as lock:
            there = os.fstat(lock.fileno())
            if there.st_uid == os.getuid() and time.time() - there.st_mtime > _ABANDONED_S:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left.parent)
    with (
        tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as folder,
        (Path(folder) / "lock").open("w") as lock,
    ):
        fcntl.flock(lock, fcntl.LOCK_EX)
        (Path(folder) / "tmp").mkdir()
        yield Path(folder)


@contextmanager
def recording_proxy(work: Path, ca: Path | None, resolve: Mapping[str, tuple[str, int | None]]) -> Iterator[Proxy]:
    """Start the proxy with its files in ``work``; certificates of servers are verified against ``ca``, or the world's.

    It has no other environment than it needs: proxies and key logs of the user's are not its.
    """
    try:
        python = RECIPE.python()
    except Unsupported as error:
        raise CannotError(f"recording a URL needs mitmproxy: {error}") from error
    config = {"work": str(work), "ca": None if ca is None else str(ca.absolute()), "resolve": dict(resolve)}
    with (work / "proxy.log").open("w") as log:
        process = subprocess.Popen(
            [python, "-B", "-I", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
            env={name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ},
        )  # fmt: skip
    try:
        if process.stdin is not None:
            process.stdin.write(json.dumps(config) + "\n")
            process.stdin.flush()
        yield Proxy(process, work)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
