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
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from trifecta.contract.browser import BrowserConfig
from trifecta.contract.load import ClientLoaded, ClientReady
from trifecta.implementations.browser import HUNG, Job
from trifecta.implementations.browsers import jobs, namespaced_worker, records, worker
from trifecta.implementations.browsers.driver_summary import LOST, TrialRecord, summary
from trifecta.implementations.browsers.records import VisitRecord
from trifecta.implementations.driving import EXIT_FAILED, Failure, awaited, say, wake_descriptor
from trifecta.implementations.registry import BROWSERS
from trifecta.implementations.visit import Visit
from trifecta.lab import linux
from trifecta.lab.engine import EXIT_BAD_INPUT, EXIT_CANNOT
from trifecta.store import parquet

_LOAD_TIMEOUT_NS = 60_000_000_000
_CHUNK = 1 << 20


def main(arguments: list[str]) -> int:
    """The program; ``arguments`` is the name of the browser."""
    linux.set_parent_death_signal(signal.SIGKILL)
    linux.become_subreaper()
    try:
        if len(arguments) != 1 or arguments[0] not in BROWSERS:
            known = ", ".join(BROWSERS)
            raise Failure(EXIT_BAD_INPUT, f"browser: no adapter {' '.join(arguments)!r}; known: {known}")
        name = arguments[0]
        there = namespaced_worker.NamespacedWorker(partial(worker.main, name))  # before any thread is started here
        try:
            run(name, there)
        finally:
            there.close()
    except Failure as failure:
        print(f"error: {failure}", file=sys.stderr, flush=True)
        return failure.code
    return 0


def run(name: str, there: namespaced_worker.NamespacedWorker) -> None:
    """Hand the configuration on, follow the visits, write the files and say the summary."""
    parquet.warm_up()  # what is imported now does not disturb the browser later
    lines = _Lines(there.said)
    loaded = _loaded(lines)
    say("loaded", ClientLoaded(client=name))
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
            lost = Visit(course.ended_ns, job.url, error=LOST[course.why])
            course.records.append(VisitRecord(number, number < job.warmup_visits, lost))
    course.records.sort(key=lambda record: record.number)
    _write(name, config, job, course)
    say("summary", summary(name, job, course, loaded.get("declared", {})))


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
        *complete, rest = bytes(self._buffer).split(b"\n") if b"\n" in chunk else [bytes(self._buffer)]
        if complete:
            self._buffer = bytearray(rest)
        for line in complete:
            yield line[2:].partition(b'"')[0].decode(), line


def _loaded(lines: _Lines) -> dict[str, Any]:
    deadline = time.monotonic_ns() + _LOAD_TIMEOUT_NS
    poll = select.poll()
    poll.register(lines.descriptor, select.POLLIN)
    while not lines.ended and time.monotonic_ns() < deadline:
        if poll.poll(1000):
            for key, line in lines.read():
                message: dict[str, Any] = json.loads(line)[key]
                if key == "loaded":
                    return message
                _fail(message)
    raise Failure(EXIT_FAILED, "the browser's worker did not come up; see the lines above")


def _fail(failure: Mapping[str, Any]) -> None:
    raise Failure(int(failure["code"]), str(failure["message"]))


def _follow(name: str, there: namespaced_worker.NamespacedWorker, lines: _Lines, job: Job) -> TrialRecord:
    """Listen until the visits are made, or until it must end; then end the worker."""
    course = TrialRecord(began_ns=time.monotonic_ns())
    deadline = course.began_ns + job.total_timeout_ns
    done = False
    with wake_descriptor() as wake:
        while not done and course.why == "requests":
            course.why = awaited(lines.descriptor, wake, deadline)
            if course.why == "requests":
                for key, line in lines.read():
                    done |= _take_message(name, there, course, key, line)
                if lines.ended and not done:
                    course.why = "crashed"
    course.ended_ns = time.monotonic_ns()
    return course


def _take_message(
    name: str, there: namespaced_worker.NamespacedWorker, course: TrialRecord, key: str, line: bytes
) -> bool:
    """Take one line of the worker; whether it was the last."""
    if key == "visit":
        course.records.append(VisitRecord.from_json(line[len('{"visit":') : -1]))
        return False
    message = json.loads(line)[key]
    if key == "ready":
        course.version = message["version"]
        pid = there.inside(message["pid"])
        say("ready", ClientReady(client=name, browser=name, version=message["version"], pid=pid or there.pid))
    elif key == "cpu":
        course.cpu_ns = (message[0], message[1])
    elif key == "note":
        print(message, file=sys.stderr, flush=True)
    elif key == "failed":
        _fail(message)
    elif key == "done":
        course.stray_lookups = message["stray_lookups"]
        if message["lost"]:
            course.why = "hung" if message["lost"] == HUNG else "crashed"
        elif message.get("patience"):
            course.why = "status"
        return True
    return False


def _write(name: str, config: BrowserConfig, job: Job, course: TrialRecord) -> None:
    try:
        tables = records.tables(
            course.records, trial=job.trial, kind=job.kind, view=job.view, browser=name, protocol=job.protocol
        )
    except ValueError as error:
        raise Failure(EXIT_FAILED, f"browser {name}: what it told is not understood ({error})") from error
    for key in ("samples", "visits", "fetches", "playback"):
        path = getattr(config, f"{key}_file")
        if path is None:
            continue
        try:
            getattr(tables, key).write(Path(path))
        except OSError as error:
            raise Failure(EXIT_CANNOT, f"{key}_file: {path}: {error.strerror}") from error


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
