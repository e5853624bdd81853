"""Runs a foreign client in the place of the engine's load: ``python -m trifecta.implementations.clients.driver NAME``.

It speaks the contract of docs/architecture.md, section 1.1: the load's configuration comes on standard input as one
line of JSON, ``{"ready": ...}`` (with the process id of the client) and ``{"summary": ...}`` go to standard output,
diagnostics to standard error. It ends, with everything it started, when standard input is closed, on SIGTERM or SIGINT,
or when its parent dies. Exit codes: 0 done, 1 the client failed as a whole or is not understood, 2 bad input, 3 cannot,
127 the client is missing or cannot do this.

The program itself is one child for all requests of a trial. Nothing runs beside it: its output is read when it has
ended. What is not told by it is null in rows and summary, never guessed.
"""

from __future__ import annotations

import fcntl
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from trifecta.contract.load import ClientConfig, ClientLoaded, ClientReady, Ended, LoadSummary, StartCost
from trifecta.contract.sample import SampleRow
from trifecta.implementations.client import ClientAdapter, Job, Output
from trifecta.implementations.clients import jobs, records
from trifecta.implementations.clients.start_cost import start_cpu_ns
from trifecta.implementations.driving import EXIT_FAILED, Failure, awaited, say, wake_descriptor
from trifecta.implementations.registry import CLIENTS
from trifecta.implementations.server import Command, Unsupported
from trifecta.lab import linux
from trifecta.lab.engine import EXIT_BAD_INPUT, EXIT_CANNOT, EXIT_UNSUPPORTED
from trifecta.store import parquet

_STATE_PREFIX = "trifecta-client-"
_WORDS_BYTES = 1500  # of the client's own last words that go to the log
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - mkdtemp makes a folder of its own there


@dataclass(frozen=True)
class Ending:
    """How the child ended, and what it used."""

    output: Output
    why: Ended
    """``requests`` (by itself), ``total_timeout``, ``signal``, ``stdin``, ``crashed``."""
    cpu_user_ns: int
    cpu_system_ns: int


def main(arguments: list[str]) -> int:
    """The program; ``arguments`` is the name of the client."""
    linux.set_parent_death_signal(signal.SIGKILL)
    linux.become_subreaper()
    try:
        if len(arguments) != 1 or arguments[0] not in CLIENTS:
            raise Failure(EXIT_BAD_INPUT, f"client: no adapter {' '.join(arguments)!r}; see `trifecta implementations`")
        adapter = CLIENTS[arguments[0]]
        parquet.warm_up()  # what is imported now does not disturb the client later
        say("loaded", ClientLoaded(client=adapter.name), sys.stdout)
        line = sys.stdin.buffer.readline()
        if line:
            run(adapter, line, sys.stdout)
    except Failure as failure:
        print(f"error: {failure}", file=sys.stderr, flush=True)
        return failure.code
    return 0


def run(adapter: ClientAdapter, line: bytes, stdout: IO[str]) -> None:
    """Do the job that a line of configuration asks for and say the summary. Failure when there is none to say."""
    with _state() as state:
        try:
            config = jobs.read(line, adapter)
            job = jobs.job_of(config, state)
            if config.only_start:
                say("summary", StartCost(start_cpu_ns=start_cpu_ns(adapter, job)), stdout)
                return
            command = adapter.command(job)
        except ValueError as error:
            raise Failure(EXIT_BAD_INPUT, str(error)) from error
        except Unsupported as error:
            raise Failure(EXIT_UNSUPPORTED, str(error)) from error
        except OSError as error:
            raise Failure(EXIT_FAILED, f"client {adapter.name}: {error}") from error
        ending = _carry_out(adapter.name, command, job, stdout)
        try:
            rows = list(adapter.rows(job, ending.output))
            completed = records.complete(
                config.trial, job, ending.output, rows, killed=ending.why in ("total_timeout", "signal", "stdin")
            )
            samples = records.table(completed)
        except (ValueError, KeyError, TypeError, UnicodeDecodeError, OSError) as error:
            words = _last_words(ending.output.stderr)
            what = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
            raise Failure(
                EXIT_FAILED,
                f"client {adapter.name}: its output is not understood ({what}); {_ending_in_words(ending)}{words}",
            ) from error
        if len(rows) < job.requests or ending.output.code:
            missing = job.requests - len(rows)
            note = f"{config.trial}: {adapter.name} {_ending_in_words(ending)}, {missing} requests without a result"
            print(note + _last_words(ending.output.stderr), file=sys.stderr, flush=True)
        try:
            samples.write(Path(str(config.samples_file)))
        except OSError as error:
            raise Failure(EXIT_CANNOT, f"samples_file: {config.samples_file}: {error.strerror}") from error
        document = summary(adapter, config, job, ending, completed)
    # Whoever reads it may kill this process at once: nothing is left to tidy up by then.
    say("summary", document, stdout)


