"""A connection to a host, for threads that wait: run a command, or begin one and talk with it."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trifecta.design import extras
from trifecta.design.errors import CannotError
from trifecta.design.machine import Machine
from trifecta.lab.ssh.callbacks import Callbacks
from trifecta.lab.ssh.loop import the_loop

if TYPE_CHECKING:
    import asyncssh

_CLOSE_S = 5.0
_SLACK_S = 5.0  # beyond the time limits that asyncssh keeps itself


class HostLost(CannotError):
    """The connection to a host ended, or a command there did not: what was under way there is lost."""


@dataclass(frozen=True)
class CommandResult:
    """A command that has ended. ``code`` is negative for a signal."""

    code: int
    output: bytes
    diagnostics: str

    @property
    def failure(self) -> str:
        """Its diagnostics on one line, or its exit code."""
        return " ".join(self.diagnostics.split())[-300:] or f"exit code {self.code}"


def shell(script: str, *arguments: str) -> str:
    """The command line of a script for ``sh`` with arguments, whatever the shell of the user is."""
    return "exec sh -c " + " ".join(map(shlex.quote, (script, "sh", *arguments)))


class RemoteCommand:
    """A command at the other end, and what is said to it. Its methods are for any thread and return at once.

    What is said before it has begun waits for that.
    """

    def __init__(self, connection: asyncssh.SSHClientConnection, command: str, ears: Callbacks) -> None:
        """Begin it; ``ears`` hear what it says, and once that it has ended, also when it cannot be begun."""
        self._ears = ears
        self._channel: asyncssh.SSHClientChannel[bytes] | None = None
        self._waiting: list[Callable[[asyncssh.SSHClientChannel[bytes]], object]] = []
        the_loop().begin(self._begin(connection, command))

    def say(self, octets: bytes) -> None:
        """Write to its standard input."""
        self._do(lambda channel: channel.write(octets))

    def end_input(self) -> None:
        """Close its standard input."""
        self._do(lambda channel: channel.write_eof())

    def drop(self) -> None:
        """Close the channel: whatever it still says is not heard."""
        self._do(lambda channel: channel.abort())

    async def _begin(self, connection: asyncssh.SSHClientConnection, command: str) -> None:
        from trifecta.lab.ssh import wire

        try:
            channel = await wire.begin(connection, command, self._ears)
        except wire.Failure as error:
            self._ears.ended(None, wire.words(error))
            return
        self._channel = channel
        for action in self._waiting:
            self._act(action)
        self._waiting.clear()

    def _do(self, action: Callable[[asyncssh.SSHClientChannel[bytes]], object]) -> None:
        the_loop().soon(lambda: self._act(action))

    def _act(self, action: Callable[[asyncssh.SSHClientChannel[bytes]], object]) -> None:
        """In the loop's thread. A channel that is closed takes nothing: its ears have heard that."""
        if self._channel is None:
            self._waiting.append(action)
            return
        with suppress(OSError):
            action(self._channel)


class Connection:
    """A connection of SSH, made with the user's keys, agent and configuration; the host's key is verified."""

    def __init__(self, machine: Machine) -> None:
        """Connect; CannotError, in one line with the remedy, when that is refused or takes too long."""
        extras.load("asyncssh")
        from trifecta.lab.ssh import wire

        self.machine = machine
        self._reason: str | None = None
        try:
            limit_s = wire.CONNECT_S + wire.LOGIN_S + _SLACK_S
            self._connection = the_loop().wait(wire.connect(machine, self._lost), limit_s)
        except wire.Failure as error:
            raise CannotError(wire.refusal(machine, error)) from error

    def _lost(self, reason: str) -> None:
        self._reason = self._reason or reason

    @property
    def lost(self) -> str | None:
        """Why it has ended, in a few words; None while it stands."""
        return self._reason

    def error(self, reason: str) -> HostLost:
        """The error of who needed the connection, or a command on it, and has it no more."""
        why = f"the connection ended: {self._reason}" if self._reason is not None else reason
        return HostLost(f"host {self.machine.at}: {why}; try `{self.machine.command}`")

    def begin(self, command: str, ears: Callbacks) -> RemoteCommand:
        """Begin a command and talk with it; it is heard from at once."""
        return RemoteCommand(self._connection, command, ears)

    def run(self, script: str, *arguments: str, given: bytes = b"", timeout_s: float) -> CommandResult:
        """Run a script for ``sh`` to its end, with this on its standard input. HostLost when there is none in time."""
        output: list[bytes] = []
        diagnostics: list[bytes] = []
        ended = threading.Event()
        ending: list[tuple[int | None, str]] = []

        def end(code: int | None, reason: str) -> None:
            ending.append((code, reason))
            ended.set()

        talk = self.begin(shell(script, *arguments), Callbacks(output.append, diagnostics.append, end))
        if given:
            talk.say(given)
        talk.end_input()
        if not ended.wait(timeout_s):
            talk.drop()
            raise self.error(f"no end of a command within {timeout_s:g} s")
        code, reason = ending[0]
        if code is None:  # asyncssh raises nothing: a connection that went leaves a command without an exit code
            raise self.error(reason or "a command ended without an exit code")
        return CommandResult(code, b"".join(output), b"".join(diagnostics).decode(errors="replace"))

    def close(self) -> None:
        """End it, and everything on it."""
        from trifecta.lab.ssh import wire

        self._lost("it was closed")
        try:
            the_loop().wait(wire.close(self._connection), _CLOSE_S)
        except wire.Failure:
            # It does not answer any more; the other end notices by itself (`trifecta.lab.ssh.keeper`).
            the_loop().soon(self._connection.abort)
