"""A ladder as measured (``ladder.json``) and what was asked for it; docs/ladder.md describes the fields."""

from __future__ import annotations

from typing import Literal, TypedDict


class RatioInterval(TypedDict):
    """A ratio with its interval over rounds; None where there is none."""

    ratio: float | None
    low: float | None
    high: float | None
    blocks: int


class RungDocument(RatioInterval):
    """A rung: its levels of what steps exchange (``cell``), and the metric its trials are read by."""

    cell: str
    metric: str
    trials: int
    valid: int
    checks: dict[str, int]


class StepDocument(RatioInterval):
    """A step: what it exchanges, and by how many times it changes the ratio."""

    step: str
    title: str
    exchange: dict[str, list[str]]
    threat: str
    source: str
    why: str
    p_holm: float | None
    counts: bool


class StepOrderDocument(TypedDict):
    """A step before the other one and after it; ``interaction`` is after : before."""

    step: str
    before: RatioInterval
    after: RatioInterval
    interaction: RatioInterval


class LadderEndDocument(RatioInterval):
    """An end of the ladder put to the claim."""

    state: str


class LadderDocument(TypedDict):
    """``ladder.json``."""

    ladder: str
    title: str
    claim: str
    study: str
    text: str
    source: str
    quote: str
    arm: str
    to: str
    metric: str
    published: str
    published_range: list[float] | None
    lacks: list[str]
    answer: str
    reason: str
    then: LadderEndDocument
    now: LadderEndDocument
    rungs: list[RungDocument]
    steps: list[StepDocument]
    whole: RatioInterval
    sum: RatioInterval
    left: RatioInterval
    meets: bool | None
    rounds: int
    complete: int
    orders: list[StepOrderDocument]
    no_orders: str
    margin: float
    confidence: float
    seed: int
    runs: list[str]


class LadderText(TypedDict):
    """The file of a ladder, as it was when the ladder was begun."""

    file: str
    text: str


class LaddersRequest(TypedDict):
    """What it takes to go on with ladders, as their folder keeps it (``ladders.json``)."""

    ladders: dict[str, LadderText]
    depth: Literal["quick", "full"]
    blocks: int | None
    seed: int
    began: str
    argv: list[str]
