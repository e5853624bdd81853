"""A map's answer: who wins at each place, at any place between, how sure, and on which trials it rests."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from trifecta.analysis.estimate import Row
from trifecta.analysis.mapping.documents import (
    Division,
    MapDocument,
    NodesDocument,
    NoiseDocument,
    PlaceDocument,
    SpotDocument,
    read_surface,
    surface_document,
)
from trifecta.analysis.mapping.likelihood import Floats
from trifecta.analysis.mapping.noise import Noise, noise_of
from trifecta.analysis.mapping.planner import Block, MapBlocks, blocks_of_rows
from trifecta.analysis.mapping.search import Outcome, PlaceIntervals, judge, sides_of
from trifecta.analysis.mapping.surface import Surface, fit
from trifecta.contract.values import JsonObject
from trifecta.design.errors import UserError
from trifecta.design.mapping import MapPlan, read_plan, traffic
from trifecta.design.model import Study

FORMAT = 1


@dataclass(frozen=True)
class Spot:
    """A place where blocks were made: how many count, their log speed-ups, and what kept the others from counting."""

    place: int
    values: tuple[float, ...]
    failed: int
    reasons: dict[str, int] = field(default_factory=dict)
    """Check that failed: in how many trials."""


@dataclass(frozen=True)
class MapResult:
    """Everything that is known of a map."""

    plan: MapPlan
    traffic: str
    metric: str
    margin: float
    confidence: float
    spots: list[Spot]
    noise: Noise
    surface: Surface | None
    blocks: int
    trials: int
    invalid_trials: int
    ending: str = ""
    about: dict[str, Any] = field(default_factory=dict)

    def sides(self) -> PlaceIntervals | None:
        """Every place of the grid; None where no block counts."""
        return None if self.surface is None else self.sides_at(np.array(self.plan.shares()))

    def fine(self, places: int) -> tuple[Floats, PlaceIntervals]:
        """So many places on each axis, as shares, where a block counts; the second axis is the outer one."""
        steps = np.linspace(0, 1, places)
        return steps, self.sides_at(np.array([(x, y) for y in steps for x in steps]))

    def sides_at(self, places: Floats) -> PlaceIntervals:
        """Any places, as shares of both axes (places, 2), where a block counts."""
        assert self.surface is not None
        return sides_of(self.surface, places, self.margin, self.confidence, self.noise.floor)

    def at(self, x: float, y: float) -> PlaceEstimate:
        """The answer at values of both axes, between the places too; UserError where no block counts."""
        if self.surface is None:
            raise UserError("the map has no block that counts; see its page for the checks that failed")
        share = np.array([[self.plan.x.share(x), self.plan.y.share(y)]])
        sides = self.sides_at(share)
        nearby, near = self._near(share[0])
        return PlaceEstimate(
            map=self,
            x=x,
            y=y,
            mean=float(sides.mean[0]),
            low=float(sides.low[0]),
            high=float(sides.high[0]),
            probability=float(sides.above[0]),
            nearby=nearby,
            near=near,
        )

    def _near(self, share: Floats) -> tuple[list[Spot], bool]:
        """The spots within a step and a half of the grid, else the nearest three; and whether they are near."""
        shares = np.array(self.plan.shares())
        steps = np.array([1.5 / max(1, len(axis.values) - 1) for axis in (self.plan.x, self.plan.y)])
        away = [np.abs((shares[spot.place] - share) / steps).max() for spot in self.spots]
        order = np.argsort(away)
        close = [self.spots[i] for i in order if away[i] <= 1]
        return close or [self.spots[i] for i in order[:3]], bool(close)

    def outcome_of_border(self) -> Division:
        """How the plane is divided: share of the places by outcome, and the expected share of wrong sides."""
        sides = self.sides()
        if sides is None:
            return {}
        counts: Counter[str] = Counter(sides.outcomes)
        total = len(sides.outcomes)
        return {
            "faster": counts["faster"] / total,
            "slower": counts["slower"] / total,
            "same": counts["same"] / total,
            "open": counts["open"] / total,
            "expected_wrong_sides": sides.expected_wrong(),
        }

    def document(self) -> MapDocument:
        """``map.json``."""
        sides = self.sides()
        places = [] if sides is None else _places(self.plan, sides)
        document: MapDocument = {
            "format": FORMAT,
            "plan": self.plan.document(),
            "traffic": self.traffic,
            "metric": self.metric,
            "margin": self.margin,
            "confidence": self.confidence,
            "blocks": self.blocks,
            "trials": self.trials,
            "invalid_trials": self.invalid_trials,
            "ending": self.ending,
            "noise": cast(NoiseDocument, vars(self.noise)),
            "summary": self.outcome_of_border(),
            "places": places,
            "spots": [_spot(self.plan, spot) for spot in self.spots],
            "surface": None if self.surface is None else surface_document(self.surface),
            "about": self.about,
        }
        if (nodes := self.nodes()) is not None:
            document["nodes"] = nodes
        return document

    def nodes(self) -> NodesDocument | None:
        """How many nodes of a cluster its blocks are of, and by how much these differ; None where it is one."""
        differ = None if self.surface is None else self.surface.between_nodes(self.confidence)
        if self.surface is None or differ is None:
            return None
        middle, low, high = differ
        return {"count": len(self.surface.data.all_nodes), "differ_by": middle, "low": low, "high": high}


@dataclass(frozen=True)
class PlaceEstimate:
    """What the map says at one place; logs of the speed-up of the arm over the reference."""

    map: MapResult
    x: float
    y: float
    mean: float
    low: float
    high: float
    probability: float
    nearby: list[Spot]
    near: bool = True
    """Whether these spots are near; else they are the nearest."""

    @property
    def outcome(self) -> Outcome:
        """Who wins here."""
        return judge(self.low, self.high, margin=self.map.margin, floor=self.map.noise.floor)

    @property
    def winner(self) -> str | None:
        """The protocol that wins, or None."""
        return {"faster": self.map.plan.arm, "slower": self.map.plan.reference}.get(self.outcome)

    def factors(self) -> tuple[float, float]:
        """How many times faster the winner is, from and to; without a winner the arm's speed-up."""
        low, high = (-self.high, -self.low) if self.outcome == "slower" else (self.low, self.high)
        return math.exp(low), math.exp(high)

    def checks(self) -> tuple[int, int, dict[str, int]]:
        """Blocks nearby that count, those that do not, and the checks that failed in their trials."""
        reasons: Counter[str] = Counter()
        for spot in self.nearby:
            reasons.update(spot.reasons)
        return (sum(len(spot.values) for spot in self.nearby), sum(spot.failed for spot in self.nearby), dict(reasons))

    def document(self) -> JsonObject:
        """The answer for a program."""
        counted, failed, reasons = self.checks()
        low, high = self.factors()
        return {
            self.map.plan.x.name: self.map.plan.x.kind.format(self.x),
            self.map.plan.y.name: self.map.plan.y.kind.format(self.y),
            "traffic": self.map.traffic,
            "metric": self.map.metric,
            "arm": self.map.plan.arm,
            "reference": self.map.plan.reference,
            "outcome": self.outcome,
            "winner": self.winner,
            "times_faster": [low, high],
            "speed_up": {"mean": math.exp(self.mean), "low": math.exp(self.low), "high": math.exp(self.high)},
            "probability_arm_faster": self.probability,
            "confidence": self.map.confidence,
            "nearby": self.near,
            "blocks_nearby": counted,
            "blocks_failed_nearby": failed,
            "checks_failed": reasons,
        }