def summary(
    adapter: ClientAdapter, config: ClientConfig, job: Job, ending: Ending, rows: Sequence[SampleRow]
) -> LoadSummary:
    """The summary of docs/architecture.md, section 1.1, as far as it is known from outside the program."""
    measured = [row for row in rows if not row["warmup"]]
    finished = [(row["started_ns"], done_ns) for row in rows if (done_ns := row.get("done_ns")) is not None]
    ends = [done_ns for row in measured if (done_ns := row.get("done_ns")) is not None]
    began, ended = ending.output.began_ns, ending.output.ended_ns
    return LoadSummary(
        trial=config.trial,
        client=adapter.name,
        declared={**adapter.declared(), **({"tcp_nodelay": job.tcp_nodelay} if adapter.sets_nodelay else {})},
        content_compared=adapter.compares_content(job),
        samples=len(measured),
        errors=sum(row.get("error") is not None for row in measured),
        ended=ending.why,
        exit_code=ending.output.code,
        started_ns=min((started_ns for started_ns, _ in finished), default=began),
        ended_ns=max((done_ns for _, done_ns in finished), default=ended),
        program_started_ns=began,
        program_ended_ns=ended,
        measured_ns=max(ends) - min(row["started_ns"] for row in measured) if ends else 0,
        wall_ns=ended - began,
        cpu_user_ns=ending.cpu_user_ns,
        cpu_system_ns=ending.cpu_system_ns,
        max_rss_bytes=None,  # what getrusage(2) tells holds the memory of this process before execve(2)
        busy_ratio=(ending.cpu_user_ns + ending.cpu_system_ns) / max(1, ended - began),
        connections_opened=_connections(rows),
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


def _connections(rows: Sequence[SampleRow]) -> int | None:
    """Connections that requests were made on, where the client distinguishes them."""
    connections = [row["connection"] for row in rows if row.get("connection") is not None]
    return len(set(connections)) if connections else None


def _carry_out(name: str, command: Command, job: Job, output: IO[str]) -> Ending:
    """Start the program, wait for its end, and end it when its time is up or nobody wants it any more."""
    paths = job.state / "stdout", job.state / "stderr"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with paths[0].open("wb") as stdout, paths[1].open("wb") as stderr, wake_descriptor() as wake:
        began_wall_ns, began_ns = time.time_ns(), time.monotonic_ns()
        try:
            child = subprocess.Popen(
                [os.fspath(argument) for argument in command.arguments],
                env={**os.environ, **command.environment},
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                cwd=job.state,
                start_new_session=True,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - the other threads are Arrow's, idle and without a lock
            )
        except OSError as error:
            raise Failure(
                EXIT_FAILED, f"client {name}: cannot start {command.arguments[0]}: {error.strerror}"
            ) from error
        say("ready", ClientReady(client=name, pid=child.pid), output)
        exited = os.pidfd_open(child.pid)
        why = awaited(exited, wake, began_ns + job.total_timeout_ns)
        ended_ns = time.monotonic_ns()
        os.close(exited)
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)  # its process id is not given away before it is waited for
        _, status = os.waitpid(child.pid, 0)
        child.returncode = code = os.waitstatus_to_exitcode(status)
        _end_orphans()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Ending(
        output=Output(code, *paths, began_ns=began_ns, began_wall_ns=began_wall_ns, ended_ns=ended_ns),
        why="crashed" if why == "requests" and code < 0 else why,
        cpu_user_ns=round((after.ru_utime - before.ru_utime) * 1e9),
        cpu_system_ns=round((after.ru_stime - before.ru_stime) * 1e9),
    )


def _die_with_parent() -> None:
    linux.set_parent_death_signal(signal.SIGKILL)


def _end_orphans() -> None:
    """End what the program left running: it was handed to this process (prctl(2), PR_SET_CHILD_SUBREAPER)."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    while True:
        for pid in children.read_text(encoding="ascii").split():
            os.kill(int(pid), signal.SIGKILL)
        try:
            os.wait()
        except ChildProcessError:
            return


@contextmanager
def _state() -> Iterator[Path]:
    """A folder in memory where there is one: a client must not wait for a disk to take its output."""
    base = _SHARED_MEMORY if os.access(_SHARED_MEMORY, os.W_OK | os.X_OK) else None
    base = base or Path(tempfile.gettempdir())
    gate = os.open(base, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(gate, fcntl.LOCK_EX)  # nobody sweeps between the next lines
        _sweep(base)
        path = Path(tempfile.mkdtemp(prefix=_STATE_PREFIX, dir=base))
        held = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        fcntl.flock(held, fcntl.LOCK_EX)
    finally:
        os.close(gate)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(held)


def _sweep(base: Path) -> None:
    """Remove what drivers that were killed have left: a folder of this user that no living driver holds."""
    for path in base.glob(f"{_STATE_PREFIX}*"):
        with suppress(OSError):
            held = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                if os.fstat(held).st_uid == os.getuid():
                    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(held)


def _ending_in_words(ending: Ending) -> str:
    code = ending.output.code
    if ending.why == "total_timeout":
        return "was ended after its total timeout"
    if ending.why in ("signal", "stdin"):
        return "was asked to end early"
    return f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"


def _last_words(stderr: Path) -> str:
    """What the program wrote to standard error at the end, on one line."""
    with stderr.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _WORDS_BYTES))
        words = " ".join(file.read().decode(errors="replace").split())
    return f": {words}" if words else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
