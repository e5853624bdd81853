"""Works out what the report says of services: a table for each of the views that it leaves in the run's folder."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import duckdb
import numpy as np
from numpy.typing import NDArray

from trifecta.analysis import cycles, mixing, scaling
from trifecta.analysis.contrasts import Contrast, adjusted, contrast, contrast_over
from trifecta.analysis.means import block_logs, geometric_mean
from trifecta.analysis.reordering import reorders, variants
from trifecta.analysis.success import Difference, difference, success_rate
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.services import measured
from trifecta.conclude.services.measured import CPU, MEMORY, ServicesRun
from trifecta.contract.trial import TrialRow
from trifecta.design.fields import parse_protocol
from trifecta.design.metric import Metric
from trifecta.design.model import PROTOCOL_FACTOR
from trifecta.design.quantity import QuantityError

Floats = NDArray[np.float64]
EVERYWHERE = "all places"
Row = dict[str, object]
NATIVE = "native"
_COST_COLUMNS = ("cpu_ns_per_1000", "cpu_ns_per_mb", "rss_bytes", "cgroup_memory_bytes")


@dataclass(frozen=True)
class Services:
    """Rows of the derived views, by view; the paths that reorder packets, and those that differ in that alone.

    ``axes`` are what cells can be told along; ``differences`` of success rates by (arm, reference).
    """

    rows: dict[str, list[Row]]
    measured: ServicesRun
    variants: list[tuple[str, str]]
    reordering: list[str]
    axes: list[scaling.Axis]
    differences: dict[tuple[str, str], Difference | None]


def derive(connection: duckdb.DuckDBPyConnection, about: RunFacts) -> Services | None:
    """Work it out from the trials; None when the run is not about services."""
    if not measured.is_services(about):
        return None
    run = measured.read(connection, about)
    in_order = variants(about.study.get("paths") or {})
    rows: dict[str, list[Row]] = {
        "hops": _hops(run),
        "success": _success(run),
        "service_costs": _service_costs(run),
        "contrasts": _contrasts(run, about, in_order),
        "curves": _curves(run),
        "combinations": _combinations(run, about),
    }
    out_of_order = [name for name, path in (about.study.get("paths") or {}).items() if reorders(path)]
    return Services(rows, run, in_order, out_of_order, scaling.axes(run.cells), _differences(run, about))


def _hops(run: ServicesRun) -> list[Row]:
    hop_rows = []
    for cell, rows in run.hops.items():
        for arm in run.arms:
            for part in cycles.parts(rows, arm, run.confidence):
                mean = part.mean
                hop_rows.append(
                    {"cell": cell, "arm": arm, "position": part.position, "name": part.name, "blocks": mean.blocks}
                    | {"value_ns": mean.value, "low_ns": mean.low, "high_ns": mean.high}
                )
    return hop_rows


def _success(run: ServicesRun) -> list[Row]:
    success_rows = []
    for cell, rows in run.trials.items():
        for arm in run.arms:
            here = [row for row in rows if row["arm"] == arm]
            out = [row for row in here if not row["valid"]]
            rate = success_rate([(row["requests"], row["succeeded"]) for row in here if row["valid"]], run.confidence)
            excluded = sum(row["requests"] for row in out)
            row: Row = {"cell": cell, "arm": arm, "requests": rate.requests, "failed": rate.requests - rate.succeeded}
            row |= {name: getattr(rate, name) for name in ("trials", "rate", "low", "high", "design_effect")}
            row |= {"excluded_requests": excluded}
            success_rows.append(row | {"excluded_failed": excluded - sum(row["succeeded"] for row in out)})
    return success_rows


def _differences(run: ServicesRun, about: RunFacts) -> dict[tuple[str, str], Difference | None]:
    """The success rate of each protocol against another, for the pairs that the study compares."""
    rates: dict[str, dict[tuple[str, int], float]] = {}
    for cell, rows in run.trials.items():
        for row in rows:
            if row["valid"] and row["requests"]:
                rate = row["succeeded"] / row["requests"]
                rates.setdefault(row["arm"], {})[cell, int(row["block"])] = rate
    return {
        pair: difference(rates[pair[0]], rates[pair[1]], about.confidence)
        for pair in about.pairs
        if pair[0] in rates and pair[1] in rates
    }


def _service_costs(run: ServicesRun) -> list[Row]:
    cost_rows = []
    for cell, rows in run.trials.items():
        names = dict.fromkeys(name for row in rows for name in row["services"])
        for service in names:
            there = [(row, row["services"][service]) for row in rows if service in row["services"]]
            of_service = [cast(TrialRow, {**row, **cost}) for row, cost in there]
            for arm in run.arms:
                row: Row = {"cell": cell, "arm": arm, "service": service, "host": there[0][1]["host"], "blocks": 0}
                blocks = 0
                for column in _COST_COLUMNS:
                    logs = block_logs(of_service, Metric(column, column, "count"), arm)
                    mean = geometric_mean(logs, run.confidence)
                    row |= {column: mean.value, f"{column}_low": mean.low, f"{column}_high": mean.high}
                    blocks = max(blocks, mean.blocks)
                row["blocks"] = blocks
                cost_rows.append(row)
    return cost_rows


@dataclass(frozen=True)
class _Change:
    """A factor, a level of it, and the level that it is compared with."""

    factor: str
    level: str
    against: str


def _contrasts(run: ServicesRun, about: RunFacts, in_order: list[tuple[str, str]]) -> list[Row]:
    """Containers against native, and paths that reorder against the same in order: per place, and over all."""
    places = dict.fromkeys(levels["place"] for levels in run.cells.values() if "place" in levels)
    changes = [_Change("place", place, NATIVE) for place in places if place != NATIVE and NATIVE in places]
    changes += [_Change("path", name, other) for name, other in in_order]
    rows = []
    for change in changes:
        for metric in (run.metric, CPU, MEMORY) if change.factor == "place" else (run.metric,):
            rows += _contrast_rows(run, about, change, metric)
    return rows


def _contrast_rows(run: ServicesRun, about: RunFacts, change: _Change, metric: Metric) -> list[Row]:
    cells = _pairs_of_cells(run, change)
    heads: list[tuple[str, str, str | None]] = []
    values: list[Contrast] = []
    ratios = [(arm, about.baseline) for arm in run.arms if arm != about.baseline and about.baseline in run.arms]
    if not cells:
        return []
    for place, (cell, against) in cells.items() if len(cells) > 1 else ():
        for arm in run.arms:
            heads.append((place, arm, None))
            values.append(contrast(*_values_of_pair(run, metric, (cell, against), arm), run.confidence))
    # Over all places together; with one place that is the place itself. The ratio of ratios is taken within blocks.
    for arm, reference in [*((arm, None) for arm in run.arms), *ratios]:
        heads.append((EVERYWHERE, arm, reference))
        sides = [
            _values_of_pair(run, metric, cell_pair, arm)
            if reference is None
            else _ratios(run, metric, cell_pair, (arm, reference))
            for cell_pair in cells.values()
        ]
        values.append(contrast_over(sides, run.confidence))
    rows = []
    label = about.metric_label if metric is run.metric else metric.label
    for (place, arm, reference), one in zip(heads, adjusted(values), strict=True):
        row: Row = {"factor": change.factor, "level": change.level, "against": change.against, "place": place}
        row |= {"metric": label, "arm": arm, "reference": reference, "ratio": one.ratio, "low": one.low}
        row |= {"high": one.high, "p_holm": one.p_holm, "blocks": one.blocks, "against_blocks": one.against_blocks}
        rows.append(row | {"outcome": one.outcome(about.margin, 1 - run.confidence)})
    return rows


def _pairs_of_cells(run: ServicesRun, change: _Change) -> dict[str, tuple[str, str]]:
    """Place -> its cells with one level and with the other, where there are both."""
    by_level: dict[str, dict[str, str]] = {change.level: {}, change.against: {}}
    for cell, levels in run.cells.items():
        level = levels.get(change.factor)
        if level in by_level:
            by_level[level][scaling.place_without(levels, change.factor)] = cell
    there, against = by_level[change.level], by_level[change.against]
    return {place: (there[place], against[place]) for place in there if place in against}


def _values_of_pair(run: ServicesRun, metric: Metric, cells: tuple[str, str], arm: str) -> tuple[Floats, Floats]:
    first, second = (np.array(list(run.logs(cell, metric, arm).values())) for cell in cells)
    return first, second


def _ratios(run: ServicesRun, metric: Metric, cells: tuple[str, str], pair: tuple[str, str]) -> tuple[Floats, Floats]:
    """Log ratios of an arm to another by block, of which both trials have a finite value."""
    logs_by_arm = []
    for cell in cells:
        arm, reference = (run.logs(cell, metric, one) for one in pair)
        shared = [block for block in arm if block in reference]
        logs = [arm[block] - reference[block] for block in shared if _finite(arm[block], reference[block])]
        logs_by_arm.append(np.array(logs))
    return logs_by_arm[0], logs_by_arm[1]


def _finite(*values: float) -> bool:
    return all(math.isfinite(value) for value in values)


def _curves(run: ServicesRun) -> list[Row]:
    rows = []
    for axis in scaling.axes(run.cells):
        for step in axis.steps:
            for arm in run.arms:
                mean = geometric_mean(block_logs(run.trials[step.cell], run.metric, arm), run.confidence)
                row = {"factor": axis.factor, "place": axis.place, "arm": arm, "level": step.value, "text": step.text}
                rows.append(row | {"value": mean.value, "low": mean.low, "high": mean.high, "blocks": mean.blocks})
    return rows


def _combinations(run: ServicesRun, about: RunFacts) -> list[Row]:
    """Protocols at the edge and inside, place by place; nothing unless what is spoken inside varies, and
    protocols are what is compared."""
    if about.compare != PROTOCOL_FACTOR:
        return []
    places: dict[str, dict[str, str]] = {}
    for cell, levels in run.cells.items():
        if "inside" in levels:
            places.setdefault(scaling.place_without(levels, "inside"), {})[cell] = short(levels["inside"])
    rows = []
    for place, cells in places.items():
        logs: dict[tuple[str, str], list[Floats]] = {}
        for cell, inside in cells.items():
            for arm in run.arms:
                values = block_logs(run.trials[cell], run.metric, arm)
                logs.setdefault(mixing.normalised(arm, inside), []).append(values)
        known = {pair: np.concatenate(values) for pair, values in logs.items()}
        if len({inside for _, inside in known}) < 2:
            continue
        ranked = mixing.combinations(known, about.baseline, run.confidence, lower_is_better=run.metric.lower_is_better)
        rows += [_combination(place, one) for one in ranked]
    return rows


def _combination(place: str, combination: mixing.Combination) -> Row:
    row: dict[str, Any] = {
        "place": place,
        "edge": combination.edge,
        "inside": combination.inside,
        "best": combination.best,
        "worst": combination.worst,
    }
    row |= {
        "value": combination.mean.value,
        "low": combination.mean.low,
        "high": combination.mean.high,
        "blocks": combination.mean.blocks,
    }
    to: Mapping[str, Any] = {} if combination.to_baseline is None else vars(combination.to_baseline)
    row |= {"ratio": to.get("ratio"), "ratio_low": to.get("low"), "ratio_high": to.get("high")}
    return row | {"p_holm": to.get("p_holm")}


def short(inside: str) -> str:
    """``HTTP/3+HTTP/2``, as a cell's key has it, in the short names of the protocols: ``h3+h2``."""
    try:
        return "+".join(parse_protocol(part) for part in inside.split("+"))
    except QuantityError:
        return inside
