"""Verdicts of a real Ray cluster of three hosts, measured by the real engine, against those of a machine alone.

The hosts are network namespaces of this machine. One is slow and one has another clock; or one is killed, frozen or cut
off in the middle of a block; or the command or Ray's head is killed.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.workloads.drive import said_last
from tests.workloads.drive_hits import HIT, HITS
from tests.workloads.ray_hosts import slowed
from trifecta.design import extras
from trifecta.lab import cpu_share
from trifecta.store import parquet
from trifecta.store.run import RunDirectory

pytestmark = [
    pytest.mark.lab,
    pytest.mark.long,
    pytest.mark.timeout(1100),
    pytest.mark.skipif(bool(extras.missing("cluster")), reason="the extra cluster is not installed"),
]
SETTINGS = [
    "protocol=h2,h3", "path=far", "server=origin", "connection=new", "budget=8 min", "conformance=off",
    "workload.requests=30", "workload.warmup=2 requests", "give_up=false", "seed=3",
]  # fmt: skip
ARMS = 3
BLOCKS = {"alone": 9, "odd": 15, "hit": 24}
"""Some trials of a node beside others fail `path` on few cores, as they should: the clusters have blocks to spare."""


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    """What a test starts; what is below it ends with it."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        process.kill()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The verdict of a machine alone."""
    folder = tmp_path_factory.mktemp("alone") / "run"
    own = [*SETTINGS, *(f"blocks.{bound}={BLOCKS['alone']}" for bound in ("at_least", "at_most"))]
    words = [word for setting in own for word in ("--set", setting)]
    done = subprocess.run(
        [sys.executable, "-m", "trifecta", "run", "race", *words, "--quiet", "--out", str(folder)],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    whole(folder, BLOCKS["alone"])
    return verdict(folder)


@pytest.mark.skipif(cpu_share.problem() is not None, reason="CPU time cannot be limited here")
def test_a_slow_node_and_a_wrong_clock_change_no_verdict(tmp_path: Path, started: Any, alone: dict[str, Any]) -> None:
    """A node with half a core, one whose clock is 3 s ahead, and one as it should be."""
    with slowed(0.5) as slow:
        words = json.dumps(SETTINGS), str(BLOCKS["odd"]), json.dumps(slow)
        code, said = said_last(started, "drive_odd_nodes", str(tmp_path / "run"), *words)
    assert code == 0, said
    rows = whole(tmp_path / "run", BLOCKS["odd"])
    by_node = {node: ratio([row for row in rows if row["node"] == node]) for node in ("n1", "slow", "ahead")}
    same(alone, verdict(tmp_path / "run"))
    for node, own in by_node.items():
        assert own == pytest.approx(alone["ratio"], rel=0.2), node
    began = {node: min(row["started_ns"] for row in rows if row["node"] == node) for node in ("n1", "ahead")}
    assert began["ahead"] - began["n1"] > 1_000_000_000, "its clock was not ahead, so nothing is shown"


@pytest.mark.parametrize("hit", HITS)
def test_a_cluster_that_is_hit_says_what_a_machine_alone_says(
    tmp_path: Path, started: Any, alone: dict[str, Any], hit: str
) -> None:
    folder = tmp_path / "run"
    code, said = said_last(started, "drive_hits", str(folder), json.dumps(SETTINGS), str(BLOCKS["hit"]), hit)
    assert code == 0, said
    whole(folder, BLOCKS["hit"])
    same(alone, verdict(folder))
    lost = RunDirectory.open(folder).facts.get("lost_blocks", [])
    assert [one["node"] for one in lost] == ([] if hit in ("run", "head") else [HIT]), lost


def whole(folder: Path, blocks: int) -> list[dict[str, Any]]:
    """The trials of a run that has so many blocks of one cell, none of them twice."""
    rows: list[dict[str, Any]] = RunDirectory.open(folder).rows()  # type: ignore[assignment]
    there = {(row["block"], row["arm"]) for row in rows}
    assert len(rows) == len(there) == blocks * ARMS, "twice, or lost"
    assert {block for block, _ in there} == set(range(blocks))
    return rows


def verdict(folder: Path) -> dict[str, Any]:
    """What the run says of HTTP/3 against HTTP/2."""
    every = parquet.read(folder / "verdicts.parquet")
    (row,) = (one for one in every if (one["arm"], one["reference"]) == ("h3", "h2"))
    return row


def same(alone: dict[str, Any], together: dict[str, Any]) -> None:
    """One verdict, and intervals that have a part in common."""
    print(*(f"{one['ratio']:.3f} [{one['low']:.3f}, {one['high']:.3f}] {one['blocks']}" for one in (alone, together)))
    assert alone["verdict"] == together["verdict"] == "faster", together["reason"]
    assert together["low"] <= alone["high"] and alone["low"] <= together["high"]


def ratio(rows: list[dict[str, Any]]) -> float:
    """The geometric mean over blocks of HTTP/3's median latency to HTTP/2's."""
    medians = {(row["block"], row["arm"]): row["latency_p50_ns"] for row in rows}
    blocks = {block for block, _ in medians}
    return statistics.geometric_mean(medians[block, "h3"] / medians[block, "h2"] for block in blocks)
