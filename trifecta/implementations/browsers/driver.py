"""Runs a browser in the place of the engine's load: ``python -m trifecta.implementations.browsers.driver NAME``.

It speaks the contract of docs/architecture.md, section 1.1, "A browser": a line of JSON on standard input; ``loaded``,
``ready`` and ``summary`` on standard output; diagnostics on standard error. It ends, with everything it started, when
standard input is closed, on SIGTERM or SIGINT, or when its parent dies. Exit codes: 0 done, 1 the browser did not come
up, 2 bad input, 3 cannot, 127 the browser is missing or cannot do this.

The visits are made by ``worker.py`` in namespaces of its own. This process keeps what it says and writes the files,
so that a crash or a hang of anything over there is rows with an error, and never a trial without rows.
"""

from __future__ import annotations

import json
import os
import select
import signal
import stat
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from trifecta.contract.browser import BrowserConfig
from trifecta.contract.codec import encode
from trifecta.contract.common import Declared, Told
from trifecta.contract.errors import ErrorClass
from trifecta.contract.load import ClientLoaded, ClientReady, Ended, LoadSummary
from trifecta.implementations.browser import CRASHED, HUNG, Job
from trifecta.implementations.browsers import apart, jobs, records, worker
from trifecta.implementations.browsers.records import VisitRecord
from trifecta.implementations.registry import BROWSERS
from trifecta.implementations.visit import Visit
from trifecta.lab import linux
from trifecta.lab.engine import EXIT_BAD_INPUT, EXIT_CANNOT
from trifecta.store import parquet

EXIT_FAILED = 1
_LOAD_TIMEOUT_NS = 60_000_000_000
_CHUNK = 1 << 20


class Failure(Exception):
    """One line for standard error, and the exit code that goes with it."""

    def __init__(self, code: int, message: str) -> None:
        """``code`` as in docs/architecture.md, section 1."""
        self.code = code
        super().__init__(message)


@dataclass
class Course:
    """How a trial went, as the worker told it."""

    began_ns: int
    ended_ns: int = 0
    why: Ended | Literal["hung"] = "requests"
    """``requests`` (all visits were made), ``total_timeout``, ``crashed``, ``hung``, ``signal``, ``stdin``."""
    records: list[VisitRecord] = field(default_factory=list)
    version: str = ""
    cpu_ns: tuple[int, int] = (0, 0)
    stray_lookups: int | None = None


# What the visits that were not made have for an error.
_LOST: dict[str, ErrorClass] = {
    "total_timeout": "timeout", "crashed": CRASHED, "hung": HUNG, "signal": "interrupted", "stdin": "interrupted",
    "requests": CRASHED,
}  # fmt: skip


def main(arguments: list[str]) -> int:
    """The program; ``arguments`` is the name of the browser."""
    linux.set_parent_death_signal(signal.SIGKILL)
    linux.become_subreaper()
    try:
        if len(arguments) != 1 or arguments[0] not in BROWSERS:
            known = ", ".join(BROWSERS)
            raise Failure(EXIT_BAD_INPUT, f"browser: no adapter {' '.join(arguments)!r}; known: {known}")
        name = arguments[0]
        there = apart.Apart(partial(worker.main, name))  # before any thread is started here
        try:
            run(name, there)
        finally:
            there.close()
    except Failure as failure:
        print(f"error: {failure}", file=sys.stderr, flush=True)
        return failure.code
    return 0


def run(name: str, there: apart.Apart) -> None:
    """Hand the configuration on, follow the visits, write the files and say the summary."""
    parquet.warm_up()  # what is imported now does not disturb the browser later
    lines = _Lines(there.said)
    loaded = _loaded(lines)
    _say("loaded", ClientLoaded(client=name))
    line = sys.stdin.buffer.readline()
    if not line:
        return
    try:
        config = jobs.read(line)
    except ValueError as error:
        raise Failure(EXIT_BAD_INPUT, str(error)) from error
    job = jobs.job_of(config)
    with suppress(BrokenPipeError):
        os.write(there.to, line)
    course = _follow(name, there, lines, job)
    there_was = {record.number for record in course.records}
    for number in range(job.warmup_visits + job.visits):
        if number not in there_was:
            lost = Visit(course.ended_ns, job.url, error=_LOST[course.why])
            course.records.append(VisitRecord(number, number < job.warmup_visits, lost))
    course.records.sort(key=lambda record: record.number)
    _write(name, config, job, course)
    _say("summary", summary(name, job, course, loaded.get("declared", {})))


def summary(name: str, job: Job, course: Course, declared: Declared) -> LoadSummary:
    """The summary of docs/architecture.md, section 1.1."""
    measured = [record for record in course.records if not record.warmup]
    ends = [_end_ns(record) for record in measured]
    left_out: dict[str, int] = {}
    for record in course.records:
        for fetch in record.fetches:
            if fetch.missing:
                left_out[fetch.url] = left_out.get(fetch.url, 0) + 1
    started = min(record.visit.started_ns for record in measured)
    return LoadSummary(
        trial=job.trial,
        client=name,
        version=course.version,
        declared=declared,
        samples=len(measured),
        errors=sum(record.visit.error is not None for record in measured),
        visits=len(measured),
        ended="crashed" if course.why == "hung" else course.why,
        exit_code=0,
        started_ns=started,
        ended_ns=max(ends),
        measured_ns=max(0, max(ends) - started),
        wall_ns=course.ended_ns - course.began_ns,
        program_started_ns=course.began_ns,
        program_ended_ns=course.ended_ns,
        cpu_user_ns=course.cpu_ns[0],
        cpu_system_ns=course.cpu_ns[1],
        busy_ratio=sum(course.cpu_ns) / max(1, course.ended_ns - course.began_ns),
        connections_opened=sum(record.visit.connections or 0 for record in course.records),
        left_out=left_out,
        stray_lookups=course.stray_lookups,
        max_rss_bytes=None,
        schedule_lag_ns=None,
        missed_slots=None,
        connections_lost_idle=None,
        wire_bytes_out=None,
        wire_bytes_in=None,
        key_exchange=None,
        tcp=None,
        quic=None,
        udp_receive_errors=None,
    )


