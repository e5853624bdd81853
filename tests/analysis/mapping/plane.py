"""A map without a network: the study, and rows of trials as a known surface would give them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from trifecta import studies
from trifecta.analysis.mapping.planner import MapPlanner
from trifecta.analysis.planner import Decision, Stop
from trifecta.design import plan as design_plan
from trifecta.design.mapping import MapPlan, change_to_map, make_plan
from trifecta.design.model import Study

Truth = Callable[[float, float], float]
SECOND_NS = 1_000_000_000


def a_plan(resolution: str = "8x8", **more: Any) -> MapPlan:
    return make_plan("rtt=5ms..200ms", "loss=0..3%", resolution, "h3,h2", **more)


def a_study(plan: MapPlan, *overrides: str) -> Study:
    return studies.load("objects", change=lambda document: change_to_map(document, plan, overrides))


def rows_of(
    plan: MapPlan, study: Study, decision: Decision, truth: Truth, rng: np.random.Generator, first: int, scatter: float
) -> list[dict[str, Any]]:
    """The trials of a block: the arm's mean latency is the reference's divided by its speed-up."""
    x, y = plan.shares()[plan.place_of(decision.cell)]
    rows = []
    for trial in design_plan.block_trials(study, decision.cell, decision.block, first):
        speed_up = truth(x, y) if trial.protocol == plan.arm else 0.0
        value = 1e8 * math.exp(-speed_up + scatter * float(rng.standard_normal()) / math.sqrt(1.5))
        rows.append(
            {
                "trial": trial.trial, "cell": decision.cell.key, "block": decision.block, "arm": trial.arm,
                "position": trial.position, "latency_mean_ns": value, "samples": 20, "success_rate": 1.0,
                "valid": True,
                "started_ns": first * SECOND_NS, "ended_ns": (first + 1) * SECOND_NS, "checks_json": "[]",
                "error": None,
            }
        )  # fmt: skip
    return rows


def explore(
    plan: MapPlan, study: Study, truth: Truth, *, seed: int = 0, scatter: float = 0.05, most: int = 400
) -> tuple[list[dict[str, Any]], Stop, list[Decision]]:
    """Run the planner against a surface until it stops."""
    rng = np.random.default_rng(seed)
    planner = MapPlanner(plan, study, design_plan.cells(study))
    rows: list[dict[str, Any]] = []
    taken: list[Decision] = []
    for _ in range(most):
        decision = planner.next(rows, len(rows) * SECOND_NS)
        if isinstance(decision, Stop):
            return rows, decision, taken
        taken.append(decision)
        rows += rows_of(plan, study, decision, truth, rng, len(rows), scatter)
    raise AssertionError("the planner does not stop")
