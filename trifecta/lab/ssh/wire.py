"""What asyncssh is asked, in its event loop. No other module imports it: a plain install has none of it."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import asyncssh

from trifecta.design.machine import Machine
from trifecta.lab.ssh.callbacks import Callbacks

CONNECT_S, LOGIN_S = 10, 20
# A link that is down for less than this is waited for: TCP sends again what was lost.
ALIVE_EVERY_S, ALIVE_MISSED = 3, 3


class Unverified(Exception):
    """The configuration has no file of known hosts, which asyncssh takes for a wish not to verify keys."""


Failure = (OSError, asyncssh.Error, ValueError, Unverified)
"""What can go wrong with a connection, TimeoutError among it; a ValueError is of the configuration, or of a key."""


class _Client(asyncssh.SSHClient):
    def __init__(self, lost: Callable[[str], None]) -> None:
        self._lost = lost

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost("it was closed" if exc is None else words(exc))


class _Session(asyncssh.SSHClientSession[bytes]):
    def __init__(self, ears: Callbacks) -> None:
        self._ears = ears
        self._code: int | None = None

    def data_received(self, data: bytes, datatype: int | None) -> None:
        if datatype == asyncssh.EXTENDED_DATA_STDERR:
            self._ears.diagnostics(data)
        else:
            self._ears.output(data)

    def eof_received(self) -> bool:
        return True  # what it is told may still count: the channel is closed when it has ended

    def exit_status_received(self, status: int) -> None:
        self._code = status

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:
        self._code = -_number(signal)

    def connection_lost(self, exc: Exception | None) -> None:
        self._ears.ended(self._code, "" if exc is None else words(exc))


def _number(name: str) -> int:
    """The number of a signal by its name without SIG (RFC 4254, 6.10); SIGKILL's for one that is not known here."""
    number = signal.Signals.__members__.get(f"SIG{name}")
    return int(signal.SIGKILL if number is None else number)


async def connect(machine: Machine, lost: Callable[[str], None]) -> asyncssh.SSHClientConnection:
    """A connection as ``ssh`` would make it: with the user's keys, agent, configuration and known hosts.

    ``lost`` is called when it has ended, with the reason. One of `Failure` when there is none.
    """
    named: dict[str, Any] = {"username": machine.user, "port": machine.port}  # what is not given is the configuration's
    given = {name: value for name, value in named.items() if value is not None}
    if (await asyncssh.SSHClientConnectionOptions.construct(host=machine.host, **given)).known_hosts is None:
        raise Unverified("UserKnownHostsFile is none")
    connection, _ = await asyncssh.create_connection(
        lambda: _Client(lost),
        machine.host,
        connect_timeout=CONNECT_S,
        login_timeout=LOGIN_S,
        keepalive_interval=ALIVE_EVERY_S,
        keepalive_count_max=ALIVE_MISSED,
        agent_forwarding=False,
        x11_forwarding=False,
        **given,
    )
    return connection


async def begin(
    connection: asyncssh.SSHClientConnection, command: str, ears: Callbacks
) -> asyncssh.SSHClientChannel[bytes]:
    """Start a command at the other end; it has no terminal, whatever the configuration says."""
    channel, _ = await connection.create_session(lambda: _Session(ears), command, encoding=None, request_pty=False)
    return channel


async def close(connection: asyncssh.SSHClientConnection) -> None:
    """End a connection, and everything on it."""
    connection.close()
    await connection.wait_closed()


def refusal(machine: Machine, error: BaseException) -> str:
    """Why there is no connection to a machine, in one line with the remedy."""
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        remedy = f"connect once with `{machine.command}` and compare its key"
        return f"host {machine.at}: its key is not verified ({words(error)}); {remedy}"
    if isinstance(error, Unverified):
        text = f"host {machine.at}: its key would not be verified ({words(error)} in your SSH configuration)"
        return f"{text}; name a file of known hosts for it"
    if isinstance(error, asyncssh.PermissionDenied):
        remedy = f"try `{machine.command}`; a key with a passphrase has to be in the agent (`ssh-add`)"
        return f"host {machine.at}: it accepts none of your keys ({words(error)}); {remedy}"
    if isinstance(error, ValueError):
        return f"host {machine.at}: your SSH configuration cannot be used ({words(error)}); correct it"
    return f"host {machine.at}: cannot be reached ({words(error)}); try `{machine.command}`"


def words(error: BaseException) -> str:
    """What an error says, on one line, without where this user's home is: a run keeps it, and runs are handed on."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    text = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(text).split()).replace(f"{Path.home()}/", "~/")
