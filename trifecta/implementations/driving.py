"""What the drivers of clients and of browsers share: how they fail, what they say, and what ends them."""

from __future__ import annotations

import os
import select
import signal
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from trifecta.contract.codec import encode
from trifecta.contract.common import ProgramOutput
from trifecta.contract.load import Ended

EXIT_FAILED = 1


class Failure(Exception):
    """One line for standard error, and the exit code that goes with it."""

    def __init__(self, code: int, message: str) -> None:
        """``code`` as in docs/architecture.md, section 1."""
        self.code = code
        super().__init__(message)


def say(key: str, document: ProgramOutput, to: IO[str] | None = None) -> None:
    """One line of JSON, on standard output unless ``to`` says where."""
    stream = to or sys.stdout
    stream.write(encode({key: document}).decode() + "\n")
    stream.flush()


@contextmanager
def wake_descriptor() -> Iterator[int]:
    """A descriptor that can be read once a signal asks to end (SIGTERM, SIGINT)."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    numbers = (signal.SIGTERM, signal.SIGINT)
    earlier = {number: signal.signal(number, lambda *_: None) for number in numbers}
    before = signal.set_wakeup_fd(write)
    try:
        yield read
    finally:
        signal.set_wakeup_fd(before)
        for number, handler in earlier.items():
            signal.signal(number, handler)
        os.close(read)
        os.close(write)


def awaited(descriptor: int, wake: int, deadline_ns: int) -> Ended:
    """Wait until ``descriptor`` can be read ("requests"), or until the driver has to end: why.

    ``wake`` is of `woken`; standard input tells only that it was closed.
    """
    poll = select.poll()
    for each in (descriptor, wake):
        poll.register(each, select.POLLIN)
    mode = os.fstat(0).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        poll.register(0, 0)
    reasons: dict[int, Ended] = {descriptor: "requests", wake: "signal", 0: "stdin"}
    while True:
        left_ns = deadline_ns - time.monotonic_ns()
        ready = {each for each, _ in poll.poll(max(0, -(-left_ns // 1_000_000)))}
        for each, why in reasons.items():
            if each in ready:
                return why
        if time.monotonic_ns() >= deadline_ns:
            return "total_timeout"
