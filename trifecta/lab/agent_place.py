"""A place of a launcher that carries octets: what stands there is `trifecta.lab.engine_agent`, the engine's programs
are its children, and files go there and back. It costs a few ms a message: for what is measured there, not for pacing.
"""

from __future__ import annotations

import itertools
import signal
import time
from collections import deque
from pathlib import Path

import msgspec

from trifecta.design.errors import CannotError
from trifecta.lab import agent_messages, staged_files
from trifecta.lab.engine import EngineError, EngineProgram, Role
from trifecta.lab.launcher import Output, StreamLauncher
from trifecta.lab.remote_program import RemoteProgram
from trifecta.lab.staged_files import Config

_PROGRAM = ("-P", "-m", "trifecta.lab.engine_agent")
_STAND_S = 60.0  # others may have the place's CPUs
_FILES_S = 120.0
_END_S = 5.0
_TICK_S = 0.5


class AgentPlaces:
    """The places of one launcher, which hears for all of them."""

    def __init__(self, launcher: StreamLauncher) -> None:
        """Nothing is started yet."""
        self._launcher = launcher
        self._at: dict[str, AgentPlace] = {}

    def place(self, key: str) -> AgentPlace:
        """The place under this key, the same whenever it is asked for."""
        if key not in self._at:
            self._at[key] = AgentPlace(self, self._launcher, key)
        return self._at[key]

    def forget(self, key: str) -> None:
        """The launcher ends what stands at a place: that asked for it begins anew."""
        if (place := self._at.pop(key, None)) is not None:
            place.lose("it was ended")

    def hear(self, timeout_s: float) -> None:
        """Give every place what came for it; waits for that, for so long at most."""
        for key, output in self._launcher.read(timeout_s).items():
            if key in self._at:
                self._at[key].take(output)


class AgentPlace:
    """A `trifecta.lab.place.Place` at the other end of a launcher, in the network as it is there."""

    def __init__(self, places: AgentPlaces, launcher: StreamLauncher, key: str) -> None:
        """Nothing is started before the first program, or the first file."""
        self._places = places
        self._launcher = launcher
        self._key = key
        self._frames = agent_messages.Frames()
        self._numbers = itertools.count()
        self._programs: dict[int, AgentProgram] = {}
        self._answers: deque[agent_messages.Answer] = deque()
        self._given: dict[Path, bool] = {}
        self._stands: agent_messages.Stands | None = None
        self.lost: str | None = None
        """Why it cannot be used any more, in a few words; None while it can."""

    def ensure_started(self) -> agent_messages.Stands:
        """What stands there, which is started where it does not yet; CannotError when it does not come up."""
        if self._stands is None and self.lost is None:
            self._launcher.start(self._key, _PROGRAM)
            answer = self._answer(_STAND_S)
            if isinstance(answer, agent_messages.Refused):
                self.lose(answer.reason)
                raise CannotError(f"{self.name}: {answer.reason}")
            assert isinstance(answer, agent_messages.Stands), "it is the first that is said"
            self._stands = answer
        if self.lost is not None or self._stands is None:
            raise self.error()
        return self._stands

    def start(self, role: Role, log: Path, *, name: str = "", cpus: frozenset[int] | None = None) -> EngineProgram:
        """Start a program of the engine, as `Place.start`; which core it has is the place's affair, not of ``cpus``."""
        del cpus
        self.ensure_started()
        number = next(self._numbers)
        program = self._programs[number] = AgentProgram(self, number, role, log, name)
        self.say(agent_messages.Begin(number, role))
        return program

    def put(self, path: Path, *, writable: bool = False) -> None:
        """Have it below the folder of the place, as `Place.put`; CannotError when that fails."""
        path = path.absolute()
        self.ensure_started()
        try:
            self.say(agent_messages.Put(str(path), None if writable else staged_files.pack(path), writable))
        except (OSError, ValueError) as error:
            raise CannotError(f"{self.name}: {path.name} cannot be put there ({_words(error)})") from error
        self._done()
        self._given[path] = writable

    def get(self, path: Path) -> None:
        """Have here what was written there; CannotError when it is not there."""
        path = path.absolute()
        self.say(agent_messages.Get(str(path)))
        try:
            staged_files.unpack(self._done().archive, path)
        except (OSError, ValueError) as error:
            raise CannotError(f"{self.name}: {path.name} cannot be brought from there ({_words(error)})") from error

    def relocated(self, config: Config) -> Config:
        """A configuration with the paths of the place."""
        return staged_files.relocated(config, f"{self.ensure_started().folder}/files", self._given)

    def say(self, order: agent_messages.Order) -> None:
        """Have the place do something; nothing where it is lost, which whoever waits for an answer is told."""
        if self.lost is None:
            self._launcher.write(self._key, agent_messages.framed(order))

    def hear(self, timeout_s: float) -> None:
        """Wait until something came from any place, for so long at most."""
        self._places.hear(timeout_s)

    def take(self, output: Output) -> None:
        """What came from it."""
        try:
            for message in self._frames.feed(output.octets):
                self._sort(msgspec.msgpack.decode(message, type=agent_messages.Answer))
        except (msgspec.MsgspecError, ValueError) as error:
            self.give_up(f"it sent what cannot be read ({error})")
        if output.ended is not None:
            self.lose(output.ended)

    def lose(self, reason: str) -> None:
        """It cannot be used any more, and neither can what runs there."""
        self.lost = self.lost or reason
        for program in self._programs.values():
            program.lose()
        self._programs.clear()

    def give_up(self, reason: str) -> None:
        """Lose it, and end what stands there: a late answer would be taken for that to another question."""
        self.lose(reason)
        self._launcher.end(self._key)

    def error(self) -> CannotError:
        """The error of who needs it, and it is lost."""
        return CannotError(f"{self.name}: no engine program can be started there ({self.lost or 'it is gone'})")

    @property
    def name(self) -> str:
        """What a person knows the place by; its key once it is gone."""
        return self._launcher.places().get(self._key, self._key)

    def _sort(self, answer: agent_messages.Answer) -> None:
        if isinstance(answer, agent_messages.Heard | agent_messages.Ended):
            if (program := self._programs.get(answer.program)) is not None:
                program.take(answer)
            if isinstance(answer, agent_messages.Ended):
                self._programs.pop(answer.program, None)
        else:
            self._answers.append(answer)

    def _answer(self, timeout_s: float) -> agent_messages.Answer:
        """The next answer to what was asked; CannotError when none comes."""
        until = time.monotonic() + timeout_s
        while not self._answers:
            if self.lost is not None:
                raise self.error()
            if time.monotonic() > until:
                self.give_up(f"no answer within {timeout_s:.0f} s; others may use its CPUs")
                raise self.error()
            self.hear(_TICK_S)
        return self._answers.popleft()

    def _done(self) -> agent_messages.Done:
        """That files were brought; CannotError when they were not."""
        answer = self._answer(_FILES_S)
        if isinstance(answer, agent_messages.Refused):
            raise CannotError(f"{self.name}: {answer.reason}")
        assert isinstance(answer, agent_messages.Done), "answers come in the order of what was asked"
        return answer


