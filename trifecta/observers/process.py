"""One process as the kernel accounts for it: CPU time, memory, threads, context switches, waiting for a core."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from trifecta.lab import linux
from trifecta.observers.held import HeldFile

_PAGE = os.sysconf("SC_PAGE_SIZE")


def rss_bytes(pid: int) -> int | None:
    """Resident memory of a process; None when it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE
    except (OSError, IndexError):
        return None


def run_delay_ns(pid: int) -> int | None:
    """Time in ns that the threads of a process were ready to run but had no CPU (second field of schedstat).

    It can still be read from a process that has ended but was not waited for.
    """
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        return sum(int((thread / "schedstat").read_text(encoding="ascii").split()[1]) for thread in threads)
    except (OSError, IndexError):
        return None


@dataclass(frozen=True)
class ProcessReading:
    """What was read of a process at one moment; None: this kernel does not tell."""

    cpu_ns: int
    rss_bytes: int | None
    threads: int | None
    voluntary_switches: int | None
    involuntary_switches: int | None
    run_delay_ns: int | None


@dataclass
class _Counts:
    """Counters of one thread, or of all threads that ended."""

    voluntary: int = 0
    involuntary: int = 0
    delay_ns: int = 0

    def add(self, other: _Counts) -> None:
        self.voluntary += other.voluntary
        self.involuntary += other.involuntary
        self.delay_ns += other.delay_ns


class _Thread:
    """A thread: its files stay open, its last counters are kept for when it ends."""

    def __init__(self, pid: int, thread: int) -> None:
        self._status = HeldFile(f"/proc/{pid}/task/{thread}/status")
        try:
            self._schedstat: HeldFile | None = HeldFile(f"/proc/{pid}/task/{thread}/schedstat")
        except FileNotFoundError:  # a kernel without CONFIG_SCHED_INFO
            self._schedstat = None
        except OSError:
            self._status.close()
            raise
        self.counts = _Counts()

    @property
    def tells_delay(self) -> bool:
        return self._schedstat is not None

    def take(self) -> bytes:
        """Read the counters; the text of its status. OSError when the thread is gone."""
        status = self._status.read_short()
        delay_ns = int(self._schedstat.read_short().split()[1]) if self._schedstat is not None else 0
        self.counts = _Counts(
            _field(status, b"\nvoluntary_ctxt_switches:") or 0,
            _field(status, b"\nnonvoluntary_ctxt_switches:") or 0,
            delay_ns,
        )
        return status

    def close(self) -> None:
        self._status.close()
        if self._schedstat is not None:
            self._schedstat.close()


def _field(status: bytes, name: bytes) -> int | None:
    """A number of /proc/PID/status (proc_pid_status(5)); None where it is not."""
    start = status.find(name)
    if start < 0:
        return None
    return int(status[start + len(name) :].split(None, 1)[0])


class ProcessReader:
    """Reads one process again and again, with its files kept open.

    Context switches are counted by thread (proc_pid_status(5)), so they are summed over the threads, and those of a
    thread that ended are kept as they were last seen. A thread that began and ended between two readings is missed.
    """

    def __init__(self, pid: int) -> None:
        """Begin with the threads there are now; a process that is gone has none, and every reading fails."""
        self.pid = pid
        self._threads: dict[int, _Thread] = {}
        self._ended = _Counts()
        with suppress(OSError):
            self._find_threads()

    def take(self) -> ProcessReading:
        """One reading; ProcessLookupError when the process is gone."""
        cpu_ns = linux.process_cpu_ns(self.pid)
        status = self._take_threads()
        main = status.get(self.pid)
        if main is None:  # it has ended and waits to be waited for: only its CPU clock is left
            return ProcessReading(cpu_ns, None, None, None, None, None)
        threads = _field(main, b"\nThreads:")
        if threads is not None and threads != len(self._threads):
            with suppress(OSError):
                self._find_threads()
            self._take_threads()
        total = _Counts()
        total.add(self._ended)
        for thread in self._threads.values():
            total.add(thread.counts)
        resident = _field(main, b"\nVmRSS:")
        tells_delay = all(thread.tells_delay for thread in self._threads.values())
        return ProcessReading(
            cpu_ns=cpu_ns,
            rss_bytes=None if resident is None else resident * 1024,
            threads=threads,
            voluntary_switches=total.voluntary,
            involuntary_switches=total.involuntary,
            run_delay_ns=total.delay_ns if tells_delay else None,
        )

    def close(self) -> None:
        """Close its files."""
        for thread in self._threads.values():
            thread.close()
        self._threads = {}

    def _take_threads(self) -> dict[int, bytes]:
        """Read every thread; those that are gone are let go of."""
        found = {}
        for number, thread in list(self._threads.items()):
            try:
                found[number] = thread.take()
            except (OSError, IndexError):
                self._ended.add(thread.counts)
                thread.close()
                del self._threads[number]
        return found

    def _find_threads(self) -> None:
        for entry in os.listdir(f"/proc/{self.pid}/task"):  # noqa: PTH208 - names only, ten times a second
            number = int(entry)
            if number not in self._threads:
                with suppress(ProcessLookupError, FileNotFoundError):
                    self._threads[number] = _Thread(self.pid, number)
