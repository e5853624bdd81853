"""Servers that are slower over one protocol than they need be: what is the program's is not called the protocol's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workloads import drive
from tests.workloads.test_checks_fail import pytestmark as in_the_lab
from trifecta.analysis.interactions import interactions
from trifecta.design.study_file import parse_study
from trifecta.report.interactions import sentences
from trifecta.store.run import RunDirectory

pytestmark = [*in_the_lab, pytest.mark.long]
SETTINGS = [
    "path=far", "paths.far.rtt=20 ms", "protocol=h2,h3", "server=origin,caddy", "connection=reused", "give_up=false",
    "blocks.at_least=14", "blocks.at_most=14", "budget=5 min", "conformance=off", "workload.in_flight=1",
    "workload.requests=10", "workload.warmup=2 requests",
]  # fmt: skip


def named(folder: Path, faults: dict[str, object]) -> list[str]:
    """What is said of programs behind an honest origin and one with such faults."""
    code, _, _, errors = drive.finish(folder, 280, set=SETTINGS, origins={"caddy": {"faults": faults}})
    assert code == 0, errors
    run = RunDirectory.open(folder)
    study = parse_study(run.study_text, "study.yaml")
    # Other work on the machine leaves trials out, which is not what is asked here: 40 ms are more than it does.
    rows = [{**row, "valid": True} for row in run.rows()]
    assert len(rows) == 14 * 6
    return sentences(interactions(study, rows), study.metric)


def test_answers_that_wait_over_one_protocol_are_the_program_s(tmp_path: Path) -> None:
    (said,) = named(tmp_path / "run", {"delay_ns": 40_000_000, "only": "h3"})
    assert "behind caddy than behind origin" in said
    assert "most of it the wait for the first octet" in said
    assert "a difference of programs, not of protocols" in said


def test_an_honest_second_server_is_not_named(tmp_path: Path) -> None:
    assert named(tmp_path / "run", {}) == []
