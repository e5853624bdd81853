"""A Python client that is measured: h11 and h2 over ssl, aioquic, on asyncio.

``python client.py JOB.json`` does the job and writes a row for each request to standard output when all have
ended; see trifecta/implementations/clients/lines.py. With ``--start`` behind it nothing is requested: it ends when it
could begin. Exit codes: 0 done, 2 bad input, 3 cannot.
"""

from __future__ import annotations

import asyncio
import resource
import signal
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from exchange import Connection, Exchange, Handshake
from failures import Failed
from rows import Job, Row, now_ns, write_rows

_APART_S = 0.01  # between attempts: a dead path must not spin
_DEAD_PATH_FAILURES = 20
_DRAINING_S = 5.0

Opener = Callable[[Handshake], Awaitable[Connection]]


def opener(job: Job) -> Opener:
    """How connections are opened; only what the job needs is imported."""
    if job.protocol == "h3":
        from quic import open_quic, quic_configuration

        return partial(open_quic, job, quic_configuration(job))
    from tcp import open_tcp, tls_context

    if job.protocol == "h1":
        from http1 import Http1

        return partial(open_tcp, job, tls_context(job), Http1)
    from http2 import Http2

    return partial(open_tcp, job, tls_context(job), Http2)


class Slot:
    """The place of a connection that is used again and again, and replaced when it broke."""

    def __init__(self) -> None:
        """Nothing is open yet."""
        self.lock = asyncio.Lock()
        self.connection: Connection | None = None
        self.first_failure: tuple[Handshake, str] | None = None
        """The first attempt's, until a row tells it."""


