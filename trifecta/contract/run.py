"""``run.json``: what a run says of itself (docs/architecture.md, 2.1)."""

from __future__ import annotations

from typing import TypedDict

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
    servers: dict[str, JsonObject]
    clients: dict[str, JsonObject]
    browsers: dict[str, JsonObject]
    any: dict[str, list[str]]
    unsupported: list[LeftOut]
    not_found: list[LeftOut]
    failed: list[LeftOut]
    machine: JsonObject
    pins: JsonObject
    parity: JsonObject
    network: JsonObject
    faults: JsonObject
    cells: list[str]
    removed: list[str]
    extended: list[JsonObject]
    map: JsonObject
    resumed: int
    state: str
    ended_because: str | None
    elapsed_ns: int
    time_share: dict[str, float]
    measuring_share: float


class Decision(TypedDict, total=False):
    """A line of ``planner.jsonl``; beside ``elapsed_ns`` it has what was decided, and why (docs/architecture.md)."""

    elapsed_ns: int
    block: int
    stop: str
    reason: str
