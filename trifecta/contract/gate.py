"""What ``trifecta gate`` says with ``--json``, and keeps of the last good state (docs/gate.md)."""

from __future__ import annotations

from typing import Literal, TypedDict

from trifecta.contract.machine import StaticFacts
from trifecta.contract.run import LeftOut

SCHEMA = 1


class OutcomeDocument(TypedDict):
    """A condition in a cell; `analysis.gate.Outcome` says what the numbers are.

    ``candidate_values``: by trial, in the unit of the metric; None: without a finite value.
    """

    cell: str
    place: str
    condition: str
    metric: str
    label: str
    unit: str
    limit: float
    state: Literal["pass", "fail", "open"]
    reason: str
    baseline: float | None
    candidate: float | None
    ratio: float | None
    low: float | None
    high: float | None
    blocks: int
    blocks_needed: int | None
    candidate_values: list[float | None]


class MeasurementSetup(TypedDict):
    """What must be the same for values of two sessions to be compared at all."""

    asked_sha256: str
    machine: StaticFacts
    trifecta: str
    engine: dict[str, str]
    clients: dict[str, str]


class GateDocument(TypedDict):
    """A gate that was carried out. ``servers``: name and version; ``code``: digests of what measured.

    ``failed_checks``: trials by the check that failed; ``warnings``: in what the candidate is worse than the last good
    state; ``notes``: what else there is to say of that state, and whether this gate takes its place.
    """

    schema: int
    state: Literal["pass", "fail", "undecided"]
    interrupted: bool
    said: str
    ended_because: str
    study: str
    title: str
    factor: str
    baseline: str
    candidate: str
    confidence: float
    tests: list[OutcomeDocument]
    left_out: list[LeftOut]
    warnings: list[str]
    notes: list[str]
    trials: int
    excluded_trials: int
    failed_checks: dict[str, int]
    elapsed_ns: int
    budget_ns: int | None
    started_utc: str
    seed: int
    run: str
    made_by: MeasurementSetup
    servers: dict[str, str]
    code: dict[str, str]
