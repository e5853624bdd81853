"""A server that runs in the lab: started, known to be ready, watched, started again when it died."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from trifecta.contract.stored import Server
from trifecta.design.errors import CannotError
from trifecta.implementations.server import Backend, Command, ServerAdapter, ServerOptions, Site
from trifecta.lab import linux
from trifecta.lab.cpu_share import CpuShare
from trifecta.lab.engine import Stopped
from trifecta.lab.place import LocalPlace, OpenPlace, Program

READY_TIMEOUT_S = 30.0  # a busy machine has taken more than 5 s
GRACE_S = 2.0
RENEWED_GRACE_S = 0.02
_READY_PAUSE_S = 0.02
_WORD_PAUSE_S = 0.0005  # between two looks into a log: a start for a block of its own must cost little
_LAST_WORDS_BYTES = 600
FILE_LIMIT_BYTES = 1 << 30  # of any file a server writes, its log among them: one that prints must not fill the disk


@dataclass(frozen=True)
class _Program:
    name: str
    program: Program
    log: Path
    log_start: int

    def ended(self) -> bool:
        return not self.program.running()

    def last_words(self) -> str:
        """The end of its log since it was started, on one line."""
        with self.log.open("rb") as file:
            end = file.seek(0, os.SEEK_END)  # only the end is read: a program may have written without measure
            file.seek(max(self.log_start, end - _LAST_WORDS_BYTES))
            words = " ".join(file.read(_LAST_WORDS_BYTES).decode(errors="replace").split())
        return words or f"it said nothing (see {self.log})"

    def says(self, word: bytes) -> Iterator[bool]:
        """Whether the log has this since it was started: at every look, which reads what is new only."""
        with self.log.open("rb") as file:
            file.seek(self.log_start)
            output = b""
            while True:
                output += file.read()
                yield word in output
                output = output[-len(word) :]  # the rest of it may come later


class ServerFailed(CannotError):
    """A server did not come up: its own affair, which need not end what is done with others."""


class RunningServer:
    """One process of a server, with the backends behind it when it is a proxy, and what is known of it."""

    def __init__(
        self,
        adapter: ServerAdapter,
        version: str,
        site: Site,
        options: ServerOptions,
        place: OpenPlace,
        *,
        log: Path,
        cpus: frozenset[int] | None,
    ) -> None:
        """Prepare; ``start`` starts it. CannotError where it is to have a share of a core and cannot be limited.

        RuntimeError for one that is in a container, at a place that is none: its words are not meant for this machine.
        """
        if adapter.contained is not None and isinstance(place, LocalPlace):
            raise RuntimeError(f"{adapter.name} is in a container, and is started nowhere else")
        self.adapter = adapter
        self.version = version
        self.site = site
        self.options = options
        self.restarts = 0
        self.renewals = 0
        self._place = place
        self._log = log
        self._cpus = cpus
        share = options.cpu_share
        self.cpu_share = None if share is None else CpuShare(f"server-{site.port}", share)
        """Its control group, where it has a share of a core only; backends are not in it."""
        self._programs: list[_Program] = []  # the server itself is the last one
        self._backends: tuple[Backend, ...] = ()

    def start(self, *, renewed: bool = False) -> None:
        """Start the program, after its backends; it may not be ready yet. What is left of an earlier start is ended.

        ``renewed``: it did not have to be started again, but for a block of its own; such starts are counted apart.
        """
        restarted = bool(self._programs)
        # Connections whose last packet was lost on the path would hold an end up for a second, more than blocks have.
        # What they have left to say is for qlog only.
        quick = renewed and self.adapter.says_ready is not None and self.site.qlog is None
        self.end(RENEWED_GRACE_S if quick else GRACE_S)
        self._programs.clear()
        self.site.state.mkdir(parents=True, exist_ok=True)
        self._put()
        name = self.adapter.name
        self._backends = self.adapter.backends(self.site, self.options)
        for backend in self._backends:
            log = self._log.with_name(f"{self._log.stem}-{backend.name}{self._log.suffix}")
            self._launch(f"backend {backend.name} of {name}", backend.command, log)
        self._launch(f"server {name}", self.adapter.command(self.site, self.options), self._log)
        if self.cpu_share is not None:
            self.cpu_share.add(self.pid)
        self.renewals += renewed
        self.restarts += restarted and not renewed

    def _put(self) -> None:
        """What it reads and where it writes is at its place."""
        site = self.site
        given = site.certificates
        for path in (site.folder, given.authority, given.chain, given.key, site.replay, site.live):
            if path is not None:
                self._place.put(path)
        for folder in (site.state, site.qlog):
            if folder is not None:
                self._place.put(folder, writable=True)

    def _launch(self, name: str, command: Command, path: Path) -> None:
        path.touch()
        start = path.stat().st_size
        for needed in command.reads:
            self._place.put(needed)
        program = self._place.run(
            command.arguments,
            path,
            cpus=self._cpus,
            environment=command.environment,
            largest_file_bytes=FILE_LIMIT_BYTES,
        )
        self._programs.append(_Program(name, program, path, start))

    def wait_ready(
        self, ask: Callable[[], str | None], stop: Callable[[], bool], timeout_s: float | None = None
    ) -> float:
        """Ask until it answers: ``ask`` makes one real request and returns None, or what went wrong. Seconds waited.

        ServerFailed when the program ends or does not answer in time (READY_TIMEOUT_S or its adapter's own, or less).
        """
        waited = self._wait(ask, _READY_PAUSE_S, stop, timeout_s)
        if not self.running():
            raise ServerFailed(f"another program answers in place of {self.adapter.name}: {self.last_words()}")
        return waited

    def wait_word(self, word: bytes, stop: Callable[[], bool]) -> float:
        """Wait until it has said this since its start, in its log. Seconds waited; ServerFailed as `wait_ready`."""
        looks = self._programs[-1].says(word)
        waited = self._wait(
            lambda: None if next(looks) else f"it did not say {word.decode(errors='replace')}", _WORD_PAUSE_S, stop
        )
        if not self.running():
            raise self._ended_early()
        return waited

    def _wait(
        self, ask: Callable[[], str | None], pause_s: float, stop: Callable[[], bool], timeout_s: float | None = None
    ) -> float:
        began = time.monotonic()
        longest = self.adapter.ready_within_s or READY_TIMEOUT_S
        limit = longest if timeout_s is None else min(longest, timeout_s)
        problem: str | None = "not asked yet"
        while problem is not None:
            if stop():
                raise Stopped
            if not self.running():
                raise self._ended_early()
            if time.monotonic() - began > limit:
                raise ServerFailed(
                    f"{self.adapter.name} does not answer within {limit:g} s ({problem}): {self.last_words()}"
                )
            problem = ask()
            if problem is not None:
                time.sleep(pause_s)
        return time.monotonic() - began

    def _ended_early(self) -> ServerFailed:
        return ServerFailed(f"{self.adapter.name} ended before it was ready: {self.last_words()}")

    @property
    def log(self) -> Path:
        """Its log file."""
        return self._log

    @property
    def pid(self) -> int:
        """Process id of the program; 0 before it is started."""
        return self._programs[-1].program.pid if self._programs else 0

    @property
    def backend_pids(self) -> dict[str, int]:
        """Process ids of the backends, by the role under which their resources are recorded: ``backend``, ..."""
        pids = [program.program.pid for program in self._programs[:-1]]
        return {f"backend{number}" if number else "backend": pid for number, pid in enumerate(pids)}

    def running(self) -> bool:
        """Whether the program runs, and every backend."""
        return bool(self._programs) and not any(program.ended() for program in self._programs)

    def cpu_ns(self) -> int | None:
        """CPU time of the program without backends so far (user and system, all threads), None when it is gone."""
        try:
            return linux.process_cpu_ns(self.pid)
        except ProcessLookupError:
            return None

    def describe_end(self) -> str:
        """How the program ended, or its backend, for the trial in which it did."""
        program = self._ended()
        if program is None:
            return f"server {self.adapter.name} still runs"
        code = program.program.exit_code or 0
        if code == -signal.SIGXFSZ:
            return f"{program.name} was ended because it wrote a file of more than {FILE_LIMIT_BYTES} octets"
        return f"{program.name} " + (f"was killed by signal {-code}" if code < 0 else f"ended with code {code}")

    def last_words(self) -> str:
        """The end of its log since it was started, on one line; of its backend's when that ended."""
        program = self._ended() or self._programs[-1]
        return program.last_words()

    def _ended(self) -> _Program | None:
        """The first that ended: a backend before the server."""
        return next((program for program in self._programs if program.ended()), None)

    def facts(self) -> Server:
        """What is recorded of it in every trial, and what its adapter declares, which may come from outside."""
        known: Server = {
            "name": self.adapter.name,
            "version": self.version,
            "restarts": self.restarts,
            "renewals": self.renewals,
            "tls_version": self.options.tls_version,
            "proxy": self.adapter.is_proxy,
            **self._backend_facts(),
        }
        return cast(Server, {**known, **self.adapter.declared(self.options)})

    def _backend_facts(self) -> Server:
        if not self._backends:
            return {}
        return {
            "backend": ", ".join(f"{backend.name} {backend.version}" for backend in self._backends),
            "backend_link": ", ".join(backend.link for backend in self._backends),
        }

    def close(self) -> None:
        """End for good: what `end` does, and its control group is removed."""
        self.end()
        if self.cpu_share is not None:
            self.cpu_share.close()

    def end(self, grace_s: float = GRACE_S) -> None:
        """End the programs, the server before its backends: politely first, and killed after the grace."""
        for program in reversed(self._programs):
            program.program.stop(grace_s)
            if self.site.qlog is not None:
                program.program.get(self.site.qlog)
