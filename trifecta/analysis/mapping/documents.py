"""``map.json``: what a map's folder keeps of it."""

from __future__ import annotations

from typing import Any, TypedDict

from trifecta.analysis.mapping.search import Outcome
from trifecta.analysis.mapping.surface import SurfaceDocument
from trifecta.contract.run import MapPlanDocument


class Division(TypedDict, total=False):
    """How the plane is divided: the share of places by outcome, and the expected share of wrong sides."""

    faster: float
    slower: float
    same: float
    open: float
    expected_wrong_sides: float


class NoiseDocument(TypedDict):
    """The fields of `result.Noise`."""

    blocks: int
    ratio: float | None
    low: float | None
    high: float | None
    biased: bool


class SpotDocument(TypedDict):
    """The fields of `result.Spot`; beside them its place by the names of both axes, in words."""

    place: int
    values: list[float]
    failed: int
    reasons: dict[str, int]


class PlaceDocument(TypedDict):
    """What the map says at a place of its grid; beside that the place by the names of both axes, in words."""

    outcome: Outcome
    speed_up: float
    low: float
    high: float
    probability_arm_faster: float


class MapDocument(TypedDict):
    """``map.json`` (docs/map.md)."""

    format: int
    plan: MapPlanDocument
    traffic: str
    metric: str
    margin: float
    confidence: float
    blocks: int
    trials: int
    invalid_trials: int
    ending: str
    noise: NoiseDocument
    summary: Division
    places: list[PlaceDocument]
    spots: list[SpotDocument]
    surface: SurfaceDocument | None
    about: dict[str, Any]
