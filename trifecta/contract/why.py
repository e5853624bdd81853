"""Causes by intervention as measured (``why.json``) and what was asked for; docs/why.md describes the fields."""

from __future__ import annotations

from typing import Literal, TypedDict

from trifecta.contract.ladder import RatioInterval


class ShareDocument(TypedDict):
    """Which part of the log effect; None where it is not bounded."""

    share: float | None
    share_low: float | None
    share_high: float | None


class CauseDocument(RatioInterval, ShareDocument):
    """A cause removed; the ratio is that of what remains, ``change`` by how many times the cause had made it.

    ``only``: the arm that alone meets what is exchanged; empty where both do. ``remains_`` and ``family_``: the ends of
    what remains and of ``change`` that hold for all causes at once. ``censored``: blocks without a value because too
    much failed in them.
    """

    cause: str
    title: str
    exchange: dict[str, list[str]]
    only: str
    suspicion: float
    suspected: str
    cannot: str
    nearest: bool
    change: RatioInterval
    remains_low: float | None
    remains_high: float | None
    family_low: float | None
    family_high: float | None
    state: Literal["explains", "hides", "nothing", "open"]
    trials: int
    valid: int
    checks: dict[str, int]
    censored: int


class NotMeasured(TypedDict):
    """A cause that was not measured, and why."""

    cause: str
    title: str
    why: str


class CauseOrderDocument(TypedDict):
    """One of the two largest: what remains without it alone, and what its removal does before the other and after."""

    cause: str
    remains: RatioInterval
    before: RatioInterval
    after: RatioInterval


class JointRemovalDocument(ShareDocument):
    """The two largest alone and together, and without all that are named (``causes``), in rounds of their own.

    ``left`` is the share that these do not explain. Where no other cause goes with the largest, ``orders`` is empty,
    and it alone is removed.
    """

    effect: RatioInterval
    orders: list[CauseOrderDocument]
    both: RatioInterval | None
    interaction: RatioInterval | None
    causes: list[str]
    remains: RatioInterval
    censored: int
    left: ShareDocument


class WhyDocument(TypedDict):
    """``why.json``.

    ``rounds`` are whole, of those that were ``planned``; ``trials`` and what follows it are of the cell as it is,
    ``censored`` also of that on the nearest stack.
    """

    run: str
    study: str
    cell: str
    compare: str
    arm: str
    to: str
    metric: str
    lower_is_better: bool
    effect: RatioInterval
    nearest: RatioInterval | None
    told_apart: bool
    causes: list[CauseDocument]
    not_switched: list[NotMeasured]
    not_measured: list[NotMeasured]
    together: JointRemovalDocument | None
    no_together: str
    rounds: int
    planned: int
    trials: int
    valid: int
    checks: dict[str, int]
    censored: int
    margin: float
    confidence: float
    budget_s: float
    seed: int
    runs: list[str]


class CauseRequest(TypedDict):
    """A cause to measure, as its suspicion was when the search was begun."""

    cause: str
    suspicion: float
    suspected: str
    levels: dict[str, str]
    path: dict[str, str | bool | None]
    nearest: bool


class WhyRequest(TypedDict):
    """What it takes to go on, as the folder keeps it (``why-asked.json``)."""

    run: str
    study: str
    cell: str
    arm: str
    to: str
    budget_s: float
    block_s: float
    rounds: int
    seed: int
    causes: list[CauseRequest]
    not_switched: list[NotMeasured]
    not_measured: list[NotMeasured]
    began: str
    argv: list[str]