def work_out(plan: MapPlan, study: Study, rows: Sequence[Row], *, ending: str = "", about: Any = None) -> MapResult:
    """The map that the rows of ``trials`` give."""
    measured_blocks = blocks_of_rows(plan, study, rows)
    points = measured_blocks.points()
    return MapResult(
        plan=plan,
        traffic=traffic(study),
        metric=study.metric,
        margin=study.margin,
        confidence=study.confidence,
        spots=_spots(measured_blocks),
        noise=noise_of(study, [block.trials for block in measured_blocks.blocks]),
        surface=fit(points, several=measured_blocks.several) if points else None,
        blocks=len(measured_blocks.blocks),
        trials=len(rows),
        invalid_trials=sum(not row.get("valid") for row in rows),
        ending=ending,
        about=dict(about or {}),
    )


def read(document: MapDocument) -> MapResult:
    """A map that was written; UserError when it is none."""
    try:
        if document["format"] != FORMAT:
            raise ValueError(f"format {document['format']}")
        return MapResult(
            plan=read_plan(document["plan"]),
            traffic=str(document["traffic"]),
            metric=str(document["metric"]),
            margin=float(document["margin"]),
            confidence=float(document["confidence"]),
            spots=[
                Spot(int(one["place"]), tuple(map(float, one["values"])), int(one["failed"]), dict(one["reasons"]))
                for one in document["spots"]
            ],
            noise=Noise(**document["noise"]),
            surface=None if document["surface"] is None else read_surface(document["surface"]),
            blocks=int(document["blocks"]),
            trials=int(document["trials"]),
            invalid_trials=int(document["invalid_trials"]),
            ending=str(document["ending"]),
            about=dict(document["about"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        what = " ".join(str(error).split())[:80]
        raise UserError(
            f"map.json: is not a map of this version of Trifecta ({what}); run 'trifecta map DIR' to write it again"
        ) from None


def _spots(measured: MapBlocks) -> list[Spot]:
    by_place: dict[int, list[Block]] = {}
    for block in measured.blocks:
        by_place.setdefault(block.place, []).append(block)
    spots = []
    for place, blocks in sorted(by_place.items()):
        reasons: Counter[str] = Counter()
        for row in (row for block in blocks for row in block.trials if not row.get("valid")):
            reasons.update(_failed_checks(row))
        values = tuple(block.value for block in blocks if block.value is not None)
        spots.append(Spot(place, values, sum(block.value is None for block in blocks), dict(reasons)))
    return spots


def _failed_checks(row: Row) -> list[str]:
    if row.get("error"):
        return ["no samples"]
    return sorted(
        {str(item["check"]) for item in json.loads(row.get("checks_json") or "[]") if item["status"] == "fail"}
    )


def _places(plan: MapPlan, sides: PlaceIntervals) -> list[PlaceDocument]:
    rows = [
        {
            plan.x.name: plan.x.texts[i],
            plan.y.name: plan.y.texts[j],
            "outcome": sides.outcomes[number],
            "speed_up": math.exp(float(sides.mean[number])),
            "low": math.exp(float(sides.low[number])),
            "high": math.exp(float(sides.high[number])),
            "probability_arm_faster": float(sides.above[number]),
        }
        for number, (i, j) in enumerate(plan.places())
    ]
    return cast(list[PlaceDocument], rows)


def _spot(plan: MapPlan, spot: Spot) -> SpotDocument:
    i, j = plan.places()[spot.place]
    document = {
        "place": spot.place,
        plan.x.name: plan.x.texts[i],
        plan.y.name: plan.y.texts[j],
        "values": list(spot.values),
        "failed": spot.failed,
        "reasons": spot.reasons,
    }
    return cast(SpotDocument, document)
