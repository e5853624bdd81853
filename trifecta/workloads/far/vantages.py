"""Vantage points: machines by SSH from which a server elsewhere is asked, one after the other.

The engine's load is brought there and does what it does here. What only this machine can see of itself (its own load,
how long TCP takes to connect beside an answer) is not seen there, and said to be unknown.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import cast

from trifecta.contract.far import RequestOutcome
from trifecta.contract.machine import HostFacts
from trifecta.design.errors import CannotError
from trifecta.design.machine import HERE, Machine
from trifecta.design.model import FarBaseWorkload
from trifecta.design.stat import Target
from trifecta.lab.machines import Machines, RemoteMachine
from trifecta.lab.place import Place
from trifecta.workloads.far import names
from trifecta.workloads.far.configs import Request
from trifecta.workloads.far.look import Looker
from trifecta.workloads.far.rate_limiter import RateLimiter

_DRAFT = ".tmp-look.parquet"


class Vantages:
    """The machines of a study's vantage points, by level. They stand over the run; ``here`` is none of them."""

    def __init__(self, levels: Iterable[str], engine: Path) -> None:
        """Nothing is connected to before ``stand``."""
        self._levels = [level for level in dict.fromkeys(levels) if level != HERE]
        self._machines = Machines(engine)

    def connect(self, stack: ExitStack, authorities: Path, samples: Path) -> None:
        """Connect to all of them; ``stack`` closes them. CannotError when one refuses, before anything was asked.

        Loads find ``authorities`` there, and write below ``samples``.
        """
        stack.callback(self._machines.close)
        for level in self._levels:
            place = self._machines.connect(level, Machine(level)).place
            place.put(authorities.resolve())
            place.put(samples, writable=True)

    def place(self, level: str) -> Place:
        """Where loads of a level are started."""
        return self._machines.place(level)

    def lost(self, level: str) -> str | None:
        """That a machine cannot be used any more, and why; None while it stands, and of ``here``."""
        machine = self._machines.get(level)
        return None if machine is None or machine.lost is None else f"host {level} is lost ({machine.lost})"

    def reopen(self, level: str) -> None:
        """Connect again to one that was lost; CannotError when it refuses."""
        self._machines[level].reopen()

    def resolve(self, level: str, target: Target) -> names.Resolved:
        """What a name stands for at a vantage point, by the resolver there; CannotError without an answer.

        How long that took is not known: the way there and back is in it.
        """
        if (own := names.literal(target.host)) is not None:
            return own
        addresses = cast(RemoteMachine, self._machines[level]).resolve(target.host)  # `here` is none of them
        try:
            return names.Resolved(tuple(str(ipaddress.ip_address(one)) for one in addresses), None)
        except ValueError as error:
            text = f"host {level}: what its resolver says of {target.host} is no address ({error})"
            raise CannotError(f"{text}; try `getent ahosts {target.host}` there") from None

    def facts(self) -> dict[str, HostFacts]:
        """What they say of themselves, by level; CannotError when one is lost."""
        return {level: machine.facts() for level, machine in self._machines.items()}


class DistantLooker(Looker):
    """Looks from a vantage point. What TCP takes to connect while content comes is not asked there."""

    def __init__(
        self,
        there: Place,
        workload: FarBaseWorkload,
        keeper: RateLimiter,
        log: Path,
        stop: Callable[[], bool],
        *,
        samples: Path,
    ) -> None:
        """``samples`` is the folder below which a load there may write."""
        super().__init__(there, workload, keeper, log, stop)
        self._samples = samples

    def once(self, request: Request, connects: list[int] | None = None) -> RequestOutcome:
        """One request; nothing is added to ``connects``."""
        return super().once(request)

    @contextmanager
    def _draft(self) -> Iterator[Path]:
        file = self._samples / _DRAFT
        try:
            yield file
        finally:
            file.unlink(missing_ok=True)
