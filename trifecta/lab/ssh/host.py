"""A host by SSH: connected to, with the engine there and a working folder that is gone with the connection."""

from __future__ import annotations

import gzip
import hashlib
import itertools
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from trifecta.contract.codec import Misfit, decode
from trifecta.contract.common import EngineVersion
from trifecta.contract.machine import ChronyTracking, HostFacts
from trifecta.design.errors import CannotError
from trifecta.design.machine import Machine
from trifecta.design.phrases import listed
from trifecta.lab import chrony, netem, staged_files, static_engine
from trifecta.lab.ssh import keeper, machine_facts
from trifecta.lab.ssh.callbacks import Callbacks
from trifecta.lab.ssh.connection import CommandResult, Connection, HostLost, RemoteCommand, shell
from trifecta.lab.ssh.keeper_client import KeeperClient
from trifecta.lab.staged_files import Config

_COMMAND_S = 20.0
_CLOCK_S = 60.0  # chronyc asks a silent chronyd several times, at several addresses
_BRING_S = 600.0  # some 12 MB, over whatever the user has
_FILES_S = 120.0
_NO_LINK = b'{"a_device":"lo","b_device":"trifecta-none"}\n'  # the second is there nowhere: it ends before it carries


@dataclass(frozen=True)
class SshSession:
    """What there is as long as a connection stands."""

    connection: Connection
    engine: str
    keeping: KeeperClient

    @property
    def lost(self) -> str | None:
        """Why it does not stand any more."""
        return self.connection.lost or self.keeping.lost


