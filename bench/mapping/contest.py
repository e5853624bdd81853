"""What is compared: a map and the grid of its places, judged by blocks of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trifecta.design.mapping import MapPlan, read_plan


@dataclass(frozen=True)
class Contest:
    """What is compared: a map of so many blocks with the grid of its places, judged by so many blocks held out."""

    plan: MapPlan
    held_out: int
    seed: int

    def document(self) -> dict[str, Any]:
        """For ``run.json``."""
        return {"plan": self.plan.document(), "held_out": self.held_out, "seed": self.seed}


def read_contest(document: Mapping[str, Any]) -> Contest:
    """What :meth:`Contest.document` wrote."""
    return Contest(read_plan(document["plan"]), int(document["held_out"]), int(document["seed"]))
