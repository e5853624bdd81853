"""``map.json``: what a map's folder keeps of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict, cast

import numpy as np

from trifecta.analysis.mapping.likelihood import UNKNOWNS, UNKNOWNS_OF_NODES, Data
from trifecta.analysis.mapping.search import Outcome
from trifecta.analysis.mapping.surface import Surface
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


class SurfaceDocument(TypedDict):
    """A surface in ``map.json``: what was drawn of each of the unknowns, and the data that it was drawn from."""

    unknowns: list[str]
    draws: list[list[float]]
    places: list[list[float]]
    means: list[float]
    squares: list[float]
    counts: list[float]
    at: NotRequired[list[int]]
    """Where there are several nodes: the place of each mean, by its number."""
    nodes: NotRequired[list[int]]
    """Its node."""
    between_nodes: NotRequired[list[float]]
    """Draws of the standard deviation between nodes."""


class NodesDocument(TypedDict):
    """Of a map measured on several nodes of a cluster: their number, and the standard deviation of the log speed-up
    between them, with its interval.
    """

    count: int
    differ_by: float
    low: float
    high: float


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
    nodes: NotRequired[NodesDocument]
    """Where blocks were measured on several."""
    about: dict[str, Any]


def surface_document(surface: Surface) -> SurfaceDocument:
    """Numbers that :func:`read_surface` reads back."""
    data = surface.data
    document: SurfaceDocument = {
        "unknowns": list(UNKNOWNS if data.nodes is None else UNKNOWNS_OF_NODES),
        "draws": surface.draws.tolist(),
        "places": data.places.tolist(),
        "means": data.means.tolist(),
        "squares": data.squares.tolist(),
        "counts": data.counts.tolist(),
    }
    if data.nodes is not None and surface.between is not None:
        document["at"], document["nodes"] = data.at.tolist(), data.nodes.tolist()
        document["between_nodes"] = surface.between.tolist()
    return document


def read_surface(document: SurfaceDocument) -> Surface:
    """The surface that was written; ValueError or KeyError where the document is none."""
    several = "nodes" in document
    unknowns = UNKNOWNS_OF_NODES if several else UNKNOWNS
    if document["unknowns"] != list(unknowns):
        raise ValueError("the surface has other unknowns than this version of Trifecta")
    columns = cast(Mapping[str, list[float]], document)
    parts = {
        name: np.array(columns[name], dtype=np.float64) for name in ("places", "means", "squares", "counts", "draws")
    }
    draws, places = parts.pop("draws"), parts["places"]
    count = len(parts["means"])
    good = bool(count) and len(places) > 0 and all(np.isfinite(one).all() for one in (*parts.values(), draws))
    good = good and places.shape == (len(places), 2) and (several or len(places) == count)
    good = good and all(parts[name].shape == (count,) for name in ("means", "squares", "counts"))
    good = good and draws.ndim == 2 and draws.shape[1] == len(unknowns)
    samples = (parts["means"], parts["squares"], parts["counts"])
    if good and not several:
        return Surface(Data(places, *samples, at=np.arange(count)), draws)
    if good:
        at, nodes = np.array(document["at"], dtype=np.intp), np.array(document["nodes"], dtype=np.intp)
        between = np.array(document["between_nodes"], dtype=np.float64)
        good = at.shape == nodes.shape == (count,) and bool(((at >= 0) & (at < len(places)) & (nodes >= 0)).all())
        if good and len(between) and np.isfinite(between).all():
            return Surface(Data(places, *samples, at=at, nodes=nodes), draws, between)
    raise ValueError("the surface is damaged")
