"""A campaign from a file: its studies in turn, its table, and going on after it was ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workloads.drive import REPOSITORY

pytestmark = pytest.mark.lab
TEXT = """\
campaign: small
title: A small campaign
tests: {A: request}
common:
  factors: {protocol: [HTTP/1.1, HTTP/2], connection: [reused], path: [normal]}
  paths: {normal: {}}
  blocks: {at_least: 1, at_most: 1}
suites:
  A:
    workload: {kind: chain, depth: 3, hosts: 1}
    factors: {request: [100 B, 1 kB]}
scenarios:
  one: {labels: {native: one_02}, factors: {place: [native]}}
  two: {workload: {method: PUT}}
full: {A: {workload: {requests: 50}}}
quick: {A: {workload: {requests: 4}}}
"""


def trifecta(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trifecta.cli.main", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    (tmp_path / "small.yaml").write_text(TEXT)
    return tmp_path


def test_a_campaign_runs_its_studies_and_shows_them_together(campaign: Path) -> None:
    done = trifecta("run", "small.yaml", "--quick", "--out", "out", "--json", folder=campaign)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert [(cell["study"], cell["scenario"], cell["tests"]) for cell in said["cells"]] == [
        ("one-A", "one_02", "A1-A2"),
        ("one-A", "one_02", "A3-A4"),
        ("two-A", "two", "A1-A2"),
        ("two-A", "two", "A3-A4"),
    ]
    assert all(set(cell["arms"]) == {"h1", "h2"} for cell in said["cells"])
    page = (campaign / "out" / "index.html").read_text()
    assert 'href="one-A/report.html"' in page
    assert (campaign / "out" / "two-A" / "report.html").exists()


def test_a_campaign_goes_on_where_it_was_ended(campaign: Path) -> None:
    assert (
        trifecta("run", "small.yaml", "--quick", "--only", "one", "--out", "out", "-q", folder=campaign).returncode == 0
    )
    asked = json.loads((campaign / "out" / "campaign.json").read_text())
    (campaign / "out" / "campaign.json").write_text(json.dumps(asked | {"only": []}))
    before = (campaign / "out" / "one-A" / "run.json").read_bytes()
    done = trifecta("resume", "out", "-q", folder=campaign)
    assert done.returncode == 0, done.stderr
    assert (campaign / "out" / "one-A" / "run.json").read_bytes() == before  # it was over: not touched
    assert (campaign / "out" / "two-A" / "report.html").exists()
    assert "two" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "chain", "--quick"], "--quick and --only are for campaigns"),
        (["run", "small.yaml", "--only", "three"], "no such study, scenario or suite"),
        (["run", "small.yaml", "--set", "hosts=9"], "9 hosts for 3 services"),
    ],
)
def test_what_a_campaign_cannot_do_is_one_line(campaign: Path, arguments: list[str], said: str) -> None:
    done = trifecta(*arguments, folder=campaign)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (campaign / "runs").exists()
