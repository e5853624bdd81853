"""A host of the lab: a network namespace in which programs are started."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Protocol

from trifecta.contract.values import JsonObject
from trifecta.design.errors import CannotError
from trifecta.design.ip import IPV4, IPV6, version_of
from trifecta.lab import linux

NICE = 19  # below a tenth of the core for who has it, against a program that is not nice (sched(7))
_FAMILIES = {IPV4: socket.AF_INET, IPV6: socket.AF_INET6}
_NAME_BYTES = 16  # TCP_CA_NAME_MAX, linux/tcp.h


class Tracking(Protocol):
    """Connection tracking of a host, as `trifecta.lab.conntrack` does it."""

    @property
    def table_size(self) -> int | None:
        """How many connections are let in; None: as many as the kernel's own table has room for."""

    def refused(self) -> int:
        """Packets of new connections that found no room; 0 without a size."""


class Host:
    """A network namespace that lives as long as this object (and no longer than the process that holds it)."""

    def __init__(self, name: str, home: int) -> None:
        """Make the namespace; ``home`` is a descriptor of the namespace the caller lives in."""
        self.name = name
        self.tracking: Tracking | None = None
        """Connection tracking, where `trifecta.lab.conntrack.track` switched it on."""
        self._home = home
        _link_cpus()
        linux.unshare(linux.CLONE_NEWNET)
        try:
            self.descriptor = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        finally:
            linux.setns(home, linux.CLONE_NEWNET)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Work inside this host's network for a moment (sockets, /proc/net, /proc/sys/net)."""
        with linux.network_namespace(self.descriptor, self._home):
            yield

    def popen(
        self,
        command: Sequence[str | Path],
        *,
        cpus: frozenset[int] | None = None,
        environment: Mapping[str, str] | None = None,
        stdin: IO[bytes] | int | None = None,
        stdout: IO[bytes] | int | None = None,
        stderr: IO[bytes] | int | None = None,
        yielding: bool = True,
    ) -> subprocess.Popen[bytes]:
        """Start a program in this host, on ``cpus`` when given; ``stdin``, ``stdout``, ``stderr`` as in Popen.

        For `lab` itself: above it a program is started at a place (`trifecta.lab.place`).

        The program gets its own session, so that a terminal's Ctrl-C does not reach it, or its own process group in
        that of the run: see `yields`. ``yielding`` programs let the link go first where they share a core with it.
        CannotError when it cannot be executed.
        """
        arguments = [os.fspath(part) for part in command]
        before = os.sched_getaffinity(0) if cpus else None
        together = self._yields(cpus)
        with self.inside():
            try:
                if cpus:
                    os.sched_setaffinity(0, cpus)  # inherited by the child, so that every thread of it starts there
                process = subprocess.Popen(
                    arguments,
                    start_new_session=not together,
                    process_group=0 if together else None,
                    env=None if environment is None else {**os.environ, **environment},
                    stdin=stdin,
                    stdout=stdout,
                    stderr=stderr,
                )
            except OSError as error:
                raise CannotError(f"cannot start {arguments[0]}: {error.strerror}; is it installed?") from error
            finally:
                if before:
                    os.sched_setaffinity(0, before)
        if together and yielding:
            with suppress(ProcessLookupError):  # it has ended already
                os.setpriority(os.PRIO_PGRP, process.pid, NICE)  # all of its threads, those that it has by now too
        return process

    def _yields(self, cpus: frozenset[int] | None) -> bool:
        return yields(cpus)

    def read(self, path: str) -> str:
        """Text of a file as this host sees it (for /proc/net and /proc/sys/net)."""
        with self.inside():
            return Path(path).read_text(encoding="ascii", errors="replace")

    def congestion_control(self, address: str) -> str:
        """Which one the kernel gives a new TCP connection of this host to an address of its own."""
        with (
            self.inside(),
            socket.create_server((address, 0), family=_FAMILIES[version_of(address)]) as there,
            socket.create_connection(there.getsockname()[:2], timeout=1) as here,
        ):
            name = here.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, _NAME_BYTES)
        return name.rstrip(b"\0").decode("ascii")

    def close(self) -> None:
        """Let go of the namespace; the kernel removes it with its last process."""
        with suppress(OSError):
            os.close(self.descriptor)


class LocalHost(Host):
    """This machine in its own network, without a lab: nothing is made, and no privileges are needed."""

    def __init__(self) -> None:
        """Nothing to prepare."""
        self.name = "here"
        self.tracking = None

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Where the caller is anyway."""
        yield

    def _yields(self, cpus: frozenset[int] | None) -> bool:
        return False  # there is no link

    def close(self) -> None:
        """Nothing to let go of."""


@contextmanager
def keeping_off(cpus: frozenset[int] | None) -> Iterator[None]:
    """Keep the calling thread off these CPUs meanwhile, where there are others: its work must not delay a client.

    What else this process runs, and what it starts meanwhile, inherits that.
    """
    before = os.sched_getaffinity(0)
    others = before - (cpus or frozenset())
    if cpus is None or not others:
        yield
        return
    os.sched_setaffinity(0, others)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@cache
def _link_is_in_time() -> bool:
    return linux.may_run_in_real_time()


@cache
def _link_cpus() -> frozenset[int] | None:
    """As the first host finds it: later this thread may keep off some of them."""
    return pin_table()["link"]


def yields(cpus: frozenset[int] | None) -> bool:
    """Whether programs on ``cpus`` (None: on any) share a core with a link out of real time: niceness 19, but the link.

    There the scheduler would let every packet wait for the server's turn to end, and a protocol of many connections
    makes it wait most often: HTTP/1.1 alone lost its trials to the check `path`. An ordinary user may not raise the
    link, but may lower what runs beside it; all servers alike. They are in one session with the link, because between
    sessions niceness does not count (sched_autogroup).
    """
    link = _link_cpus()
    return (cpus is None or link is None or bool(cpus & link)) and not _link_is_in_time()


def pin_table(cpus: frozenset[int] | None = None) -> dict[str, frozenset[int] | None]:
    """On which CPUs each role runs: measured programs on cores of their own where there are two or more.

    The link has the third core when there is one. With two it shares the server's: it is scheduled first, so on the
    client's core it would take the time stamps along, and floating between the two would make equal runs differ.
    """
    available = sorted(cpus if cpus is not None else os.sched_getaffinity(0))
    if len(available) < 2:
        return {"server": None, "client": None, "link": None, "probe": None}
    server, client, *rest = available
    return {
        "server": frozenset({server}),
        "client": frozenset({client}),
        "link": frozenset({rest[0]}) if rest else frozenset({server}),
        "probe": None,
    }


def browser_pin_table(cpus: frozenset[int] | None = None) -> dict[str, frozenset[int] | None]:
    """On which CPUs each role runs beside a browser, which is many processes: it has every core that is left over.

    With two cores that is one, as for other clients: on both it would take turns with its own server, and with the
    link, which is scheduled first.
    """
    available = sorted(cpus if cpus is not None else os.sched_getaffinity(0))
    table = pin_table(frozenset(available))
    taken = frozenset().union(*(table[role] or frozenset() for role in ("server", "link")))
    rest = frozenset(available) - taken
    return table | {"client": rest} if len(available) > 3 else table


def describe_pins(table: Mapping[str, frozenset[int] | None]) -> JsonObject:
    """The pin table as it is recorded in ``run.json``."""
    return {role: sorted(cpus) if cpus else "any" for role, cpus in table.items()}
