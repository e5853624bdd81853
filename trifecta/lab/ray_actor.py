"""The hand of the head at a node of Ray's: a program is started there, and octets are handed through."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from queue import SimpleQueue

_GRACE_S = 5.0
_LOOK_S = 0.02
_MOST_OCTETS = 1 << 22  # of one answer: it passes through Ray's memory


class NodeActor:
    """What runs in an actor's process on a node: it starts a program and hands octets through."""

    def __init__(self, arguments: Sequence[str]) -> None:
        """Start the program, in a session of its own."""
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - it is there as long as the actor
        self._process = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._output,
            start_new_session=True,
            bufsize=0,
        )
        self._early: dict[int, bytes] = {}
        self._written = 0
        self._ordering = threading.Lock()
        self._to_write: SimpleQueue[bytes | None] = SimpleQueue()
        # Of its own: one that does not read must not take a thread from `read`, which may be what it waits for.
        threading.Thread(target=self._keep_writing, daemon=True).start()

    def read(self, wait_s: float) -> tuple[bytes, str | None]:
        """What it wrote, waited for so long at most; and how it ended, once all that it wrote was read."""
        out = self._process.stdout
        assert out is not None
        pieces: list[bytes] = []
        many, until = 0, time.monotonic() + wait_s
        while many < _MOST_OCTETS:
            left = 0.0 if pieces else max(0.0, until - time.monotonic())
            if not select.select([out], [], [], left)[0]:
                break
            piece = os.read(out.fileno(), 1 << 16)
            if not piece:
                return b"".join(pieces), self._ending()
            pieces.append(piece)
            many += len(piece)
        return b"".join(pieces), None

    def write(self, number: int, octets: bytes) -> None:
        """To its standard input, in the order of the numbers, from 0; that it has ended, `read` says.

        Ray promises an order only to an actor of one thread, and this one has a second for `read`.
        """
        with self._ordering:
            self._early[number] = octets
            while self._written in self._early:
                self._to_write.put(self._early.pop(self._written))
                self._written += 1

    def _keep_writing(self) -> None:
        """Write what is queued, and close its standard input in the end."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended, or does not read any more
            while (octets := self._to_write.get()) is not None:
                view = memoryview(octets)
                while view:
                    view = view[self._process.stdin.write(view) or 0 :]
        with suppress(OSError):
            self._process.stdin.close()

    def end(self) -> None:
        """Close its standard input, and kill it where it does not end by that; what it started goes with it."""
        self._to_write.put(None)
        until = time.monotonic() + _GRACE_S
        while self._process.poll() is None and (left := until - time.monotonic()) > 0:
            self._pass_over(min(left, _LOOK_S))
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _pass_over(self, wait_s: float) -> None:
        """Read what nobody asks for any more: who waits for that does not see that its input is closed."""
        out = self._process.stdout
        assert out is not None
        began = time.monotonic()
        if not (select.select([out], [], [], wait_s)[0] and os.read(out.fileno(), 1 << 16)):
            time.sleep(max(0.0, wait_s - (time.monotonic() - began)))  # it has closed it, and ends soon

    def _ending(self) -> str:
        code = self._process.wait()
        self._output.seek(0)
        lines = self._output.read().decode(errors="replace").strip().splitlines()
        how = f"it was killed by signal {-code}" if code < 0 else f"it ended with exit code {code}"
        return lines[-1].removeprefix("trifecta: ") if lines and code >= 0 else how
