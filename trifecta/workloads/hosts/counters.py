"""What trials between hosts have in common: counters of kernels before and after, and what programs there used."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, TypeVar

from trifecta.contract.machine import MachineFacts, TransportGrowth
from trifecta.design.errors import CannotError
from trifecta.lab.engine import EXIT_BAD_INPUT, EXIT_CANNOT, EXIT_UNSUPPORTED, EngineError, EngineProgram
from trifecta.lab.machines import ConnectedMachine
from trifecta.observers.machines import MachinesObserver
from trifecta.workloads.hosts.server import ProcessUsage
from trifecta.workloads.remote_client import without_client
from trifecta.workloads.session import Session
from trifecta.workloads.trial import Observed, StagedTrial, TrialRunner

FOR_ALL = (EXIT_CANNOT, EXIT_BAD_INPUT, EXIT_UNSUPPORTED)  # what every other trial would meet, too
LOAD_GRACE_S = 5.0  # beyond its own total timeout the client is taken for hung
NOTHING = ProcessUsage(None, None)


def growth(before: int | None, after: int | None) -> int | None:
    """None where either was not told, and where threads with what they had used are gone."""
    return None if before is None or after is None or after < before else after - before


def program_usage(machine: ConnectedMachine, program: EngineProgram) -> ProcessUsage:
    """What a program on a machine has used so far."""
    usage = machine.used(program)
    return NOTHING if usage is None else ProcessUsage(*usage)


@dataclass(kw_only=True)
class HostsTrial(StagedTrial):
    """A trial whose programs are on hosts."""

    counters: MachinesObserver = field(init=False)
    grown: TransportGrowth = field(default_factory=dict)


Own = TypeVar("Own", bound=Session[Any, Any])
One = TypeVar("One", bound=HostsTrial)


class CountedTrialRunner(TrialRunner[Own, One], ABC):
    """Nothing is read of a machine while its programs work: before a trial and after it, counters of the kernel are."""

    def _observed(self, staged: One) -> Observed:
        return Observed({}, ())

    def _codes_for_all(self, staged: One) -> Collection[int]:
        return FOR_ALL

    def _blame(self, staged: One, error: EngineError) -> str:
        return f"client {error.message}"

    def _after_client(self, staged: One) -> None:
        def end() -> None:
            staged.grown = staged.counters.end()

        if not staged.errors:
            self._read(staged, end)

    def _read(self, staged: One, read: Callable[[], None]) -> None:
        """Read counters; a machine that is lost is an error of the trial."""
        try:
            read()
        except CannotError as error:
            staged.errors.append(str(error))

    def _around(self, staged: One, machine: MachineFacts) -> MachineFacts:
        return without_client(machine, staged.grown)
