"""`trifecta reproduce` from end to end: a small part of a study, its folder, and going on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.workloads.test_campaign import trifecta
from trifecta.design.errors import UserError

pytestmark = pytest.mark.lab
SMALL = ("--only", "engine-latency", "--no-threats", "--set", "path=near", "--set", "blocks={at_least: 2, at_most: 2}")


def test_a_study_is_run_and_set_beside_what_was_published(tmp_path: Path) -> None:
    done = trifecta("reproduce", "milicevic2023", *SMALL, "--out", "out", "--json", folder=tmp_path)
    assert done.returncode in (0, 1), done.stderr  # 1: a busy machine, where no trial counts
    said = json.loads(done.stdout)
    assert said["reproduction"]["depth"] == "quick"
    assert [run["name"] for run in said["runs"]] == ["engine-latency"]
    assert {claim["id"].partition(".")[0] for claim in said["claims"]} == {"milicevic2023"}
    for name in ("reproduction.html", "reproduction.json", "milicevic2023/engine-latency/report.html"):
        assert (tmp_path / "out" / name).exists(), name
    before = (tmp_path / "out" / "milicevic2023" / "engine-latency" / "run.json").read_bytes()
    again = trifecta("resume", "out", "-q", folder=tmp_path)
    assert again.returncode == done.returncode, again.stderr
    assert "Of 3 claims" in again.stdout
    assert (tmp_path / "out" / "milicevic2023" / "engine-latency" / "run.json").read_bytes() == before


def test_parts_are_asked_of_the_studies_that_have_them() -> None:
    from trifecta.cli.reproduce import _only

    names = ["bourbon2020", "baccichet2021", "ding2022", "milicevic2023"]
    assert _only(names, ["page", "engine"]) == {
        "baccichet2021": ["page"],
        "ding2022": ["engine"],
        "milicevic2023": ["engine"],
    }
    assert _only(names, []) == {name: [] for name in names}
    with pytest.raises(UserError, match="no such study, scenario or suite"):
        _only(names, ["page", "pag"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["bourbon"], "no published study 'bourbon'; did you mean 'bourbon2020'"),
        (["bourbon2020", "--only", "singel"], "no such study, scenario or suite"),
        (["bourbon2020", "--with", "nothing"], "no threat 'nothing'"),
        ([], "missing argument"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = trifecta("reproduce", *arguments, folder=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())
