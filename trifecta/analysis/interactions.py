"""A protocol that is slow behind one server only: a difference of programs, which one server alone cannot show.

In one place, and with one client, the effect of a protocol is taken behind two servers. Cells take turns and block n of
both has the same seed, so their effects are compared block by block, with the test of the verdicts (confidence.py): its
e-values may be looked at at any time, and e-BH (family.py) keeps the share of false ones among all that are named. One
is named when the two effects differ by more than the study's margin.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.confidence import judge, log_e_above, log_e_below, median_log_ratio
from trifecta.analysis.estimate import Row, by_cell, log_value, pair_blocks, usable
from trifecta.analysis.family import claims, log_e_to_claim
from trifecta.analysis.programs import place_of, program_of, programs_are_arms
from trifecta.design import plan
from trifecta.design.metric import Metric
from trifecta.design.metrics import METRICS
from trifecta.design.model import AA_SUFFIX, Study

PARTS = ("connect_p50_ns", "tls_p50_ns", "wait_p50_ns", "transfer_p50_ns")


@dataclass(frozen=True)
class ServerGap:
    """How much longer one protocol takes behind a server than behind the other one.

    ``ratio``: median over blocks, of the study's metric. ``more``: the same as a difference, in the metric's unit.
    ``part`` and ``part_ns``: the phase of a request that differs most, if the metric is a time and phases are known.
    """

    arm: str
    ratio: float
    more: float
    part: str | None = None
    part_ns: float = 0.0


@dataclass(frozen=True)
class Interaction:
    """An effect (arm to reference) that is ``ratio`` times as large behind ``server`` as behind ``other``.

    ``server`` is the one behind which the odd protocol takes longer (of a rate: has less). ``odd`` is the protocol
    whose own values differ more between the two servers, ``even`` the other one of the pair.
    """

    place: str
    client: str
    arm: str
    reference: str
    server: str
    other: str
    ratio: float
    low: float | None
    high: float | None
    blocks: int
    odd: ServerGap
    even: ServerGap


def interactions(study: Study, rows: Sequence[Row], metric: str | None = None) -> list[Interaction]:
    """Every server whose protocol stands apart beyond the margin, the largest first; empty with one server, and where
    servers or clients are what is compared.
    """
    if programs_are_arms(study):
        return []
    chosen, alpha, margin = METRICS[metric or study.metric], 1 - study.confidence, math.log1p(study.margin)
    cells = by_cell(rows)
    baseline = study.baseline.level
    arms = plan.other_levels(study)
    homes: dict[tuple[str, str], list[str]] = {}
    for cell, here in cells.items():
        homes.setdefault((place_of(cell), program_of(here[0]).client), []).append(cell)
    measured: list[tuple[float, tuple[str, str], str, tuple[str, str], NDArray[np.float64]]] = []
    for home, there in homes.items():
        for pair in combinations(there, 2):
            for arm in arms:
                effects = [_effects(cell, cells[cell], chosen, arm, baseline) for cell in pair]
                shared = sorted(effects[0].keys() & effects[1].keys())
                logs = np.array([[one[block] for one in effects] for block in shared]).reshape(-1, 2)
                best = max(log_e_above(logs, np.array([margin]))[0], log_e_below(logs, np.array([-margin]))[0])
                measured.append((float(best), home, arm, pair, logs))
    count = claims(np.array([one[0] for one in measured]), alpha) if measured else 0
    if not count:
        return []
    needed = log_e_to_claim(len(measured), count, alpha) - 1e-9
    described = [
        _described(home, arm, baseline, pair, logs, cells=cells, metric=chosen, alpha=alpha)
        for best, home, arm, pair, logs in measured
        if best >= needed
    ]
    return sorted((one for one in described if one is not None), key=lambda one: -abs(math.log(one.ratio)))


def _effects(cell: str, rows: Sequence[Row], metric: Metric, arm: str, baseline: str) -> dict[int, float]:
    """By block the log ratio of the arm to the baseline's runs; only blocks where it is finite."""
    ratio_by_block = {}
    for block in {int(row["block"]) for row in rows}:
        here = [row for row in rows if int(row["block"]) == block]
        ratios = pair_blocks(cell, here, metric, arm=arm, reference=baseline, baseline=baseline).log_ratios()
        if len(ratios) and math.isfinite(ratios[0]):
            ratio_by_block[block] = float(ratios[0])
    return ratio_by_block


def _described(
    home: tuple[str, str],
    arm: str,
    baseline: str,
    pair: tuple[str, str],
    logs: NDArray[np.float64],
    *,
    cells: Mapping[str, Sequence[Row]],
    metric: Metric,
    alpha: float,
) -> Interaction | None:
    of_arms = [_server_gap(cells[pair[0]], cells[pair[1]], one, metric) for one in (arm, baseline)]
    odd, even = sorted(of_arms, key=lambda one: -abs(math.log(one.ratio)))
    first, second = pair
    if (odd.ratio > 1) != metric.lower_is_better:  # told of the server behind which the protocol does worse
        first, second, logs = second, first, logs[:, ::-1].copy()
        odd, even = (_server_gap(cells[first], cells[second], one.arm, metric) for one in (odd, even))
    interval, middle = judge(np.ascontiguousarray(logs), alpha).interval, median_log_ratio(logs)
    if middle is None:
        return None
    return Interaction(
        *home,
        arm,
        baseline,
        program_of(cells[first][0]).server,
        program_of(cells[second][0]).server,
        math.exp(middle),
        None if interval.low is None else math.exp(interval.low),
        None if interval.high is None else math.exp(interval.high),
        len(logs),
        odd,
        even,
    )


def _server_gap(first: Sequence[Row], second: Sequence[Row], arm: str, metric: Metric) -> ServerGap:
    own, others = _values(first, arm, metric), _values(second, arm, metric)
    ratio = math.exp(_median(own) - _median(others))
    more = math.exp(_median(own)) - math.exp(_median(others))
    if metric.unit != "ns":
        return ServerGap(arm, ratio, more)
    phases = {
        part: math.exp(_median(here)) - math.exp(_median(there))
        for part in PARTS
        if (here := _values(first, arm, METRICS[part])) and (there := _values(second, arm, METRICS[part]))
    }
    part = max(phases, key=lambda name: abs(phases[name]), default=None)
    return ServerGap(arm, ratio, more, part, phases.get(part or "", 0.0))


def _values(rows: Sequence[Row], arm: str, metric: Metric) -> list[float]:
    """Logs of the values of usable trials of a protocol, both runs of the baseline; finite ones."""
    logs = [log_value(row, metric) for row in rows if usable(row) and str(row["arm"]).removesuffix(AA_SUFFIX) == arm]
    return [one for one in logs if math.isfinite(one)]


def _median(values: Sequence[float]) -> float:
    return float(np.median(values))
