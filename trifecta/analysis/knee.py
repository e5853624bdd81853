"""From which request rate on a program is measured instead of what it speaks: a sweep of the rates asked of it.

The cells of a study with the factor ``rate`` that differ in nothing else are one *sweep*. Of each protocol, rate by
rate: the median latency, and what it is compared with. That is the same sweep without the limit (``client_cpu`` or
``server_cpu`` none) where the study has it, else the sweep's own lowest rate. A rate *departs* when the interval of
that ratio lies above the margin (Welch, over blocks), when requests failed for most of them to be late without end, or
when the check warned or failed in more than half of its trials and the program used half of its CPU time (else the
machine was short of it); it *keeps up* when the whole interval lies below the margin.

The *knee* is where it departs for good. Its interval reaches from the last rate up to which all keep up to the first
from which on all depart: rates that are open widen it.

Trials count that the check leaves out of verdicts, and those without a steady state: latencies that grow from the first
request to the last are what a program that cannot keep up looks like. Those that another check leaves out do not.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from trifecta.analysis.checks.cpu_utilization import client_busy, server_busy
from trifecta.analysis.contrasts import Contrast, contrast
from trifecta.analysis.estimate import Row, by_cell
from trifecta.analysis.means import block_logs, geometric_mean
from trifecta.analysis.switched import spoke_up, tolerated
from trifecta.contract.stored import Load, RanWithShare, Server
from trifecta.design import plan
from trifecta.design.metrics import METRICS
from trifecta.design.model import AA_SUFFIX, Cell, Study

RATE = "rate"
STEADY = "steady_state"
HALF = 0.5  # of its CPU time: a program that used less was not short of it by itself
LIMITS = ("client_cpu", "server_cpu")
State = Literal["keeps up", "departs", "open"]
_LATENCY, _DONE = METRICS["latency_p50_ns"], METRICS["requests_per_s"]


@dataclass(frozen=True)
class Step:
    """One rate of a sweep over one protocol. ``ratio`` is to what it is compared with; None where that is itself.

    ``trials`` are those that count, ``loud`` those of them in which the check warned or failed. ``used``: the larger
    share that client or server used of the CPU time it was given, the mean over trials; None where it is not known.
    """

    rate_per_s: float
    latency_ns: float | None
    latency_low_ns: float | None
    latency_high_ns: float | None
    against_ns: float | None
    ratio: float | None
    low: float | None
    high: float | None
    done_per_s: float | None
    used: float | None
    loud: int
    trials: int
    state: State


@dataclass(frozen=True)
class Knee:
    """A sweep over one protocol. ``low`` None: no rate keeps up; ``high`` None: none departs for good.

    ``most_per_s`` is the largest number of requests that were answered in a second, at any rate, with its interval.
    """

    place: str
    levels: Mapping[str, str]
    arm: str
    against: str
    """What latencies are compared with: the same without the limit, or the lowest rate."""
    low: float | None
    high: float | None
    most_per_s: float | None
    most_low: float | None
    most_high: float | None
    steps: tuple[Step, ...]


def knees(study: Study, rows: Sequence[Row], check: str) -> list[Knee]:
    """Every sweep of the study over every protocol; none without the factor ``rate``."""
    sweeps = _sweeps(study)
    grouped = by_cell(tolerated(rows, {check, STEADY}))
    varying = _varying(list(sweeps))
    all_knees = []
    for place, cells in sweeps.items():
        other = sweeps.get(_without_limit(place))
        twin = None if other is cells else other
        for arm in plan.levels_of(study):
            steps = _steps(study, grouped, arm, check, (cells, twin))
            if any(step.trials for step in steps):
                shown = {name: level for name, level in place if name in varying}
                all_knees.append(
                    _knee(study, grouped, arm, cells=cells, steps=steps, levels=shown, limited=twin is not None)
                )
    return all_knees


Place = tuple[tuple[str, str], ...]


def _sweeps(study: Study) -> dict[Place, list[Cell]]:
    """The cells by the levels of their factors but the rate, in the order of their rates."""
    sweeps: dict[Place, list[Cell]] = {}
    if RATE not in study.factors or study.compare == RATE:  # rates that are compared are no sweep
        return sweeps
    for cell in plan.cells(study):
        own = tuple((name, plan.level_text(level)) for name, level in cell.levels.items() if name != RATE)
        sweeps.setdefault(own, []).append(cell)
    return {place: sorted(cells, key=lambda cell: _rate(study, cell)) for place, cells in sweeps.items()}


def _rate(study: Study, cell: Cell) -> float:
    return plan.workload_for(study, plan.treatments_of(study, cell)[0]).rate_per_s or 0.0


def _without_limit(place: Place) -> Place:
    return tuple((name, "none" if name in LIMITS else level) for name, level in place)


def _varying(places: Sequence[Place]) -> set[str]:
    return {name for place in places for name, level in place if any(dict(other)[name] != level for other in places)}


def _steps(
    study: Study,
    grouped: Mapping[str, Sequence[Row]],
    arm: str,
    check: str,
    sides: tuple[Sequence[Cell], Sequence[Cell] | None],
) -> list[Step]:
    cells, twins = sides
    steps = []
    for number, cell in enumerate(cells):
        here = grouped.get(cell.key, [])
        against = twins[number] if twins is not None else cells[0]
        logs = block_logs(here, _LATENCY, arm)
        other = block_logs(grouped.get(against.key, []), _LATENCY, arm)
        itself = against.key == cell.key
        step = Contrast(None, None, None, None, 0, 0) if itself else contrast(logs, other, study.confidence)
        own = _of_arm(here, arm)
        loud = sum(spoke_up(row, check) for row in own)
        used = [share for row in own if (share := used_share(row)) is not None]
        own_latency = geometric_mean(logs, study.confidence)
        endless = bool(len(logs)) and float(np.mean(np.isinf(logs))) > 0.5
        share = float(np.mean(used)) if used else None
        short = 2 * loud > len(own) and (share is None or share >= HALF)
        steps.append(
            Step(
                rate_per_s=_rate(study, cell),
                latency_ns=own_latency.value,
                latency_low_ns=own_latency.low,
                latency_high_ns=own_latency.high,
                against_ns=None if itself else geometric_mean(other, study.confidence).value,
                ratio=step.ratio,
                low=step.low,
                high=step.high,
                done_per_s=geometric_mean(block_logs(here, _DONE, arm), study.confidence).value,
                used=share,
                loud=loud,
                trials=len(own),
                state=_state(step, study.margin, departs=endless or short, itself=itself),
            )
        )
    return steps


def _of_arm(rows: Sequence[Row], arm: str) -> list[Row]:
    return [row for row in rows if str(row["arm"]) in (arm, arm + AA_SUFFIX) and row.get("valid")]


def _state(contrast: Contrast, margin: float, *, departs: bool, itself: bool) -> State:
    if departs or (contrast.low is not None and contrast.low > 1 + margin):
        return "departs"
    if itself or (contrast.high is not None and contrast.high <= 1 + margin):
        return "keeps up"
    return "open"


def _knee(
    study: Study,
    grouped: Mapping[str, Sequence[Row]],
    arm: str,
    *,
    cells: Sequence[Cell],
    steps: Sequence[Step],
    levels: Mapping[str, str],
    limited: bool,
) -> Knee:
    low, high = bracket([(step.rate_per_s, step.state) for step in steps if step.trials])
    means = [geometric_mean(block_logs(grouped.get(cell.key, []), _DONE, arm), study.confidence) for cell in cells]
    most = max(means, key=lambda mean: mean.value or 0.0)
    return Knee(
        place=", ".join(f"{name} {level}" for name, level in levels.items()),
        levels=levels,
        arm=arm,
        against="without the limit" if limited else "at the lowest rate",
        low=low,
        high=high,
        most_per_s=most.value,
        most_low=most.low,
        most_high=most.high,
        steps=tuple(steps),
    )


def bracket(states: Sequence[tuple[float, State]]) -> tuple[float | None, float | None]:
    """The last rate up to which all keep up, and the first from which on all depart; the rates rise."""
    low = high = None
    for rate, state in states:
        if state != "keeps up":
            break
        low = rate
    for rate, state in reversed(states):
        if state != "departs":
            break
        high = rate
    return low, high


def used_share(row: Row) -> float | None:
    """What client or server used of the CPU time that it was given, whichever is more, as the check `headroom` has it:
    from the first request to the last, without what the start of the client took.
    """
    load = cast(Load, json.loads(row.get("load_json") or "null") or {})
    server = cast(Server, json.loads(row.get("server_json") or "null") or {})
    busy: tuple[tuple[float | None, RanWithShare], ...] = (
        (client_busy(load), load),
        (server_busy(server, load), server),
    )
    shares = [share / _given(program) for share, program in busy if share is not None]
    return max(shares) if shares and math.isfinite(max(shares)) else None


def _given(program: RanWithShare) -> float:
    return float(program.get("cpu_share") or 1.0)
