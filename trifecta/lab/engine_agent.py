"""``python -m trifecta.lab.engine_agent``: starts programs of the engine where it runs, as its standard input says.

What it says and hears is `trifecta.lab.agent_messages`. When its input ends, it kills what runs, removes its folder and
ends.
"""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import BinaryIO

import msgspec

from trifecta.design.errors import CannotError
from trifecta.lab import agent_messages, staged_files
from trifecta.lab.engine import engine_versions, find_engine

_CHUNK = 1 << 16
EXIT_TERMINATED = 128 + signal.SIGTERM


class AgentState:
    """The programs that run here, and the files that they find."""

    def __init__(self, engine: Path, folder: Path, out: BinaryIO) -> None:
        """Nothing runs yet; ``out`` is where answers go, at once."""
        self._engine = engine
        self._folder = folder
        self._out = out
        self._orders = selectors.DefaultSelector()
        self._programs: dict[int, subprocess.Popen[bytes]] = {}
        self._open: dict[int, int] = {}
        """How many of a program's two outputs are open."""
        self._waiting: dict[int, bytearray] = {}
        """By program what it has not read yet: one that does not read holds up no other."""

    def say(self, answer: agent_messages.Answer) -> None:
        """Send an answer."""
        self._out.write(agent_messages.framed(answer))
        self._out.flush()

    def serve(self, descriptor: int) -> None:
        """Do what comes by this descriptor until its end."""
        frames = agent_messages.Frames()
        self._orders.register(descriptor, selectors.EVENT_READ, None)
        while True:
            for key, event in self._orders.select():
                if event & selectors.EVENT_WRITE or key.data is not None:
                    key.data()
                    continue
                octets = os.read(key.fd, _CHUNK)
                if not octets:
                    return
                for message in frames.feed(octets):
                    self._obey(msgspec.msgpack.decode(message, type=agent_messages.Order))

    def end(self) -> None:
        """Kill what runs."""
        for program in self._programs.values():
            program.kill()
            program.wait()

    def _at(self, path: str) -> Path:
        return self._folder / staged_files.below(Path(path))

    def _obey(self, order: agent_messages.Order) -> None:
        if isinstance(order, agent_messages.Begin):
            self._begin(order)
        elif isinstance(order, agent_messages.Tell):
            if order.program in self._programs:  # else it has ended, which is on its way
                self._waiting[order.program] += order.octets
                self._pass_on(order.program)
        elif isinstance(order, agent_messages.Signal):
            if order.program in self._programs:
                self._programs[order.program].send_signal(order.number)
        else:
            try:
                self.say(self._put(order) if isinstance(order, agent_messages.Put) else self._get(order))
            except (OSError, ValueError) as error:
                self.say(agent_messages.Refused(getattr(error, "strerror", None) or str(error)))

    def _put(self, order: agent_messages.Put) -> agent_messages.Done:
        if order.archive is not None:
            staged_files.unpack(order.archive, Path(order.path), self._at(order.path))
        else:
            self._at(order.path).mkdir(parents=True, exist_ok=True)
        return agent_messages.Done()

    def _get(self, order: agent_messages.Get) -> agent_messages.Done:
        at = self._at(order.path)
        archive = staged_files.pack(Path(order.path), at)
        if at.is_file():
            at.unlink()
        return agent_messages.Done(archive)

    def _begin(self, order: agent_messages.Begin) -> None:
        number, pipe = order.program, subprocess.PIPE
        try:
            program = subprocess.Popen(
                [self._engine, order.role, "-"], stdin=pipe, stdout=pipe, stderr=pipe, cwd=self._folder, bufsize=0
            )
        except OSError as error:
            message = f"the engine cannot be started: {error.strerror}\n".encode()
            self.say(agent_messages.Heard(number, message, diagnostics=True))
            self.say(agent_messages.Ended(number, 126))
            return
        self._programs[number] = program
        self._open[number] = 2
        self._waiting[number] = bytearray()
        assert program.stdin is not None
        os.set_blocking(program.stdin.fileno(), False)
        for stream, diagnostics in ((program.stdout, False), (program.stderr, True)):
            assert stream is not None
            hear = partial(self._hear, number, stream.fileno(), diagnostics)
            self._orders.register(stream, selectors.EVENT_READ, hear)

    def _pass_on(self, number: int) -> None:
        """As much of what waits for a program as it takes now; the rest when it takes more."""
        if number not in self._programs:  # its end was seen in the same look
            return
        pipe, waiting = self._programs[number].stdin, self._waiting[number]
        assert pipe is not None
        try:
            while waiting:
                del waiting[: os.write(pipe.fileno(), waiting[:_CHUNK])]
        except BlockingIOError:
            if pipe.fileno() not in self._orders.get_map():
                self._orders.register(pipe, selectors.EVENT_WRITE, partial(self._pass_on, number))
            return
        except BrokenPipeError:  # it reads no more: it ends, which is on its way
            waiting.clear()
        if pipe.fileno() in self._orders.get_map():
            self._orders.unregister(pipe)

    def _hear(self, number: int, descriptor: int, diagnostics: bool) -> None:
        octets = os.read(descriptor, _CHUNK)
        if octets:
            self.say(agent_messages.Heard(number, octets, diagnostics))
            return
        self._orders.unregister(descriptor)
        self._open[number] -= 1
        if not self._open[number]:
            program = self._programs.pop(number)
            del self._waiting[number]
            if program.stdin is not None and program.stdin.fileno() in self._orders.get_map():
                self._orders.unregister(program.stdin)
            code = program.wait()
            for stream in (program.stdin, program.stdout, program.stderr):
                assert stream is not None
                stream.close()
            self.say(agent_messages.Ended(number, code))


def main() -> int:
    """Stand until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: whoever holds the input says when it is enough
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_TERMINATED))  # its folder is removed all the same
    out = sys.stdout.buffer
    folder = Path(tempfile.mkdtemp(prefix="trifecta-there-"))
    try:
        try:
            engine = find_engine()
            engine_versions(engine)  # refuses one of another version than this package
        except (CannotError, OSError) as error:
            out.write(agent_messages.framed(agent_messages.Refused(str(error))))
            out.flush()
            return 0
        standing = AgentState(engine, folder / "files", out)
        (folder / "files").mkdir()
        try:
            standing.say(agent_messages.Stands(str(folder)))
            standing.serve(sys.stdin.fileno())
        finally:
            standing.end()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