def _words(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or str(error)


class AgentProgram(RemoteProgram):
    """A program of the engine at such a place; used like ``EngineProcess``. It has no process id here."""

    def __init__(self, place: AgentPlace, number: int, role: Role, log: Path, name: str) -> None:
        """The place starts it."""
        super().__init__(role, name, log, place)
        self._place = place
        self._number = number
        self._octets: deque[bytes] = deque()
        self._code: int | None = None
        self._ended = False

    def running(self) -> bool:
        """Whether it still runs, as far as is known here."""
        if not self._ended:
            self._place.hear(0.0)
        return not self._ended

    def wait_end(self, timeout_s: float) -> None:
        """Wait until it has ended by itself, for so long at most."""
        until = time.monotonic() + timeout_s
        while not self._ended and (left := until - time.monotonic()) > 0:
            self._place.hear(left)

    def close(self) -> None:
        """End it at once, whatever it does."""
        if not self._ended:
            self._place.say(agent_messages.Signal(self._number, signal.SIGKILL))
            self.wait_end(_END_S)
            if not self._ended:
                self._place.give_up(f"program {self.name} did not end within {_END_S:.0f} s of its SIGKILL")

    def take(self, answer: agent_messages.Heard | agent_messages.Ended) -> None:
        """What came from it."""
        if isinstance(answer, agent_messages.Ended):
            self._code, self._ended = answer.code, True
        elif answer.diagnostics:
            with self._log.open("ab") as log:
                log.write(answer.octets)
        else:
            self._octets.append(answer.octets)

    def lose(self) -> None:
        """Its place is lost, and it with it."""
        self._ended = True

    def _hears(self, timeout_s: float) -> bool:
        until = time.monotonic() + timeout_s
        while not (self._octets or self._ended):
            left = until - time.monotonic()
            self._place.hear(max(0.0, left))  # once at least, as poll(2) with no time does
            if left <= 0:
                break
        return bool(self._octets) or self._ended

    def _send(self, line: bytes) -> None:
        if self._ended:
            raise BrokenPipeError
        self._place.say(agent_messages.Tell(self._number, line))

    def _receive(self) -> bytes | None:
        octets = b"".join(self._octets.popleft() for _ in range(len(self._octets)))
        return octets or (None if self._ended else b"")

    def _terminate(self) -> None:
        self._place.say(agent_messages.Signal(self._number, signal.SIGTERM))

    def _exit_code(self) -> int:
        """How it ended; EngineError where that is not known, because the place is lost."""
        if self._code is None:
            raise EngineError(self.name, None, f"{self._place.name} is lost ({self._place.lost})")
        return self._code
