"""A small map from the command line: measured, asked, interrupted and gone on with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.workloads.test_campaign import trifecta
from trifecta.store.run import RunDirectory

pytestmark = pytest.mark.lab
ASKED = ("--x", "rtt=2ms..8ms", "--y", "loss=0..1%", "--resolution", "4x4", "--set", "response=2 kB", "--quiet")


def test_a_map_is_measured_asked_and_gone_on_with(tmp_path: Path) -> None:
    done = trifecta("map", *ASKED, "--blocks", "3", "--out", "plane", "--json", folder=tmp_path)
    assert done.returncode in (0, 1), done.stderr
    made = json.loads(done.stdout)
    assert made["blocks"] == 3
    assert made["trials"] == 9
    assert made["traffic"] == "20 objects of 2 kB"
    # On a busy machine no block may have passed its checks; then the map says so.
    counted = sum(len(spot["values"]) for spot in made["spots"])
    assert done.returncode == (0 if counted else 1)
    assert len(made["places"]) == (16 if counted else 0)
    asked = trifecta("map", "plane", "--at", "rtt=3ms,loss=0.5%", "--json", folder=tmp_path)
    if counted:
        assert asked.returncode == 0, asked.stderr
        answer = json.loads(asked.stdout)
        assert answer["rtt"] == "3 ms"
        assert answer["speed_up"]["low"] <= answer["speed_up"]["mean"] <= answer["speed_up"]["high"]
        said = trifecta("map", "plane", "--at", "rtt=3ms,loss=0.5%", folder=tmp_path).stdout
        assert said.startswith("at 3 ms and 0.5 % loss, for 20 objects of 2 kB: ")
    else:
        assert asked.returncode == 2
        assert "no block that counts" in asked.stderr
    outside = trifecta("map", "plane", "--at", "rtt=30ms,loss=0.5%", folder=tmp_path)
    assert outside.returncode == 2
    assert "lies outside of what the map covers" in outside.stderr
    # As after a kill in the middle of the last block: the block is completed, and nothing is run twice.
    folder = tmp_path / "plane"
    (folder / "trials" / "t00008.parquet").unlink()
    (folder / "map.json").unlink()
    resumed = trifecta("resume", "plane", "--quiet", folder=tmp_path)
    assert resumed.returncode in (0, 1), resumed.stderr
    assert (folder / "map.json").exists()
    rows = RunDirectory.open(folder).rows()
    assert len({(row["cell"], row["block"], row["arm"]) for row in rows}) == len(rows) == 9
    assert {row["trial"] for row in rows} == {f"t{number:05}" for number in range(9)}


def test_what_is_no_map_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for arguments in (("folder", "--at", "rtt=1ms,loss=0"), ("folder",), ("nothing", "--at", "x=1"), ("race",)):
        done = trifecta("map", *arguments, folder=tmp_path)
        assert done.returncode == 2, done.stderr
        assert len(done.stderr.splitlines()) == 1