def _end_ns(record: VisitRecord) -> int:
    """When a visit ended, as far as is known."""
    visit = record.visit
    ends = [fetch.done_ns for fetch in record.fetches if fetch.done_ns is not None]
    ends += [visit.started_ns + length for length in (visit.load_ns, visit.watched_ns) if length is not None]
    return max(ends, default=visit.started_ns)


class _Lines:
    """What the worker says, line by line."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._buffer = bytearray()
        self.ended = False

    def read(self) -> Iterator[tuple[str, bytes]]:
        """The lines that are there now: what each is, and its text."""
        chunk = os.read(self.descriptor, _CHUNK)
        self.ended = not chunk
        self._buffer += chunk
        *whole, rest = bytes(self._buffer).split(b"\n") if b"\n" in chunk else [bytes(self._buffer)]
        if whole:
            self._buffer = bytearray(rest)
        for line in whole:
            yield line[2:].partition(b'"')[0].decode(), line


def _loaded(lines: _Lines) -> dict[str, Any]:
    deadline = time.monotonic_ns() + _LOAD_TIMEOUT_NS
    poll = select.poll()
    poll.register(lines.descriptor, select.POLLIN)
    while not lines.ended and time.monotonic_ns() < deadline:
        if poll.poll(1000):
            for key, line in lines.read():
                said: dict[str, Any] = json.loads(line)[key]
                if key == "loaded":
                    return said
                _fail(said)
    raise Failure(EXIT_FAILED, "the browser's worker did not come up; see the lines above")


def _fail(said: Mapping[str, Any]) -> None:
    raise Failure(int(said["code"]), str(said["message"]))


def _follow(name: str, there: apart.Apart, lines: _Lines, job: Job) -> Course:
    """Listen until the visits are made, or until it must end; then end the worker."""
    course = Course(began_ns=time.monotonic_ns())
    deadline = course.began_ns + job.total_timeout_ns
    done = False
    with _woken() as wake:
        poll = select.poll()
        poll.register(lines.descriptor, select.POLLIN)
        poll.register(wake, select.POLLIN)
        mode = os.fstat(0).st_mode
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            poll.register(0, 0)  # only its closing
        while not done and course.why == "requests":
            left_ms = -(-(deadline - time.monotonic_ns()) // 1_000_000)
            ready = {descriptor for descriptor, _ in poll.poll(max(0, left_ms))}
            if lines.descriptor in ready:
                for key, line in lines.read():
                    done |= _hear(name, there, course, key, line)
                if lines.ended and not done:
                    course.why = "crashed"
            elif wake in ready:
                course.why = "signal"
            elif 0 in ready:
                course.why = "stdin"
            elif time.monotonic_ns() >= deadline:
                course.why = "total_timeout"
    course.ended_ns = time.monotonic_ns()
    return course


def _hear(name: str, there: apart.Apart, course: Course, key: str, line: bytes) -> bool:
    """Take one line of the worker; whether it was the last."""
    if key == "visit":
        course.records.append(VisitRecord.from_json(line[len('{"visit":') : -1]))
        return False
    said = json.loads(line)[key]
    if key == "ready":
        course.version = said["version"]
        pid = there.inside(said["pid"])
        _say("ready", ClientReady(client=name, browser=name, version=said["version"], pid=pid or there.pid))
    elif key == "cpu":
        course.cpu_ns = (said[0], said[1])
    elif key == "note":
        print(said, file=sys.stderr, flush=True)
    elif key == "failed":
        _fail(said)
    elif key == "done":
        course.stray_lookups = said["stray_lookups"]
        if said["lost"]:
            course.why = "hung" if said["lost"] == HUNG else "crashed"
        return True
    return False


@contextmanager
def _woken() -> Iterator[int]:
    """A descriptor that can be read once a signal asks to end."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    numbers = (signal.SIGTERM, signal.SIGINT)
    earlier = {number: signal.signal(number, lambda *_: None) for number in numbers}
    woken = signal.set_wakeup_fd(write)
    try:
        yield read
    finally:
        signal.set_wakeup_fd(woken)
        for number, handler in earlier.items():
            signal.signal(number, handler)
        os.close(read)
        os.close(write)


def _tables(name: str, job: Job, found: Sequence[VisitRecord]) -> records.Tables:
    return records.tables(
        found,
        trial=job.trial,
        kind=job.kind,
        view=job.view,
        browser=name,
        protocol=job.protocol,
    )


def _write(name: str, config: BrowserConfig, job: Job, course: Course) -> None:
    try:
        found = _tables(name, job, course.records)
    except ValueError as error:
        raise Failure(EXIT_FAILED, f"browser {name}: what it told is not understood ({error})") from error
    for key in ("samples", "visits", "fetches", "playback"):
        path = getattr(config, f"{key}_file")
        if path is None:
            continue
        try:
            getattr(found, key).write(Path(path))
        except OSError as error:
            raise Failure(EXIT_CANNOT, f"{key}_file: {path}: {error.strerror}") from error


def _say(key: str, document: Told) -> None:
    sys.stdout.write(encode({key: document}).decode() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