class SshHost:
    """A host that stands from `open` to `close`; a context manager. It is `lost` when its connection ends before."""

    def __init__(self, name: str, machine: Machine, engine: Path) -> None:
        """Nothing is connected yet. ``name`` distinguishes it in messages, ``engine`` is the program to bring."""
        self.name = name
        self.machine = machine
        self.brought = False
        """Whether the engine was brought, and not there before."""
        self._engine = engine
        self._given: dict[Path, bool] = {}
        """What was put there, and whether it may be written."""
        self._numbers = itertools.count(1)
        self._standing: SshSession | None = None
        self._left: list[str] = []
        """Working folders of connections that ended without a word."""

    def __enter__(self) -> Self:
        """Open it."""
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def open(self) -> None:
        """Connect, bring the engine unless it is there, make the folder; what was put there before is put again.

        CannotError in one line when any of it is refused. Nothing of it stands then.
        """
        connection = Connection(self.machine)
        try:
            engine = self._bring(connection)
            self._standing = SshSession(connection, engine, KeeperClient(connection, self._left))
            self._left.clear()
            for path, writable in self._given.items():
                self._put(path, writable=writable)
        except BaseException:
            self.close()
            connection.close()
            raise

    def close(self) -> None:
        """End what runs there, have the folder removed, and end the connection; it waits for that, but not for ever."""
        standing, self._standing = self._standing, None
        if standing is None:
            return
        if not standing.keeping.leave():
            self._left.append(standing.keeping.folder)
        standing.connection.close()

    def reopen(self) -> None:
        """Connect again; what a connection that was lost left there is ended and removed first."""
        self.close()
        self.open()

    @property
    def lost(self) -> str | None:
        """Why it cannot be used any more, in a few words; None while it stands."""
        return "it is not connected to" if self._standing is None else self._standing.lost

    @property
    def session(self) -> SshSession:
        """What there is now; HostLost when there is nothing."""
        if self._standing is None or self._standing.lost is not None:
            raise self.error()
        return self._standing

    def error(self) -> HostLost:
        """The error of who needs it, and it is lost."""
        return HostLost(f"host {self.machine.at}: the connection ended ({self.lost}); try `{self.machine.command}`")

    @property
    def address(self) -> str:
        """The IP address at which it was reached, as it knows it; empty where it does not say."""
        return self.session.keeping.address

    @property
    def peer(self) -> str:
        """The IP address from which it was reached; empty where it does not say."""
        return self.session.keeping.peer

    def put(self, path: Path, *, writable: bool = False) -> None:
        """Have a file or folder of this machine there. One that may be written is made there, and is empty.

        HostLost, or CannotError when there is no room.
        """
        path = path.absolute()
        self._put(path, writable=writable)
        self._given[path] = writable

    def get(self, path: Path) -> None:
        """Have here what was written there; a file is then gone there. HostLost, or CannotError when it is not."""
        standing = self.session
        done = standing.connection.run(
            keeper.GET, standing.keeping.folder, staged_files.below(path), timeout_s=_FILES_S
        )
        if done.code != 0:
            raise self._no_room(path, "cannot be brought here", done)
        staged_files.unpack(done.output, path.absolute())

    def relocated(self, config: Config) -> Config:
        """A configuration with the paths of the other end."""
        return staged_files.relocated(config, f"{self.session.keeping.folder}/files", self._given)

    def begin(self, role: str, ears: Callbacks) -> tuple[RemoteCommand, str]:
        """Start a program of the engine; how it is talked with, and its name for `signal`. HostLost when it is lost."""
        standing, name = self.session, f"p{next(self._numbers)}"
        command = shell(keeper.START, standing.keeping.folder, name, standing.engine, role)
        return standing.connection.begin(command, ears), name

    def signal(self, name: str, signal: str) -> None:
        """Send a program a signal (``TERM``, ``KILL``); nothing where it, or the host, is gone."""
        if self._standing is not None:
            self._standing.keeping.say("signal", name, signal)

    def read(self, *files: str) -> dict[str, str]:
        """What these files of the kernel say; those that are not there are left out. HostLost without an answer."""
        return self.session.keeping.ask("show", *files)

    def used(self, name: str) -> tuple[int, int] | None:
        """CPU time of a program's threads, and how long they waited for a core, in ns; None where that is not told.

        As of now, and without threads that have ended (schedstats of Linux). HostLost when there is no answer.
        """
        pairs = [text.split() for text in self.session.keeping.ask("used", name).values()]
        times = [(int(pair[0]), int(pair[1])) for pair in pairs if len(pair) == 3]
        return (sum(cpu for cpu, _ in times), sum(delay for _, delay in times)) if times else None

    def resolve(self, name: str) -> list[str]:
        """The IP addresses of a name by the resolver there. CannotError where it has none; HostLost."""
        done = self.session.connection.run(keeper.RESOLVE, name, timeout_s=_COMMAND_S)
        addresses = keeper.parse_addresses(done.output.decode(errors="replace")) if done.code == 0 else []
        if not addresses:
            text = f"host {self.machine.at}: {name} cannot be resolved there ({done.failure})"
            raise CannotError(f"{text}; check the name, its resolver, and that getent is installed")
        return addresses

    def facts(self) -> HostFacts:
        """What it says of itself. HostLost when it does not."""
        standing = self.session
        done = standing.connection.run(machine_facts.ASK, timeout_s=_COMMAND_S)
        output = done.output.decode(errors="replace")
        host_facts = machine_facts.read(self.machine, standing.keeping.address, output)
        return {**host_facts, "engine": static_engine.facts(self._engine)}

    def clock(self) -> ChronyTracking:
        """What chronyd there says of its clock. HostLost when it does not come to an end."""
        done = self.session.connection.run(chrony.ASK, timeout_s=_CLOCK_S)
        return chrony.read(done.output.decode(errors="replace"))

    def may_open_devices(self) -> bool:
        """Whether a link may take frames from devices there (CAP_NET_RAW), tried on ``lo``. HostLost without answer."""
        standing = self.session
        command = 'exec "$1" link -'
        done = standing.connection.run(command, standing.engine, given=_NO_LINK, timeout_s=_COMMAND_S)
        return done.diagnostics.startswith("error: b_device: ")

    def netem_lack(self) -> netem.MissingSupport | None:
        """What is missing there for ``emulator: netem``, tried in a network of its own. HostLost without answer."""
        done = self.session.connection.run(netem.ASK, timeout_s=_COMMAND_S)
        return netem.missing_support(done.output.decode(errors="replace"))

    def _bring(self, connection: Connection) -> str:
        """Where the engine lies there, with the digest of the one here; CannotError when it does not run there."""
        content = self._engine.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        look = connection.run(keeper.LOOK, digest, *keeper.NEEDED, timeout_s=_COMMAND_S)
        line, _, version = look.output.decode(errors="replace").partition("\n")
        word, _, argument = line.partition(" ")
        if word == "lacking":
            missing = listed(argument.split())
            raise CannotError(f"host {self.machine.at}: {missing} is missing there; install its package")
        self.brought = word != "engine"
        if not self.brought:
            self._refuse_unless_it_runs(replace(look, output=version.encode()))
            return argument
        packed = gzip.compress(content, 1, mtime=0)
        done = connection.run(keeper.BRING, digest, given=packed, timeout_s=_BRING_S)
        if done.code != 0:
            text = f"host {self.machine.at}: the engine cannot be brought there ({done.failure})"
            raise CannotError(f"{text}; give its user a home with {len(content) / 1e6:.0f} MB free")
        engine = done.output.decode()
        self._refuse_unless_it_runs(connection.run('exec "$1" --version', engine, timeout_s=_COMMAND_S))
        return engine

    def _refuse_unless_it_runs(self, done: CommandResult) -> None:
        """CannotError where what the engine says of itself is not what it would."""
        try:
            decode(EngineVersion, done.output)
            why = ""
        except Misfit as error:
            why = done.failure if done.code != 0 else str(error)
        if why:
            needs = "Linux, this machine's kind of processor, and a home without noexec"
            if not static_engine.is_static(self._engine):
                needs += ", and no older C library than here (`make static` in a checkout builds one without)"
            raise CannotError(f"host {self.machine.at}: the engine does not run there ({why}); it needs {needs}")

    def _put(self, path: Path, *, writable: bool) -> None:
        standing = self.session
        run, folder = standing.connection.run, standing.keeping.folder
        if writable:
            done = run(keeper.MAKE, folder, staged_files.below(path), timeout_s=_COMMAND_S)
        else:
            done = run(keeper.PUT, folder, given=staged_files.pack(path), timeout_s=_FILES_S)
        if done.code != 0:
            raise self._no_room(path, "cannot be put there", done)

    def _no_room(self, path: Path, what: str, done: CommandResult) -> CannotError:
        """The error for a file; without where it lies on this machine, which its path there tells: runs keep it."""
        diagnostics = done.diagnostics
        for one in (path, *path.parents[:-1]):
            diagnostics = diagnostics.replace(staged_files.below(one), path.name if one == path else "...")
        text = f"host {self.machine.at}: {path.name} {what} ({replace(done, diagnostics=diagnostics).failure})"
        return CannotError(f"{text}; give its user room in ${{TMPDIR:-/tmp}}")
