"""How a workload is run: what the table of `trifecta.workloads.executors` names for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from trifecta.analysis.planner import AnyPlanner
from trifecta.design.model import Cell, Study
from trifecta.lab.host import pin_table
from trifecta.workloads.session import Adapters, Session, SessionContext
from trifecta.workloads.supported import Supported
from trifecta.workloads.trial import TrialRunner

AnySession = Session[Any, Any]
AnyTrialRunner = TrialRunner[Any, Any]
Raised = tuple[AnySession, Callable[[], AnyTrialRunner]]
"""A session that is up, and what makes the runner of its trials, once its cells have begun."""
Own = TypeVar("Own", bound=AnySession)


def _without_limit(planner: AnyPlanner, _study: Study, _cells: Sequence[Cell]) -> AnyPlanner:
    return planner


@dataclass(frozen=True)
class Executor:
    """How a workload is run."""

    cells: Callable[[Study, Path, Adapters], Supported]
    """Those that can run here; CannotError when there is none."""
    session: Callable[[SessionContext], AbstractContextManager[Raised]]
    pins: Callable[[], Mapping[str, frozenset[int] | None]] = pin_table
    """Which program has which cores to itself."""
    phase: str = "servers"
    """What ``begin`` raises."""
    conformance: bool = False
    """Whether servers and clients are probed before the trials."""
    lab: bool = True
    """Whether it runs inside the sandbox, from which nothing leaves this machine."""
    within: Callable[[AnyPlanner, Study, Sequence[Cell]], AnyPlanner] = _without_limit
    """The planner of a run, within what this workload may do at all."""


def raised(
    session: Callable[[SessionContext], Own], runner: Callable[[Own], AnyTrialRunner]
) -> Callable[[SessionContext], AbstractContextManager[Raised]]:
    """An executor's ``session`` of these two classes."""

    @contextmanager
    def raise_session(common: SessionContext) -> Iterator[Raised]:
        with session(common) as own:
            yield own, lambda: runner(own)

    return raise_session
