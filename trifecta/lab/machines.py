"""Machines as they stand in a run: this one in its own network, or one by SSH. Nobody above `lab` asks which it is.

`Machines` is the launcher whose places they are.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Protocol

from trifecta.contract.machine import ChronyTracking, HostFacts
from trifecta.design.errors import CannotError
from trifecta.design.machine import Machine
from trifecta.lab import chrony, static_engine
from trifecta.lab.engine import EngineProgram
from trifecta.lab.host import LocalHost
from trifecta.lab.place import LocalPlace, Place
from trifecta.lab.ssh import machine_facts
from trifecta.lab.ssh.host import SshHost
from trifecta.lab.ssh.place import SshPlace
from trifecta.lab.ssh.program import SshProgram

_FACTS_S = 20
_CLOCK_S = 60  # chronyc asks a silent chronyd several times, at several addresses


class ConnectedMachine(Protocol):
    """A machine on which programs of the engine can be started, until it is closed or lost."""

    machine: Machine

    @property
    def place(self) -> Place:
        """Where programs are started."""

    @property
    def lost(self) -> str | None:
        """Why it cannot be used any more, in a few words; None while it stands."""

    @property
    def address(self) -> str:
        """The IP address at which others find it; empty where it does not know."""

    @property
    def peer(self) -> str:
        """The IP address of this machine, as it sees it; empty where it does not know."""

    def reopen(self) -> None:
        """Have it stand again after it was lost; CannotError when it does not. Programs there are gone."""

    def read(self, *files: str) -> dict[str, str]:
        """What files of its kernel say; those that are not there are left out. CannotError when it is lost."""

    def used(self, program: EngineProgram) -> tuple[int, int] | None:
        """CPU time of a program's threads there, and how long they waited for a core, in ns; None: not told."""

    def facts(self) -> HostFacts:
        """What it says of itself; CannotError when it is lost."""

    def clock(self) -> ChronyTracking:
        """What chronyd there says of its clock; CannotError when it is lost, or chronyc has no end."""

    def close(self) -> None:
        """Leave it as it was found, but for the engine, which is kept there."""


class ThisMachine:
    """This machine in its own network."""

    lost = None
    peer = ""

    def __init__(self, machine: Machine, engine: Path) -> None:
        """Nothing is started."""
        self.machine = machine
        self._engine = engine
        self.place: Place = LocalPlace(LocalHost(), engine)
        self.address = ""

    def reopen(self) -> None:
        """It is never lost."""

    def read(self, *files: str) -> dict[str, str]:
        """As `ConnectedMachine.read`."""
        contents = {}
        for name in files:
            with suppress(OSError):
                contents[name] = Path(name).read_text(encoding="ascii", errors="replace")
        return contents

    def used(self, program: EngineProgram) -> tuple[int, int] | None:
        """As `ConnectedMachine.used` (schedstats of Linux)."""
        times = []
        with suppress(OSError):
            for file in Path(f"/proc/{program.pid}/task").glob("*/schedstat"):
                cpu_ns, delay_ns, _ = file.read_text(encoding="ascii").split()
                times.append((int(cpu_ns), int(delay_ns)))
        return (sum(cpu for cpu, _ in times), sum(delay for _, delay in times)) if times else None

    def facts(self) -> HostFacts:
        """As `ConnectedMachine.facts`."""
        done = subprocess.run(
            ["sh", "-c", machine_facts.ASK], capture_output=True, text=True, check=False, timeout=_FACTS_S
        )
        host_facts = machine_facts.read(self.machine, self.address, done.stdout)
        return {**host_facts, "engine": static_engine.facts(self._engine)}

    def clock(self) -> ChronyTracking:
        """As `ConnectedMachine.clock`."""
        try:
            done = subprocess.run(
                ["sh", "-c", chrony.ASK],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=_CLOCK_S,
            )
        except subprocess.TimeoutExpired:
            raise CannotError(f"chronyc did not end within {_CLOCK_S} s; try `chronyc tracking`") from None
        return chrony.read(done.stdout)

    def close(self) -> None:
        """Nothing was made."""


class RemoteMachine:
    """A machine by SSH."""

    def __init__(self, name: str, machine: Machine, engine: Path) -> None:
        """Connect, and bring the engine where it is not there yet; CannotError in one line when that is refused.

        That is the static one where there is one.
        """
        self.machine = machine
        self._host = SshHost(name, machine, static_engine.to_bring(engine))
        self._host.open()
        self.place: Place = SshPlace(self._host)

    @property
    def lost(self) -> str | None:
        """As `ConnectedMachine.lost`."""
        return self._host.lost

    @property
    def address(self) -> str:
        """As `ConnectedMachine.address`: that to which the connection was made."""
        return self._host.address

    @property
    def peer(self) -> str:
        """As `ConnectedMachine.peer`."""
        return self._host.peer

    def reopen(self) -> None:
        """As `ConnectedMachine.reopen`."""
        self._host.reopen()

    def read(self, *files: str) -> dict[str, str]:
        """As `ConnectedMachine.read`."""
        return self._host.read(*files)

    def used(self, program: EngineProgram) -> tuple[int, int] | None:
        """As `ConnectedMachine.used`."""
        return program.used() if isinstance(program, SshProgram) else None

    def resolve(self, name: str) -> list[str]:
        """The IP addresses that a name stands for there; CannotError where there is none, or it is lost."""
        return self._host.resolve(name)

    def facts(self) -> HostFacts:
        """As `ConnectedMachine.facts`."""
        return self._host.facts()

    def clock(self) -> ChronyTracking:
        """As `ConnectedMachine.clock`."""
        return self._host.clock()

    def close(self) -> None:
        """As `ConnectedMachine.close`."""
        self._host.close()


class Machines(Mapping[str, ConnectedMachine]):
    """A `trifecta.lab.launcher.Launcher` over machines, by what a run calls each."""

    def __init__(self, engine: Path) -> None:
        """None stands yet. ``engine`` is the engine's program here, which is brought to those elsewhere."""
        self._engine = engine
        self._standing: dict[str, ConnectedMachine] = {}

    def connect(self, key: str, machine: Machine, name: str = "") -> ConnectedMachine:
        """Have a machine stand; CannotError in one line when it does not.

        ``name`` distinguishes it in messages, where that is not its key.
        """
        here = machine.is_here
        standing = ThisMachine(machine, self._engine) if here else RemoteMachine(name or key, machine, self._engine)
        self._standing[key] = standing
        return standing

    def places(self) -> Mapping[str, str]:
        """As `Launcher.places`."""
        return {key: one.machine.at for key, one in self._standing.items()}

    def place(self, key: str) -> Place:
        """As `Launcher.place`."""
        return self._standing[key].place

    def close(self) -> None:
        """Leave all as they were found, the last one first; one that cannot be left does not keep the others."""
        with ExitStack() as stack:
            for one in self._standing.values():
                stack.callback(one.close)

    def __getitem__(self, key: str) -> ConnectedMachine:
        """The machine that stands under this key."""
        return self._standing[key]

    def __iter__(self) -> Iterator[str]:
        """The keys."""
        return iter(self._standing)

    def __len__(self) -> int:
        """How many stand."""
        return len(self._standing)
