"""Takes every core away from all ordinary programs in short bursts, as a hypervisor or a real-time program does.

``python -m tests.engine.stealer SECONDS``: a process a core, pinned, SCHED_FIFO above the link's own priority, that
computes 4 ms and sleeps 20 to 380 ms, at random. It ends after SECONDS, on a signal, and with its parent. It prints a
line when it steals, and at its end how many bursts it made. Exit code 3 where SCHED_FIFO is not allowed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

BURST_NS = 4_000_000
PAUSE_S = (0.02, 0.38)  # some 2 % of each core
PRIORITY = 80
LONGEST_S = 7200.0
_PR_SET_PDEATHSIG = 1


def steal(core: int, until: float) -> int:
    """Bursts on one core until a time of the monotonic clock; how many."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.sched_setaffinity(0, {core})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    draws, bursts = random.Random(core), 0
    while time.monotonic() < until:
        end = time.monotonic_ns() + BURST_NS
        while time.monotonic_ns() < end:
            pass
        bursts += 1
        time.sleep(draws.uniform(*PAUSE_S))
    return bursts


def main() -> int:
    """Steal on every core that this process may use."""
    until = time.monotonic() + min(float(sys.argv[1]), LONGEST_S)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    except PermissionError:
        print("SCHED_FIFO is not allowed here", file=sys.stderr)
        return 3
    children = []
    for core in sorted(os.sched_getaffinity(0)):
        child = os.fork()
        if child == 0:
            print(f"core {core}: {steal(core, until)} bursts of {BURST_NS / 1e6:g} ms", flush=True)
            os._exit(0)
        children.append(child)
    print("stealing", flush=True)
    for child in children:
        os.waitpid(child, 0)
    return 0


@contextlib.contextmanager
def stealing(seconds: float) -> Iterator[subprocess.Popen[str]]:
    """Bursts for as long as the block lasts, at most so many seconds. PermissionError where they are not allowed."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.engine.stealer", str(seconds)],
        stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    try:
        assert process.stdout
        if process.stdout.readline() != "stealing\n":
            raise PermissionError("SCHED_FIFO is not allowed here")
        yield process
        assert process.poll() is None, "the bursts ended before what ran under them"
    finally:
        process.kill()  # its children go with it
        process.wait()


if __name__ == "__main__":
    sys.exit(main())
