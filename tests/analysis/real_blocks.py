"""Blocks of real races, kept as test data (tests/analysis/data/README.md): rows of ``trials``, and block ratios."""

from __future__ import annotations

import csv
import functools
from collections import defaultdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.estimate import Row, arm_pairs, by_cell, pair_blocks
from trifecta.design import plan
from trifecta.design.metrics import METRICS
from trifecta.design.model import Study
from trifecta.studies import known_servers, load

Floats = NDArray[np.float64]
FILE = Path(__file__).with_name("data") / "races.csv"
ARMS = ("h1", "h2", "h2#aa", "h3")
METRIC = METRICS["latency_p50_ns"]


@functools.cache
def study() -> Study:
    """The race, as it is bundled."""
    return load("race", [], known_servers())


@functools.cache
def paths() -> dict[int, str]:
    """The paths of each race, by its seed: only blocks of the same ones are of one distribution."""
    with FILE.open(newline="") as file:
        return {int(line["seed"]): line["paths"] for line in csv.DictReader(file)}


@functools.cache
def races() -> dict[int, list[Row]]:
    """Rows of ``trials`` of each race, by its seed, in the order in which they ended."""
    found: dict[int, list[Row]] = defaultdict(list)
    with FILE.open(newline="") as file:
        for line in csv.DictReader(file):
            cell = ",".join(f"{name}={line[name]}" for name in ("path", "connection", "server"))
            ended_ns = int(line["ended_ms"]) * 1_000_000
            for arm in ARMS:
                rows = found[int(line["seed"])]
                value = line[arm]
                rows.append(
                    {
                        "trial": f"t{len(rows):05d}",
                        "block": int(line["block"]),
                        "cell": cell,
                        "arm": arm,
                        "position": 0,
                        "valid": bool(value),
                        "samples": 100,
                        "success_rate": 1.0,
                        "started_ns": ended_ns - 400_000_000,
                        "ended_ns": ended_ns,
                        "latency_p50_ns": int(value) if value else None,
                    }
                )
    for rows in found.values():
        rows.sort(key=lambda row: (row["ended_ns"], row["trial"]))
    return dict(found)


def pairs(rows: list[Row]) -> dict[tuple[str, str, str], Floats]:
    """Logs of the trials of each comparison of one race: by cell, arm and reference; a row a block."""
    grouped = by_cell(rows)
    return {
        (cell.key, arm, reference): pair_blocks(
            cell.key, grouped.get(cell.key, []), METRIC, arm=arm, reference=reference, baseline="h2"
        ).logs
        for cell in plan.cells(study())
        for arm, reference in arm_pairs(study())
    }


@functools.cache
def pooled() -> dict[tuple[str, str, str, str], Floats]:
    """The same over all races with the same paths, which come first in the key."""
    found: dict[tuple[str, str, str, str], list[Floats]] = defaultdict(list)
    for seed, rows in races().items():
        for key, logs in pairs(rows).items():
            found[paths()[seed], *key].append(logs)
    return {key: np.concatenate(parts) for key, parts in found.items()}


def name(key: tuple[str, str, str, str]) -> str:
    """``far 60 ms; ...: far, reused, caddy: h3/h2``."""
    way, cell, arm, reference = key
    return f"{way}: " + ", ".join(part.split("=")[1] for part in cell.split(",")) + f": {arm}/{reference}"
