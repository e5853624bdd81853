"""A folder as ``trifecta reproduce`` leaves it: two invented runs, and what was found of the claims they are about."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb

from tests.report.synthetic import Shape, write_run
from trifecta.conclude.comparisons import levels
from trifecta.store import views

NEAR, FAR = "bourbon2020/near", "milicevic2023/far"


def write_reproduction(folder: Path, **changes: Any) -> Path:
    """Make the folder and return it; ``changes`` replace parts of its document."""
    near = Shape(blocks=7, samples_per_trial=60, paths=("clean",), connections=("new",), servers=("origin", "caddy"))
    far = Shape(
        blocks=7, samples_per_trial=60, paths=("far", "rough"), connections=("new",), servers=("origin",), seed=8
    )
    runs = []
    for name, shape in ((NEAR, near), (FAR, far)):
        shape.troubles = name == FAR
        run = write_run(folder / name, shape)
        runs.append({"study": name.split("/")[0], "name": name.split("/")[1], "folder": name, "report": "",
                     "trials": len(list((run / "trials").iterdir())), "valid": 50})  # fmt: skip
    document = {
        "reproduction": {
            "studies": ["bourbon2020", "milicevic2023"], "depth": "quick", "began": "2026-01-02T03:04:05Z",
            "argv": ["/usr/bin/trifecta", "reproduce", "all", "--quick"], "elapsed_s": {"bourbon2020": 61.0},
            "version": "0.1.0", "folder": str(folder),
            "machine": {"machine": {"cpus": 2, "kernel": "6.18"}, "versions": {"engine": "0.1.0"}, "seed": 7},
        },
        "claims": [
            claim(folder, "bourbon2020.clean-h3-highest", NEAR, "above", "HTTP/3 has the highest times."),
            claim(folder, "milicevic2023.far-faster", FAR, "below", "HTTP/3 takes less time, far."),
        ],
        "figures": [],
        "threats": [
            {"threat": "round-trips", "title": "handshakes", "outcome": "effect", "reason": "", "runs": [],
             "check": None, "undetected": "none", "effects": [], "model": [
                 {"arm": "h3", "reference": "h2", "levels": {"path": "far", "connection": "new"}, "trips": [2, 3],
                  "ratio": 0.66, "low": 0.65, "high": 0.67, "expected": 0.667}]},
        ],
        "runs": runs,
        "missing": [{"study": "ding2022", "what": "quick", "reason": "no curl with HTTP/3 <here>"}],
    }  # fmt: skip
    (folder / "reproduction.json").write_text(json.dumps(document | changes))
    return folder


def claim(folder: Path, name: str, run: str, side: str, text: str, published: float | None = None) -> dict[str, Any]:
    """A claim with the run's own intervals as the effects of its cells."""
    with views.connect(folder / run) as connection:
        found = _verdicts(connection)
    cells = []
    for cell, ratio, low, high in found:
        states = {True: ("confirmed", "contradicted"), False: ("contradicted", "confirmed")}[side == "above"]
        state = states[0] if low and low > 1 else states[1] if high and high < 1 else "open"
        cells.append({"run": run, "cell": cell, "against": "", "state": state, "value": ratio, "low": low,
                      "high": high, "blocks": 7, "to": "h2"})  # fmt: skip
    states = [one["state"] for one in cells]
    whole = states[0] if len(set(states)) == 1 else "open"
    return {
        "id": name, "study": name.split(".")[0], "kind": "claim", "text": text, "source": "claim 1", "state": whole,
        "reason": f"{len(cells)} cells, the first {levels(cells[0]['cell'])['path']}", "metric": "latency_p50_ns",
        "form": "ratio", "published": published, "cells": cells, "threats": [],
    }  # fmt: skip


def _verdicts(connection: duckdb.DuckDBPyConnection) -> list[Any]:
    return connection.execute(
        "SELECT cell, ratio, low, high FROM verdicts WHERE arm = 'h3' AND reference = 'h2' ORDER BY cell"
    ).fetchall()
