"""Calls into foreign code, each in a process of its own: one that hangs or crashes is an answer with its reason.

A thread could be neither ended nor survived when it takes the process down, so each call is forked.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any, NoReturn, TypeVar

from trifecta.lab import linux

Key = TypeVar("Key", bound=Hashable)
MAX_ANSWER_BYTES = 1_000_000
_LAST_WORDS_BYTES = 2_000
_apart = False


@dataclass(frozen=True)
class CallOutcome:
    """What a call returned, or why it did not."""

    value: Any = None
    problem: str | None = None


def call_apart(
    calls: Mapping[Key, Callable[[], Any]], *, timeout_s: float, at_once: int | None = None
) -> dict[Key, CallOutcome]:
    """Make every call in a child process, ``at_once`` of them at a time (two for each CPU), and wait for all.

    A call returns what JSON can hold. Each has ``timeout_s`` from its own start; whatever it started ends with it.
    CannotError where this is no Linux.
    """
    linux.need()
    limit = at_once or max(2, 2 * len(os.sched_getaffinity(0)))
    waiting = list(calls.items())[::-1]
    running: dict[Key, _Child] = {}
    answers: dict[Key, CallOutcome] = {}
    try:
        while waiting or running:
            while waiting and len(running) < limit:
                key, call = waiting.pop()
                running[key] = _Child(call, timeout_s)
            _wait(running)
            for key in [key for key, child in running.items() if child.over()]:
                answers[key] = running.pop(key).answer(timeout_s)
    finally:
        for child in running.values():
            child.end()
    return {key: answers[key] for key in calls}


def is_apart() -> bool:
    """Whether this process makes such a call: what it does harms nobody else."""
    return _apart


class _Child:
    """One call in a process, and session, of its own."""

    def __init__(self, call: Callable[[], Any], timeout_s: float) -> None:
        self.result: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self.said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self.deadline = time.monotonic() + timeout_s
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            _be_child(call, self.result, self.said, parent)
        self.descriptor = os.pidfd_open(self.pid)

    def over(self) -> bool:
        """Whether it has ended, or has to."""
        return bool(select.select([self.descriptor], [], [], 0)[0]) or time.monotonic() >= self.deadline

    def answer(self, timeout_s: float) -> CallOutcome:
        """What it left behind; it is ended if it still runs."""
        in_time = bool(select.select([self.descriptor], [], [], 0)[0])
        self.result.seek(0)
        text = self.result.read(MAX_ANSWER_BYTES + 1)
        self.said.seek(max(0, self.said.seek(0, os.SEEK_END) - _LAST_WORDS_BYTES))
        lines = self.said.read().decode(errors="replace").split("\n")
        last = next((" ".join(line.split()) for line in reversed(lines) if line.strip()), "")
        status = self.end()
        if not in_time:
            return CallOutcome(problem=f"did not answer within {timeout_s:g} s" + (f": {last}" if last else ""))
        if status != 0:
            how = f"signal {-status}" if status < 0 else f"exit code {status}"
            return CallOutcome(problem=f"crashed ({how})" + (f": {last}" if last else ""))
        if len(text) > MAX_ANSWER_BYTES:
            return CallOutcome(problem="answered with more than 1 MB")
        report = json.loads(text)
        return CallOutcome(report["value"], report["problem"])

    def end(self) -> int:
        """End it and whatever it started (as long as the leader is not reaped, the group's number is its own)."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)  # it may not have reached setsid yet
        _, status = os.waitpid(self.pid, 0)
        os.close(self.descriptor)
        self.result.close()
        self.said.close()
        return os.waitstatus_to_exitcode(status)


def _wait(running: Mapping[Key, _Child]) -> None:
    """Until one has ended or is out of time."""
    first = min(child.deadline for child in running.values())
    select.select([child.descriptor for child in running.values()], [], [], max(0.0, first - time.monotonic()))


def _be_child(call: Callable[[], Any], result: IO[bytes], stderr: IO[bytes], parent: int) -> NoReturn:
    """Answer, and end without what the parent would do at its end (handlers, buffers)."""
    global _apart  # noqa: PLW0603 - it says what this process is
    _apart = True
    code = 1
    try:
        os.setsid()
        linux.set_parent_death_signal(signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)  # it died before the signal was asked for
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        with open(os.devnull, "rb") as nothing:  # noqa: PTH123
            os.dup2(nothing.fileno(), 0)
        os.dup2(stderr.fileno(), 1)
        os.dup2(stderr.fileno(), 2)
        sys.stdin = os.fdopen(0, closefd=False)
        sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
        result.write(_answer_of(call).encode())
        result.flush()
        code = 0
    finally:
        with suppress(BaseException):
            sys.stderr.flush()
        os._exit(code)


def _answer_of(call: Callable[[], Any]) -> str:
    try:
        return json.dumps({"value": call(), "problem": None})
    except (Exception, SystemExit) as error:
        words = " ".join(str(error).split())
        return json.dumps({"value": None, "problem": f"{type(error).__name__}: {words}" if words else repr(error)})
