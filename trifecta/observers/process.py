"""One process as the kernel accounts for it: CPU time, memory, threads, context switches, waiting for a core."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, replace
from pathlib import Path

from trifecta.lab import linux
from trifecta.observers.open_files import OpenFile, hold

_PAGE = os.sysconf("SC_PAGE_SIZE")
_RUNNING = b"\nState:\tR"


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
    """What was read of a process at one moment; None: this kernel does not report."""

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
        self._status = OpenFile(f"/proc/{pid}/task/{thread}/status")
        try:
            self._schedstat: OpenFile | None = OpenFile(f"/proc/{pid}/task/{thread}/schedstat")
        except FileNotFoundError:  # a kernel without CONFIG_SCHED_INFO
            self._schedstat = None
        except OSError:
            self._status.close()
            raise
        self.counts = _Counts()
        self._runs = -1  # how often it had got a core by the last reading
        self._slept = False

    @property
    def tells_delay(self) -> bool:
        return self._schedstat is not None

    def take(self) -> None:
        """Read the counters. OSError when the thread is gone.

        Status takes the kernel eight times as long as schedstat. A thread that slept when it was last read and got no
        core since cannot have been switched.
        """
        if self._schedstat is not None:
            _, delay_ns, runs = map(int, self._schedstat.read_short().split())
            self.counts.delay_ns = delay_ns
            if self._slept and runs == self._runs:
                return
            self._runs = runs
        status = self._status.read_short()
        self._slept = _RUNNING not in status
        self.counts.voluntary = _field(status, b"\nvoluntary_ctxt_switches:")
        self.counts.involuntary = _field(status, b"\nnonvoluntary_ctxt_switches:")

    def close(self) -> None:
        self._status.close()
        if self._schedstat is not None:
            self._schedstat.close()


def _field(status: bytes, name: bytes) -> int:
    """A number of /proc/PID/status (proc_pid_status(5)); 0 where it is not."""
    start = status.find(name)
    return 0 if start < 0 else int(status[start + len(name) :].split(None, 1)[0])


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
        self._memory = hold(f"/proc/{pid}/statm")
        self._folder = -1
        with suppress(OSError):
            self._folder = os.open(f"/proc/{pid}/task", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            self._find_threads()

    def take(self) -> ProcessReading:
        """One reading; ProcessLookupError when the process is gone."""
        cpu_ns = linux.process_cpu_ns(self.pid)
        self._take_threads()
        try:
            threads = os.fstat(self._folder).st_nlink - 2  # a folder a thread, and as every folder "." and ".."
        except OSError:  # it was gone before it was read once
            return ProcessReading(cpu_ns, None, None, None, None, None)
        if threads != len(self._threads):
            with suppress(OSError):
                self._find_threads()
            self._take_threads()
        total = _Counts()
        total.add(self._ended)
        for thread in self._threads.values():
            total.add(thread.counts)
        tells_delay = all(thread.tells_delay for thread in self._threads.values())
        return ProcessReading(
            cpu_ns=cpu_ns,
            rss_bytes=self._resident(),
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
        if self._memory is not None:
            self._memory.close()
        if self._folder >= 0:
            os.close(self._folder)
            self._folder = -1

    def _resident(self) -> int | None:
        """Resident memory in octets; None for a process that has ended, and so has no memory."""
        try:
            pages = int(self._memory.read_short().split()[1]) if self._memory is not None else 0
        except (OSError, IndexError):
            return None
        return pages * _PAGE or None

    def _take_threads(self) -> None:
        """Read every thread; those that are gone are let go of."""
        for number, thread in list(self._threads.items()):
            try:
                thread.take()
            except (OSError, ValueError):
                self._ended.add(thread.counts)
                thread.close()
                del self._threads[number]

    def _find_threads(self) -> None:
        for entry in os.listdir(f"/proc/{self.pid}/task"):  # noqa: PTH208 - names only, ten times a second
            number = int(entry)
            if number not in self._threads:
                with suppress(ProcessLookupError, FileNotFoundError):
                    self._threads[number] = _Thread(self.pid, number)


class ProcessesReader:
    """Reads several processes as one: what they use is added up, with what those used that are gone."""

    def __init__(self, pids: Sequence[int]) -> None:
        """Begin with the threads there are now."""
        self.pids = tuple(pids)
        self._readers = [ProcessReader(pid) for pid in pids]
        self._last: dict[int, ProcessReading] = {}

    def take(self) -> ProcessReading:
        """One reading; ProcessLookupError when all of them are gone."""
        there = 0
        for reader in self._readers:
            try:
                self._last[reader.pid] = reader.take()
                there += 1
            except ProcessLookupError:
                if last := self._last.get(reader.pid):
                    self._last[reader.pid] = replace(last, rss_bytes=None, threads=None)
        if not there:
            raise ProcessLookupError
        cpu_ns, *others = (total(values) for values in zip(*map(astuple, self._last.values()), strict=True))
        return ProcessReading(cpu_ns or 0, *others)

    def close(self) -> None:
        """Close their files."""
        for reader in self._readers:
            reader.close()


def total(values: Iterable[int | None]) -> int | None:
    """Of what is told; None where nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
