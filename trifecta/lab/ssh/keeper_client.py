"""The keeper of one connection (`trifecta.lab.ssh.keeper`), as this end talks with it."""

from __future__ import annotations

import asyncio
import itertools
import queue
import threading
import time
from collections.abc import Sequence

from trifecta.design.errors import CannotError
from trifecta.lab.ssh import keeper
from trifecta.lab.ssh.callbacks import Callbacks
from trifecta.lab.ssh.connection import Connection, shell
from trifecta.lab.ssh.loop import the_loop

_READY_S = 20.0
_ANSWER_S = 10.0
_LEAVE_S = 10.0
_ENDED = "its keeper there has ended"
_SILENT = "it gave no answer in time"


class KeeperClient:
    """A working folder at the other end, as long as its keeper lives; to be left before the connection is closed."""

    def __init__(self, connection: Connection, left: Sequence[str]) -> None:
        """Have the folder made; ``left`` are those of connections that ended without a word, which it removes first.

        HostLost, or CannotError where there is no room for a folder.
        """
        self._connection = connection
        self._numbers = itertools.count(1)
        self._asking = threading.Lock()
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._rest = b""
        self._reason: str | None = None
        self._left = False
        command = shell(keeper.KEEPER, str(keeper.PATIENCE_S), *left)
        self._talk = connection.begin(command, Callbacks(self._hear, lambda _: None, self._hear_end))
        ends = self._first("connection").split()
        self.peer, self.address = (ends[0], ends[2]) if len(ends) == 4 else ("", "")
        """The IP addresses of both ends of the connection, as the other end knows them; empty where it does not say."""
        self.folder = self._first("ready")
        the_loop().begin(self._beat())

    @property
    def lost(self) -> str | None:
        """Why it cannot be talked with any more, in a few words; None while it can."""
        return self._connection.lost or self._reason

    def say(self, *words: str) -> None:
        """Tell it something to which there is no answer."""
        self._talk.say(" ".join(words).encode() + b"\n")

    def ask(self, word: str, *rest: str) -> dict[str, str]:
        """Its answer, a text for each file; HostLost when there is none."""
        number = str(next(self._numbers))
        lines_by_file: dict[str, list[str]] = {}
        name = ""
        with self._asking:
            if self.lost is not None:
                raise self._connection.error(self.lost)
            until = time.monotonic() + _ANSWER_S
            self.say(word, number, *rest)
            while (line := self._next(until)) != f"done {number}":
                if line is None:
                    self._reason = self._reason or _SILENT  # what it says later would be taken for another answer
                    raise self._connection.error(self._reason)
                if line.startswith("== "):
                    name = line.removeprefix("== ")
                    lines_by_file[name] = []
                elif name:
                    lines_by_file[name].append(line)
        return {name: "\n".join(lines) for name, lines in lines_by_file.items()}

    def leave(self) -> bool:
        """Have it end what runs there and remove the folder; whether it said that it has."""
        self._left = True
        if self.lost is not None:
            return False
        until = time.monotonic() + _LEAVE_S
        self._talk.end_input()
        while self._next(until) is not None:
            pass  # an answer that nobody waited for
        return self._reason == _ENDED

    async def _beat(self) -> None:
        """Tell it again and again that the connection stands; whatever else it is told does so, too."""
        while not self._left and self.lost is None:
            self.say("beat")
            await asyncio.sleep(keeper.BEAT_S)

    def _first(self, word: str) -> str:
        """The rest of the next line, which begins with this word."""
        line = self._next(time.monotonic() + _READY_S)
        if line is not None and line.partition(" ")[0] == word:
            return line.partition(" ")[2]
        if self._connection.lost is not None or self._reason is None:
            raise self._connection.error(_SILENT)
        at = self._connection.machine.at
        raise CannotError(f"host {at}: no working folder can be made there; give its user room in ${{TMPDIR:-/tmp}}")

    def _next(self, until_s: float) -> str | None:
        """Its next line; None at its end, or when it has said none until then, however much it says meanwhile."""
        left_s = until_s - time.monotonic()
        try:
            return self._lines.get(timeout=left_s) if left_s > 0 else None
        except queue.Empty:
            return None

    def _hear(self, octets: bytes) -> None:
        *lines, self._rest = (self._rest + octets).split(b"\n")
        for line in lines:
            self._lines.put(line.decode(errors="replace"))

    def _hear_end(self, code: int | None, reason: str) -> None:
        self._reason = self._reason or reason or (_SILENT if code is None else _ENDED)
        self._lines.put(None)