class Run:
    """One job on its way: a closed loop of connections x streams."""

    def __init__(self, job: Job, open_connection: Opener) -> None:
        """Nothing is sent before ``do``."""
        self.job = job
        self.rows: dict[int, Row] = {}
        self.opened = self.lost_idle = 0
        self.ended = "requests"
        self._open_connection = open_connection
        self._attempts = self._started = self._failures = 0
        self._responded = False
        self._stopped: str | None = None  # the error class of what is under way then
        self._tasks: list[asyncio.Task[None]] = []

    async def do(self) -> int:
        """Make all requests; the CPU time in ns that they took."""
        job, loop = self.job, asyncio.get_running_loop()
        loop.call_at(job.deadline_ns / 1e9, self.stop, "total_timeout", "timeout")
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop, "signal", "interrupted")
        before = _cpu_ns()
        slots = [Slot() for _ in range(job.connections)]
        if job.connection_mode == "reused":
            # Requests begin when every connection is open or has failed once.
            await self._all([self._prepare(slot) for slot in slots])
            await self._all([self._reuse(slot) for _ in range(job.streams) for slot in slots])
        else:
            await self._all([self._renew() for _ in range(job.connections * job.streams)])
        used = _cpu_ns() - before
        for slot in slots:
            if slot.connection is not None:
                slot.connection.close()
        await asyncio.sleep(0)  # what closing has to say leaves
        draining = asyncio.all_tasks() - {asyncio.current_task()}
        if job.qlog_dir and draining:  # only then aioquic writes the log of a connection
            await asyncio.wait(draining, timeout=_DRAINING_S)
        return used

    async def _all(self, work: list[Awaitable[None]]) -> None:
        self._tasks = [asyncio.ensure_future(one) for one in work]
        if self._stopped is not None:
            self._cancel()
        await asyncio.gather(*self._tasks)

    def stop(self, ended: str, error: str) -> None:
        """End now; what is under way has failed with ``error``."""
        if self._stopped is None:
            self.ended, self._stopped = ended, error
            self._cancel()

    def _cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _may_start(self) -> bool:
        return self._started < self.job.requests and self._stopped is None and self.ended == "requests"

    def _next(self) -> int:
        self._started += 1
        return self._started - 1

    def _keep(self, ordinal: int, row: Row) -> None:
        self.rows[ordinal] = row
        if row.first_byte_ns is not None:
            self._responded = True
        elif row.error is not None:
            self._failures += 1
            if self._failures >= _DEAD_PATH_FAILURES and not self._responded and self._started < self.job.requests:
                self.ended = "no_response"

    def _keep_failure(self, ordinal: int, handshake: Handshake, error: str) -> None:
        row = Row(started_ns=handshake.connect_start_ns, error=error)
        handshake.describe(row)
        self._keep(ordinal, row)

    async def _open(self, handshake: Handshake) -> Connection:
        """Failed when it cannot be opened, or not in time."""
        try:
            async with asyncio.timeout(self.job.connect_timeout_ns / 1e9):
                connection = await self._open_connection(handshake)
        except TimeoutError:
            raise Failed("connect_timeout") from None
        self.opened += 1
        return connection

    async def _pause(self) -> None:
        try:
            await asyncio.sleep(_APART_S)
        except asyncio.CancelledError:
            if self._stopped is None:
                raise

    def _handshake(self) -> Handshake:
        self._attempts += 1
        return Handshake(self._attempts - 1)

    async def _prepare(self, slot: Slot) -> None:
        handshake = self._handshake()
        try:
            slot.connection = await self._open(handshake)
        except Failed as failure:
            slot.first_failure = handshake, failure.error
        except asyncio.CancelledError:
            slot.first_failure = handshake, str(self._stopped)

    async def _take(self, slot: Slot) -> Connection | tuple[Handshake, str]:
        """The slot's connection, opened anew if need be; or the attempt that failed, and why. One tries at a time."""
        async with slot.lock:
            if slot.first_failure is not None:
                failure, slot.first_failure = slot.first_failure, None
                await self._pause()
                return failure
            if slot.connection is not None and slot.connection.lost is not None:
                self.lost_idle += 1
                self._retire(slot, slot.connection)
            if slot.connection is None:
                handshake = self._handshake()
                try:
                    slot.connection = await self._open(handshake)
                except Failed as error:
                    await self._pause()
                    return handshake, error.error
            slot.connection.users += 1
            return slot.connection

    def _retire(self, slot: Slot, connection: Connection) -> None:
        """Take a connection out of use; it is closed when nobody has a request on it."""
        if slot.connection is connection:
            slot.connection = None
        if connection.users == 0:
            connection.close()

    def _give_back(self, slot: Slot, connection: Connection) -> None:
        connection.users -= 1
        if connection.lost is not None or slot.connection is not connection:
            self._retire(slot, connection)

    async def _reuse(self, slot: Slot) -> None:
        """One of the streams of a slot's connection: a request after the other."""
        unsent: int | None = None
        while unsent is not None or self._may_start():
            try:
                taken = await self._take(slot)
            except asyncio.CancelledError:
                if unsent is not None:
                    self._keep_failure(unsent, self._handshake(), str(self._stopped))
                return
            if unsent is None and not self._may_start():
                self.lost_idle += isinstance(taken, tuple)  # no request needed it
                if isinstance(taken, Connection):
                    self._give_back(slot, taken)
                return
            ordinal = self._next() if unsent is None else unsent
            if isinstance(taken, tuple):
                self._keep_failure(ordinal, *taken)
                unsent = None
                continue
            row = Row(started_ns=now_ns())
            sent = await self._exchange(taken, row)
            self._give_back(slot, taken)
            if not sent and unsent is None and self._stopped is None:
                # The connection ended before anything of the request was sent: it was lost idle, and the request goes
                # on another, once.
                self.lost_idle += 1
                unsent = ordinal
                continue
            unsent = None
            taken.handshake.describe(row)
            self._keep(ordinal, row)

    async def _renew(self) -> None:
        """A connection for every request."""
        while self._may_start():
            ordinal, handshake = self._next(), self._handshake()
            try:
                connection = await self._open(handshake)
            except Failed as failure:
                self._keep_failure(ordinal, handshake, failure.error)
                await self._pause()
                continue
            except asyncio.CancelledError:
                self._keep_failure(ordinal, handshake, str(self._stopped))
                return
            row = Row(started_ns=handshake.connect_start_ns)
            await self._exchange(connection, row)
            connection.close()
            handshake.describe(row)
            self._keep(ordinal, row)

    async def _exchange(self, connection: Connection, row: Row) -> bool:
        """Make one request; whether something of it was sent."""
        exchange = Exchange(self.job, row)
        try:
            async with asyncio.timeout(self.job.request_timeout_ns / 1e9):
                await connection.exchange(exchange)
        except Failed as failure:
            row.error = failure.error
        except TimeoutError:
            row.error = "timeout"
        except asyncio.CancelledError:
            row.error = str(self._stopped)
        if row.error is not None and row.error not in ("status", "length", "content"):
            row.done_ns = None
        return exchange.sent


def _cpu_ns() -> int:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return round((usage.ru_utime + usage.ru_stime) * 1e9)


def main(arguments: list[str]) -> int:
    """The program."""
    if not arguments or arguments[1:] not in ([], ["--start"]):
        print("error: one argument is needed: the file of the job; and perhaps --start", file=sys.stderr)
        return 2
    try:
        job = Job.read(Path(arguments[0]))
        open_connection = opener(job)
    except (OSError, ValueError, TypeError, KeyError) as error:
        print(f"error: {arguments[0]}: {error}", file=sys.stderr)
        return 2
    if arguments[1:]:
        return 0
    run = Run(job, open_connection)
    cpu_ns = asyncio.run(run.do())
    connections = {"connections_opened": run.opened, "connections_lost_idle": run.lost_idle}
    try:
        write_rows(run.rows, {"ended": run.ended, **connections, "cpu_ns": cpu_ns})
    except OSError as error:
        print(f"error: standard output: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
