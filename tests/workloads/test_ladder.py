"""A small ladder from the command line: measured, interrupted, gone on with, and in the page of a reproduction."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest

from tests.workloads.test_campaign import trifecta
from trifecta.store.run import RunDirectory

pytestmark = pytest.mark.lab
TEXT = """\
ladder: small
title: A small one
claim: milicevic2023.far-mode
arm: h3
to: h2
study:
  workload: {kind: requests, requests: 4}
  factors: {path: near, connection: new, tcp_nodelay: false, tls_version: 1.2/1.3}
  paths: {near: {rtt: 4 ms}}
  metric: latency_mode
rounds: {quick: 2, full: 3}
steps:
  - {step: tls, title: TLS 1.3, exchange: {tls_version: [1.2/1.3, "1.3"]}, source: II, why: One version.}
  - {step: nagle, title: at once, exchange: {tcp_nodelay: [false, true]}, source: V, why: Nothing waits.}
  - {step: median, title: the median, metric: [latency_mode, latency_p50], source: V, why: Half take less.}
"""


def test_a_ladder_is_measured_and_gone_on_with(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(TEXT)
    done = trifecta("ladder", "small.yaml", "--quiet", "--json", "--seed", "4", "--out", "climbed", folder=tmp_path)
    assert done.returncode in (0, 1), done.stderr  # on a busy machine no trial may have passed its checks
    (made,) = json.loads(done.stdout)["ladders"]
    own = tmp_path / "climbed" / "small"
    assert json.loads((own / "ladder.json").read_text()) == made
    assert {(own / f"ladder.{kind}").is_file() for kind in ("csv", "svg", "png")} == {True}
    with (own / "ladder.csv").open() as file:
        parts = [row["part"] for row in csv.DictReader(file)]
    assert parts[:9] == ["published", *["rung"] * 4, *["step"] * 3, "whole"]
    rows = RunDirectory.open(own / "steps").rows()
    # Three cells of two blocks, two of them again for the ends; each has both protocols and the reference again.
    assert len(rows) == len({(row["cell"], row["block"], row["arm"]) for row in rows}) == (3 + 2) * 2 * 3
    assert {row["block"] for row in rows} == {0, 1, 2, 3}
    if done.returncode == 0 and made["complete"] == 2:
        assert made["steps"][0]["ratio"] > 1  # HTTP/2 has a round trip less to wait for, so the ratio rises
        assert made["rungs"][2]["cell"] == made["rungs"][3]["cell"]
        assert made["runs"] == ["steps", "orders"]
    # As after a kill in the middle of the last block: it is completed, and nothing is run twice.
    (own / "steps" / "trials" / f"t{len(rows) - 1:05}.parquet").unlink()
    refused = trifecta("resume", "climbed/small/steps", "--quiet", folder=tmp_path)
    assert refused.returncode == 2
    assert "is part of a ladder, whose rounds continue together" in refused.stderr
    run = RunDirectory.open(own / "steps", write=True)
    run.write_facts(run.facts | {"state": "running"})
    run.close()
    shutil.rmtree(own / "orders", ignore_errors=True)
    resumed = trifecta("resume", "climbed", "--quiet", "--json", folder=tmp_path)
    assert resumed.returncode in (0, 1), resumed.stderr
    again = RunDirectory.open(own / "steps").rows()
    assert len({(row["cell"], row["block"], row["arm"]) for row in again}) == len(again) == len(rows)
    other = trifecta("ladder", "small.yaml", "--blocks", "7", "--out", "climbed", folder=tmp_path)
    assert other.returncode == 2
    assert "holds other ladders" in other.stderr


def test_a_rung_that_cannot_run_here_is_said_before_anything_is_made(tmp_path: Path) -> None:
    text = TEXT.replace("tcp_nodelay: false", "tcp_nodelay: false, server: nothing-here")
    (tmp_path / "small.yaml").write_text(text)
    done = trifecta("ladder", "small.yaml", "--quiet", folder=tmp_path)
    assert done.returncode in (2, 3)
    assert "nothing-here" in done.stderr
