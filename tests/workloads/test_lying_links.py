"""A link that does something else than the study asks for: no verdict of its path stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.workloads import drive
from tests.workloads.test_checks_fail import SETTINGS, pytestmark  # noqa: F401
from trifecta.store.run import RunDirectory

ROUGH = [*SETTINGS, "path=rough", "protocol=h2,h3", "workload.requests=20"]
PLANNED: list[dict[str, Any]] = [
    {"kind": "loss", "probability": 0.02},
    {"kind": "corrupt", "probability": 0.01},
    {"kind": "duplicate", "probability": 0.01},
    {"kind": "rate", "bits_per_s": 20_000_000, "queue_bytes": 100_000, "discipline": "droptail"},
    {"kind": "delay", "delay_ns": 20_000_000},
    {"kind": "reorder", "probability": 0.02, "gap_ns": 1_000_000},
]
MORE = [
    "paths.rough.loss=2 %",
    "paths.rough.corrupt=1 %",
    "paths.rough.duplicate=1 %",
    "paths.rough.reorder={probability: 2 %, gap: 1 ms}",
]


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        (None, "", 0),
        ("loss", "probability", 0.04),
        ("loss", "probability", 0.026),
        ("corrupt", "probability", 0.02),
        ("duplicate", "probability", 0.02),
        ("reorder", "probability", 0.04),
        ("delay", "delay_ns", 22_000_000),
        ("rate", "bits_per_s", 10_000_000),
    ],
)
def test_a_link_with_another_configuration_than_the_plan(tmp_path: Path, kind: str, field: str, value: float) -> None:
    told = [{**one, field: value} if one["kind"] == kind else one for one in PLANNED]
    faults = {"link": {"a_to_b": told, "b_to_a": told}}
    code, _, _, errors = drive.finish(tmp_path / "run", set=[*ROUGH, *MORE], faults=faults)
    assert code == 0, errors
    run = RunDirectory.open(tmp_path / "run")
    said = [check.evidence for check in run.checks() if check.check == "path" and check.status == "fail"]
    condemned = [check for check in run.checks() if check.check == "delivered" and check.scope.startswith("t")]
    if kind is None:  # the same as the plan: an honest link's draws are counted again, and every one is as it must be
        assert not any("plan" in evidence for evidence in said)
        assert not condemned
        return
    assert len(said) == 3
    planned = next(one for one in PLANNED if one["kind"] == kind)[field]
    assert all(f"the link had {kind} {field} {value}, planned {planned}" in evidence for evidence in said)
    assert len(condemned) == 3
    assert not any(row["valid"] for row in run.rows())
    assert all(verdict.verdict == "undecided" and verdict.blocks == 0 for verdict in run.verdicts())
