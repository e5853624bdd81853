"""Reproductions that are kept: as good for a comparison as the whole, and without contradiction among each other."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from bench import kept
from tests.report.synthetic_reproduction import write_reproduction
from tests.report.test_report_compared import changed, effects
from trifecta import studies
from trifecta.conclude.reproduction import rejudge
from trifecta.conclude.reproduction.compared import compare

KEPT = sorted(kept.FOLDER.glob("*.json"))


def is_part(document: Any) -> bool:
    """Whether only some runs of its studies were asked for: no threats, and most statements open."""
    return "only" in document["reproduction"]


def test_what_is_kept_compares_as_the_whole_and_names_nothing_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    threats = effects(changed("more", 2.0), changed("less", 0.5, None))
    folder = write_reproduction(tmp_path / "whole", threats=threats)
    monkeypatch.setattr(kept, "FOLDER", tmp_path / "kept")
    assert kept.main([str(folder)]) == 0
    (path,) = (tmp_path / "kept").iterdir()
    assert path.name == "2026-01-02T030405Z.json"
    assert path.name in capsys.readouterr().out
    made = compare(folder, path)
    assert {one.relation for one in (*made.claims, *made.figures, *made.threats)} <= {"same", "open in both"}
    assert len(made.threats) == 1
    assert [one for one in (*made.claims, *made.figures, *made.threats) if one.changed] == []
    text = path.read_text()
    assert str(tmp_path) not in text
    assert "/usr/bin" not in text


@pytest.mark.parametrize("arguments", [[], ["a", "b"], ["nowhere"]])
def test_what_is_no_reproduction_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setattr(kept, "FOLDER", tmp_path / "kept")
    assert kept.main(arguments) == 2
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_one_that_is_kept_has_statements_that_are_still_made_and_no_path(path: Path) -> None:
    """What was withdrawn, or is about other cells since, is named and not compared; mend it by `bench.kept --again`."""
    document = json.loads(path.read_text())
    of = document["reproduction"]["studies"]
    known = {one.id: one.defined for name, study in studies.published().items() if name in of
             for one in study.statements}  # fmt: skip
    here = {one["id"]: one["defined"] for kind in ("claims", "figures") for one in document[kind]}
    assert here.items() <= known.items()
    assert not set(here) & set(document["no_longer"])
    assert len(here) > len(known) * 0.4  # else it is of no use any more, and goes
    measured = {"round-trips", "single-load"} | ({"cpu-bound"} if "milicevic2023" in of else set())
    measured = set() if is_part(document) else measured
    assert {one["threat"] for one in document["threats"]} >= measured
    assert not re.search(r"(^|[\s\"'])/(tmp|work|root|home|usr)/", path.read_text())


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_one_that_is_kept_is_judged_by_todays_rules(path: Path) -> None:
    document = json.loads(path.read_text())
    assert kept.rejudged(document) == document


def test_a_ratio_far_from_the_published_one_is_not_confirmed_when_it_is_rejudged() -> None:
    statement = next(one for one in studies.published()["bourbon2020"].statements if one.id.endswith("fan-in-lag-4"))
    row = {"id": statement.id, "state": "confirmed", "reason": "", "ratio": 271.0, "low": 262.0, "high": 280.0}
    made = rejudge.rejudge({**row, "blocks": 6, "form": "ratio"}, statement)
    assert (made["state"], made["size"]) == ("same direction, other size", "larger")
    opened = {**row, "state": "open", "reason": "it depends on the place", "blocks": 6}
    assert rejudge.rejudge(opened, statement) == opened


@pytest.mark.parametrize("pair", list(combinations(KEPT, 2)), ids=lambda pair: " and ".join(path.stem for path in pair))
def test_two_that_are_kept_agree_on_what_both_decided(pair: tuple[Path, Path]) -> None:
    made = compare(*pair)
    pairs = (*made.claims, *made.figures, *made.threats)
    assert [one.id for one in pairs if one.relation == "differs"] == []
    in_both = [one for one in pairs if one.first is not None and one.second is not None]
    if not any(is_part(json.loads(path.read_text())) for path in pair):
        assert sum(one.relation == "same" for one in in_both) > len(in_both) / 4


def test_a_part_that_is_kept_says_which_and_was_decided_alike_where_it_decided() -> None:
    whole = max(path for path in KEPT if not is_part(json.loads(path.read_text())))
    parts = {path: json.loads(path.read_text()) for path in KEPT}
    parts = {path: document for path, document in parts.items() if is_part(document)}
    assert parts
    assert all(document["reproduction"]["only"] for document in parts.values())
    same = [sum(one.relation == "same" for one in compare(whole, path).claims) for path in parts]
    assert max(same) >= 5
