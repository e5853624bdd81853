"""What trials between hosts have in common: counters of kernels before and after, and what programs there used."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, TypeVar

from trifecta.contract.machine import MachineFacts, TransportGrowth
from trifecta.design.errors import CannotError
from trifecta.lab.engine import EXIT_BAD_INPUT, EXIT_CANNOT, EXIT_UNSUPPORTED, EngineError, EngineProgram
from trifecta.lab.machines import StandingMachine
from trifecta.observers.machines import MachinesObserver
from trifecta.workloads.hosts.server import ProcessUsage
from trifecta.workloads.remote_client import without_client
from trifecta.workloads.session import Session
from trifecta.workloads.trial import Observed, Staged, TrialRunner

FOR_ALL = (EXIT_CANNOT, EXIT_BAD_INPUT, EXIT_UNSUPPORTED)  # what every other trial would meet, too
LOAD_GRACE_S = 5.0  # beyond its own total timeout the client is taken for hung
NOTHING = ProcessUsage(None, None)


def growth(before: int | None, after: int | None) -> int | None:
    """None where either was not told, and where threads with what they had used are gone."""
    return None if before is None or after is None or after < before else after - before


def used(machine: StandingMachine, program: EngineProgram) -> ProcessUsage:
    """What a program on a machine has used so far."""
    told = machine.used(program)
    return NOTHING if told is None else ProcessUsage(*told)


@dataclass(kw_only=True)
class HostsTrial(Staged):
    """A trial whose programs are on hosts."""

    counters: MachinesObserver = field(init=False)
    grown: TransportGrowth = field(default_factory=dict)


Own = TypeVar("Own", bound=Session[Any, Any])
One = TypeVar("One", bound=HostsTrial)


class CountedTrialRunner(TrialRunner[Own, One], ABC):
    """Nothing is read of a machine while its programs work: before a trial and after it, counters of the kernel are."""

    def _watched(self, one: One) -> Observed:
        return Observed({}, ())

    def _codes_for_all(self, one: One) -> Collection[int]:
        return FOR_ALL

    def _blame(self, one: One, error: EngineError) -> str:
        return f"client {error.message}"

    def _worked(self, one: One) -> None:
        def end() -> None:
            one.grown = one.counters.end()

        if not one.errors:
            self._read(one, end)

    def _read(self, one: One, read: Callable[[], None]) -> None:
        """Read counters; a machine that is lost is an error of the trial."""
        try:
            read()
        except CannotError as error:
            one.errors.append(str(error))

    def _around(self, one: One, machine: MachineFacts) -> MachineFacts:
        return without_client(machine, one.grown)
