"""What is measured of a threat, as ``threats.json`` and ``reproduction.json`` have it (docs/threats.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict, final

from trifecta.contract.values import JsonObject


class MeanDocument(TypedDict):
    """A value, or a ratio, at one level of what was switched, over blocks."""

    value: float | None
    low: float | None
    high: float | None
    blocks: int


class EffectRow(TypedDict):
    """What a switch does to a protocol (``reference`` None), or to its ratio to the reference, in one place."""

    place: str
    levels: Mapping[str, str]
    arm: str
    reference: str | None
    off: MeanDocument | None
    on: MeanDocument | None
    ratio: float | None
    low: float | None
    high: float | None
    p_holm: float | None
    outcome: str
    blocks: int


class DetectedBy(TypedDict):
    """In how many trials at each level a check said that something is wrong."""

    check: str
    off: int
    off_trials: int
    on: int
    on_trials: int


class TrialsLeftOut(TypedDict):
    """How many trials do not count, and in how many of them which check failed."""

    count: int
    trials: int
    checks: Mapping[str, int]


class EffectDocument(TypedDict, total=False):
    """One effect of a threat on a metric: what was switched, and a row a place and comparison."""

    title: str
    factor: str
    off: str
    on: str
    metric: str
    metric_label: str
    unit: str
    lower_is_better: bool
    baseline: str
    margin: float
    confidence: float
    cell: str
    detected: DetectedBy | None
    left_out: TrialsLeftOut
    rows: list[EffectRow]


@final
class RoundTripsDocument(TypedDict):
    """What round trips alone would make of a ratio, and what was measured: `analysis.round_trips.Explained`."""

    cell: str
    levels: Mapping[str, str]
    arm: str
    reference: str
    trips: tuple[int, int]
    expected: float | None
    ratio: float | None
    low: float | None
    high: float | None


@final
class KneeDocument(TypedDict):
    """A sweep of request rates over one protocol: `analysis.knee.Knee`."""

    place: str
    levels: Mapping[str, str]
    arm: str
    against: str
    low: float | None
    high: float | None
    most_per_s: float | None
    most_low: float | None
    most_high: float | None
    steps: list[JsonObject]


class ShareDocument(TypedDict):
    """A part of an effect: `analysis.shares.Share`."""

    part: str
    share: float
    low: float
    high: float


@final
class DecompositionDocument(TypedDict):
    """The effect of an arm in a place, split into its parts: `analysis.shares.Decomposition`."""

    place: str
    arm: str
    reference: str
    shares: list[ShareDocument]


class ThreatDocument(TypedDict, total=False):
    """A threat with what its experiments, or its procedure carried out on our samples, showed."""

    threat: str
    title: str
    fact: str
    studies: list[str]
    check: str | None
    undetected: str
    outcome: str
    reason: str
    runs: list[str]
    effects: list[EffectDocument]
    model: list[RoundTripsDocument | KneeDocument | DecompositionDocument]
    resampled: list[JsonObject]
