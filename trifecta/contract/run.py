"""``run.json``: what a run says of itself (docs/architecture.md, 2.1)."""

from __future__ import annotations

from typing import TypedDict

from trifecta.contract.common import Declared
from trifecta.contract.far import Look
from trifecta.contract.machine import HostFacts, NetworkFacts, StaticFacts
from trifecta.contract.values import JsonObject


class StudyOfRun(TypedDict, total=False):
    """Which study it was."""

    name: str
    title: str | None
    sha256: str
    metric: str


class LeftOut(TypedDict):
    """A level that was left out, and why."""

    factor: str
    level: str
    reason: str


class InstalledProgram(TypedDict, total=False):
    """A server, client or browser that was found here; servers declare by trial. ``sha256``: of a server's program."""

    version: str
    sha256: str
    source: str
    declared: Declared


class MapPlanDocument(TypedDict, total=False):
    """The plan of a run that is a map: `design.mapping.MapPlan`."""

    compare: str
    x: str
    y: str
    resolution: list[int]
    arms: list[str]
    blocks: int | None
    budget_ns: int | None


class GateRequest(TypedDict):
    """What a run that is a gate was asked beside its study; files and folders in full."""

    fail_on: list[str]
    summary: str | None
    junit: str | None
    references: str | None
    accept: bool


class Extension(TypedDict, total=False):
    """How a run that had ended was gone on with: what was asked, what had been done, and its new end."""

    utc: str
    argv: list[str]
    asked: str
    after_trials: int
    after_elapsed_ns: int
    after_state: str | None
    after_because: str | None
    study_before_sha256: str
    blocks: dict[str, int]
    budget: str
    before_blocks: dict[str, int]
    most_blocks: dict[str, int]


class NodeFacts(TypedDict):
    """A node of a cluster that ran blocks, as it was when it joined."""

    machine: StaticFacts
    network: NetworkFacts | None
    pins: JsonObject


class LostBlock(TypedDict):
    """A block that ended with its node, by what happened to it; it was done again, as a whole."""

    cell: str
    block: int
    node: str
    reason: str


class RunDocument(TypedDict, total=False):
    """The document; a run of an earlier version lacks what was not written then."""

    schema: int
    trifecta: str
    python: str
    engine: dict[str, str]
    code: dict[str, str]
    study: StudyOfRun
    seed: int
    argv: list[str]
    started_utc: str
    servers: dict[str, InstalledProgram]
    clients: dict[str, InstalledProgram]
    browsers: dict[str, InstalledProgram]
    any: dict[str, list[str]]
    unsupported: list[LeftOut]
    not_found: list[LeftOut]
    failed: list[LeftOut]
    machine: StaticFacts
    pins: JsonObject
    parity: JsonObject
    quinn: JsonObject
    network: NetworkFacts
    hosts: dict[str, HostFacts]
    nodes: dict[str, NodeFacts]
    nodes_left_out: dict[str, str]
    nodes_share_machine: bool
    lost_blocks: list[LostBlock]
    stored: str
    faults: JsonObject
    cells: list[str]
    removed: list[str]
    extended: list[Extension]
    map: MapPlanDocument
    gate: GateRequest
    elsewhere: list[Look]
    counted_elsewhere: list[str]
    resumed: int
    state: str
    ended_because: str | None
    elapsed_ns: int
    time_share: dict[str, float]
    measuring_share: float


class IntervalThen(TypedDict, total=False):
    """What a verdict said after a block, named as in `design.model.Verdict`; what it did not say is left out."""

    cell: str
    metric: str
    arm: str
    reference: str
    blocks: int
    verdict: str
    likely: str
    ratio: float
    low: float
    high: float
    family_low: float
    family_high: float
    margin: float
    blocks_needed_low: int
    blocks_needed_high: int


class Decision(TypedDict, total=False):
    """A line of ``planner.jsonl``; beside ``elapsed_ns`` it has what was decided, and why (docs/architecture.md)."""

    elapsed_ns: int
    block: int
    stop: str
    reason: str
    intervals: list[IntervalThen]
