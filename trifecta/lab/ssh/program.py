"""A program of the engine on a host by SSH."""

from __future__ import annotations

import os
import threading
from collections import deque
from contextlib import suppress
from pathlib import Path

from trifecta.design.errors import CannotError
from trifecta.lab.engine import EngineError, Role
from trifecta.lab.remote_program import RemoteProgram
from trifecta.lab.ssh.callbacks import Callbacks
from trifecta.lab.ssh.host import SshHost

_END_S = 5.0  # a program that was killed has no say in when it is gone; the connection has


class SshProgram(RemoteProgram):
    """A program of the engine at the other end of a channel; used like ``EngineProcess``.

    It has no process id here. What is written to it before it runs waits for that, so that starting it takes no time.
    """

    def __init__(self, host: SshHost, role: Role, log: Path, *, name: str = "") -> None:
        """Have it started; HostLost when the host is lost. That it could not be started shows in the next wait."""
        super().__init__(role, name, log, host)
        self._host = host
        self._heard: deque[bytes] = deque()
        self._ended = threading.Event()
        self._code: int | None = None
        self._reason = ""
        self._waking = threading.Lock()  # what is closed here must not be written to in the other thread
        self._wake: int | None = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._diagnostics = log.open("ab", buffering=0)
        self._listen(self._wake)
        try:
            self._talk, self._remote_name = host.begin(role, Callbacks(self._hear, self._note, self._hear_end))
        except BaseException:
            self._release()
            raise

    def running(self) -> bool:
        """Whether it still runs, as far as is known here."""
        return not self._ended.is_set()

    def wait_end(self, timeout_s: float) -> None:
        """Wait until it has ended by itself, for so long at most."""
        self._ended.wait(timeout_s)

    def used(self) -> tuple[int, int] | None:
        """CPU time of its threads, and how long they waited for a core, in ns; None where it is not told."""
        with suppress(CannotError):
            return self._host.used(self._remote_name) if self.running() else None
        return None

    def close(self) -> None:
        """End it at once, whatever it does. Of a host that is lost, its keeper does."""
        if self.running():
            self._host.signal(self._remote_name, "KILL")
            self._talk.end_input()
            if self._host.lost is None:
                self._ended.wait(_END_S)
        self._talk.drop()
        self._release()

    def _release(self) -> None:
        with self._waking:
            if self._wake is not None:
                os.close(self._wake)
                self._wake = None
            self._diagnostics.close()

    def _send(self, line: bytes) -> None:
        if self._ended.is_set():
            raise BrokenPipeError
        self._talk.say(line)

    def _receive(self) -> bytes | None:
        assert self._wake is not None, "it was closed"
        with suppress(BlockingIOError):
            os.eventfd_read(self._wake)
        ended = self._ended.is_set()  # before the last words are taken: they come first
        octets = b"".join(self._heard.popleft() for _ in range(len(self._heard)))
        if ended:
            self._rouse()  # whoever polls next must not wait for what never comes
        return octets or (None if ended else b"")

    def _terminate(self) -> None:
        self._host.signal(self._remote_name, "TERM")

    def _exit_code(self) -> int:
        """How it ended; EngineError where that is not known, because the host is lost or refused the channel."""
        if self._code is None:
            reason = self._host.lost or self._reason or "its end was not reported"
            raise EngineError(self.name, None, f"host {self._host.machine.at} is lost ({reason})")
        return self._code

    def _hear(self, octets: bytes) -> None:
        self._heard.append(octets)
        self._rouse()

    def _note(self, octets: bytes) -> None:
        with self._waking:
            if self._wake is not None:
                self._diagnostics.write(octets)

    def _hear_end(self, code: int | None, reason: str) -> None:
        self._code, self._reason = code, reason
        self._ended.set()
        self._rouse()

    def _rouse(self) -> None:
        with self._waking:
            if self._wake is not None:
                os.eventfd_write(self._wake, 1)
