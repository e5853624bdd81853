"""The engine's programs as the lab starts them: find the binary, speak its protocol (architecture, section 1)."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sysconfig
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TypeVar

import msgspec

from trifecta import __version__
from trifecta.contract.codec import Misfit, decode, encode
from trifecta.contract.common import EngineVersion
from trifecta.contract.load import ClientLoaded
from trifecta.design.errors import CannotError
from trifecta.lab import linux
from trifecta.lab.host import Host

Role = Literal["load", "origin", "link", "probe"]
Line = TypeVar("Line")
ENGINE_VARIABLE = "TRIFECTA_ENGINE"
EXIT_BAD_INPUT = 2
EXIT_CANNOT = 3
EXIT_UNSUPPORTED = 127
_TICK_S = 0.1
_PROGRAM = "trifecta-engine"
_CHECKOUT = Path(__file__).resolve().parents[2]


class EngineError(Exception):
    """A program of the engine ended without doing its work."""

    def __init__(self, role: str, code: int | None, message: str) -> None:
        """``code`` is its exit code, negative for a signal, None when it did not end in time."""
        self.role = role
        self.code = code
        self.message = message
        super().__init__(f"{role}: {message}")


class Stopped(Exception):
    """The user asked to stop while a program of the engine was waited for."""


def find_engine() -> Path:
    """The engine's program; CannotError without one.

    ``TRIFECTA_ENGINE``, else the build of the checkout that this package lies in, else what the wheel installed.
    """
    named = os.environ.get(ENGINE_VARIABLE)
    if named:
        path = Path(named)
        if not os.access(path, os.X_OK):
            raise CannotError(f"{ENGINE_VARIABLE}={named} is not a program; name the trifecta-engine binary")
        return path.resolve()
    if (_CHECKOUT / "engine" / "Cargo.toml").is_file():
        built = _CHECKOUT / "engine" / "target" / "release" / _PROGRAM
        if not os.access(built, os.X_OK):
            sentence = f"the engine is not built ({built} is missing)"
            raise CannotError(f"{sentence}; run `{rebuild()}`, or set {ENGINE_VARIABLE}")
        return built
    installed = next(filter(None, (shutil.which(_PROGRAM, path=folder) for folder in _scripts())), None)
    if installed is None and _reads_only():
        raise CannotError(
            "this package has no engine and only reads runs: pip found none for this machine (Linux on x86-64, with "
            f"glibc 2.34 or newer); measure on another, or build it with Rust: `{rebuild()}`"
        )
    if installed is None:
        raise CannotError(f"the engine's program {_PROGRAM} is not among the scripts of this Python; run `{rebuild()}`")
    return Path(installed).resolve()


def rebuild() -> str:
    """The command that mends an engine that does not work: in a checkout it is built, else the wheel brings it."""
    if (_CHECKOUT / "engine" / "Cargo.toml").is_file():
        return "make setup"
    alone = "--no-deps --no-binary trifecta " if _reads_only() else ""  # pip would choose the same wheel again
    return f"pip install --force-reinstall {alone}trifecta"


def _reads_only() -> bool:
    """Whether it is installed from the wheel for any machine (scripts/reading_wheel.sh)."""
    from importlib import metadata

    try:
        return "Tag: py3-none-any" in (metadata.distribution("trifecta").read_text("WHEEL") or "")
    except metadata.PackageNotFoundError:
        return False


def _scripts() -> Iterator[str]:
    """Folders in which a wheel of this package puts its programs, the likeliest first."""
    from importlib import metadata

    try:
        for file in metadata.files("trifecta") or ():
            if file.name == _PROGRAM:
                yield str(Path(str(file.locate())).parent)
    except metadata.PackageNotFoundError:
        pass
    yield sysconfig.get_path("scripts")


class _Release(msgspec.Struct):
    engine: str


def engine_versions(engine: Path) -> EngineVersion:
    """What ``trifecta-engine --version`` says; CannotError when it is not of the version of this package."""
    try:
        done = subprocess.run([engine, "--version"], capture_output=True, check=True, timeout=20)
        version = decode(_Release, done.stdout).engine
        if version != __version__:  # what else it says may have another form
            raise CannotError(f"{engine} is of version {version}, and this is {__version__}; run `{rebuild()}`")
        return decode(EngineVersion, done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise CannotError(f"{engine} does not report its version ({error}); run `{rebuild()}`") from error


class EngineProgram(ABC):
    """One program of the engine, wherever it runs, and what is said with it. A context manager that ends it.

    The program waits for its configuration, so it can be started ahead of time: making the object starts it,
    ``configure`` sets it to work. Its diagnostics are appended to a log file.
    """

    def __init__(self, role: Role, name: str, log: Path) -> None:
        """Prepare; ``name`` distinguishes the program in messages."""
        self.role = role
        self.name = name or role
        self._log = log
        self.cgroup_paths: dict[str, Path] = {}
        """Folders of control groups that it alone is in: ``memory`` and ``cpuacct`` (cgroup v1) or ``unified`` (v2)."""
        self._buffer = b""
        self._lines: list[dict[str, msgspec.Raw]] = []
        self._poll = select.poll()
        log.touch()
        self._log_start = log.stat().st_size

    def _listen(self, descriptor: int) -> None:
        """Hear from the program through this descriptor from now on."""
        os.set_blocking(descriptor, False)
        self._poll.register(descriptor, select.POLLIN | select.POLLHUP)

    def _hears(self, timeout_s: float) -> bool:
        """Whether there is something to receive, or the end; waits for it, for so long at most."""
        return bool(self._poll.poll(timeout_s * 1000))

    @property
    @abstractmethod
    def pid(self) -> int:
        """Process id, as this process sees it."""

    @abstractmethod
    def running(self) -> bool:
        """Whether it still runs."""

    @abstractmethod
    def wait_end(self, timeout_s: float) -> None:
        """Wait until it has ended by itself, for so long at most."""

    @abstractmethod
    def get(self, path: Path) -> None:
        """Have here, at the same path, what it wrote there."""

    @abstractmethod
    def close(self) -> None:
        """End it at once, whatever it does."""

    @abstractmethod
    def _send(self, line: bytes) -> None:
        """Write to its standard input; BrokenPipeError when it is gone."""

    @abstractmethod
    def _receive(self) -> bytes | None:
        """What it wrote to standard output; None at the end, empty when it was nothing yet."""

    @abstractmethod
    def _terminate(self) -> None:
        """Ask it to end (SIGTERM)."""

    @abstractmethod
    def _exit_code(self) -> int:
        """Wait for its end; its exit code, negative for a signal."""

    def configure(self, config: msgspec.Struct) -> None:
        """Hand over the configuration; the program goes to work. The pipe stays open: closing it ends the program."""
        line = encode(config) + b"\n"
        # A program that died already shows itself in the next wait, with its own words.
        with suppress(BrokenPipeError):
            self._send(line)

    def wait_ready(self, kind: type[Line], timeout_s: float, stop: Callable[[], bool] | None = None) -> Line:
        """Wait until it can be used; what it says then, as its type of `trifecta.contract`.

        EngineError when it ends, is silent or says something else, Stopped on request.
        """
        return self._wait_for("ready", kind, timeout_s, stop, None)

    def wait_loaded(self, timeout_s: float, stop: Callable[[], bool] | None = None) -> ClientLoaded:
        """Wait until the driver of a foreign client is loaded and waits for its configuration; what it says then."""
        return self._wait_for("loaded", ClientLoaded, timeout_s, stop, None)

    def wait_summary(
        self,
        kind: type[Line],
        timeout_s: float,
        stop: Callable[[], bool] | None = None,
        tick: Callable[[], None] | None = None,
    ) -> Line:
        """Wait for its work to end by itself; its summary. ``tick`` is called ten times a second meanwhile."""
        return self._wait_for("summary", kind, timeout_s, stop, tick)

    def finish(self, kind: type[Line], timeout_s: float = 5.0) -> Line:
        """Ask it to end and return its summary; EngineError when it does not."""
        self._terminate()
        return self._wait_for("summary", kind, timeout_s, None, None)

    def wait_silent(self, timeout_s: float) -> None:
        """Wait until it has closed its standard output, after the summary; one that does not is ended."""
        deadline = time.monotonic() + timeout_s
        while (left := deadline - time.monotonic()) > 0:
            if self._hears(left) and self._receive() is None:
                return
        self.close()

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        self.close()

    def _wait_for(
        self,
        key: str,
        kind: type[Line],
        timeout_s: float,
        stop: Callable[[], bool] | None,
        tick: Callable[[], None] | None,
    ) -> Line:
        deadline = time.monotonic() + timeout_s
        next_tick = time.monotonic() + _TICK_S
        while True:
            for index, line in enumerate(self._lines):
                if key in line:
                    del self._lines[: index + 1]
                    return self._read_as(kind, key, line[key])
            now = time.monotonic()
            left = deadline - now
            if left <= 0:
                raise EngineError(self.name, None, f"did not end within {timeout_s:g} s" + self._last_words(": "))
            if self._hears(max(0.0, min(left, next_tick - now))):
                self._read()
            elif time.monotonic() >= next_tick:
                # On a schedule: what a tick takes, and how late it is, does not make the next one later.
                next_tick = max(next_tick + _TICK_S, time.monotonic())
                if tick is not None:
                    tick()
            if stop is not None and stop():
                raise Stopped

    def _read_as(self, kind: type[Line], key: str, raw: msgspec.Raw) -> Line:
        try:
            return decode(kind, bytes(raw))
        except Misfit as error:
            raise EngineError(self.name, None, f"sent a {key} that cannot be read: {error}") from error

    def _read(self) -> None:
        chunk = self._receive()
        if chunk is None:
            code = self._exit_code()
            raise EngineError(self.name, code, self._describe_end(code))
        *complete, self._buffer = (self._buffer + chunk).split(b"\n")
        for text in complete:
            try:
                self._lines.append(msgspec.json.decode(text, type=dict[str, msgspec.Raw]))
            except msgspec.DecodeError as error:
                raise EngineError(self.name, None, f"sent what is not JSON: {text[:200]!r}") from error

    def _describe_end(self, code: int) -> str:
        if code < 0:
            return f"was killed by signal {-code}" + self._last_words(": ")
        return self._last_words("") or f"ended with exit code {code} and no message"

    def _last_words(self, prefix: str) -> str:
        """What it wrote to standard error, on one line."""
        with self._log.open("rb") as file:
            file.seek(self._log_start)
            words = " ".join(file.read(2000).decode(errors="replace").split())
        return prefix + words if words else ""


class EngineProcess(EngineProgram):
    """A program of the engine as a process in a host."""

    def __init__(
        self,
        engine: Path,
        role: Role,
        host: Host,
        log: Path,
        *,
        cpus: frozenset[int] | None = None,
        name: str = "",
        instead: Sequence[str | Path] | None = None,
    ) -> None:
        """Start the program in ``host``; ``name`` distinguishes it in messages.

        ``instead`` is the command of another program that speaks the same contract.
        """
        super().__init__(role, name, log)
        with log.open("ab") as diagnostics:
            self.process = host.popen(
                instead or [engine, role, "-"],
                cpus=cpus,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=diagnostics,
                yielding=role != "link",
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._stdin, self._stdout = self.process.stdin, self.process.stdout
        self._listen(self._stdout.fileno())

    @property
    def pid(self) -> int:
        """Process id."""
        return self.process.pid

    def running(self) -> bool:
        """Whether it still runs."""
        return linux.runs(self.process)

    def wait_end(self, timeout_s: float) -> None:
        """Wait until it has ended by itself, for so long at most."""
        if self.process.poll() is None:
            linux.wait_for_end(self.process.pid, timeout_s)

    def get(self, path: Path) -> None:
        """It is there: the program wrote this machine's own file."""

    def close(self) -> None:
        """End it at once, whatever it does."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self._stdin, self._stdout):
            with suppress(OSError):
                stream.close()

    def _send(self, line: bytes) -> None:
        self._stdin.write(line)
        self._stdin.flush()

    def _receive(self) -> bytes | None:
        return os.read(self._stdout.fileno(), 1 << 16) or None

    def _terminate(self) -> None:
        self.process.terminate()

    def _exit_code(self) -> int:
        return self.process.wait()


def as_user_error(error: EngineError) -> CannotError:
    """The error of a program that the whole run depends on, as one line for the user."""
    return CannotError(
        f"{error.role} cannot work: {error.message}; see the logs folder of the run, or `trifecta doctor`"
    )
