"""The reconciliation report, from a folder as ``trifecta reproduce`` leaves it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.report import pages
from tests.report.synthetic_reproduction import FAR, NEAR, write_reproduction
from trifecta.design.errors import UserError
from trifecta.report import reconcile
from trifecta.report.reconcile import page


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_reproduction(tmp_path_factory.mktemp("reproductions") / "four")


@pytest.fixture(scope="module")
def found(folder: Path) -> reconcile.Reconciled:
    made = reconcile.read(folder, draws=40)
    reconcile.write(made)
    return made


def test_both_sides_are_found_where_they_hold(found: reconcile.Reconciled) -> None:
    first = found.pairs[0]
    assert first.found.pair.id == "slowest-or-half-the-time"
    assert {place.run for place in first.found.places[0]} == {NEAR}
    assert {place.run for place in first.found.places[1]} == {FAR}
    assert first.found.states[0]["bourbon2020.clean-gap-grows"] == "not run"
    assert first.explained[1] is not None and first.explained[1].place.state == "confirmed"
    answer = page.as_data(found)["pairs"][0]["answer"]
    assert "“HTTP/3 needs half the time” holds in" in answer
    because = page.as_data(found)["pairs"][0]["because"][1]["sentences"]
    assert any("round trips of set-up" in said for said in because)


def test_the_page_is_whole_and_its_figures_are_files(folder: Path, found: reconcile.Reconciled) -> None:
    reader = pages.read((folder / "reconciliation.html").read_text())
    assert reader.faults == []
    root = reader.root
    assert len([one for one in root.all("section") if one.has("pair")]) == len(found.pairs)
    names = [link.attributes["href"] for link in root.all("a") if "reconciliation-figures" in link.attributes["href"]]
    assert names and all((folder / name).is_file() for name in names)
    assert {Path(name).suffix for name in names} == {".svg", ".png"}
    text = root.text
    assert "trifecta reproduce all --quick" in text
    assert "no curl with HTTP/3 <here>" in text  # escaped, not an element
    assert "seeds 7, 8" in text
    assert "not run" in text
    ids = [one.attributes["id"] for one in root.all() if "id" in one.attributes]
    assert len(ids) == len(set(ids))


def test_procedures_of_the_studies_are_carried_out(found: reconcile.Reconciled) -> None:
    made = {(one.study, one.name): one for one in found.procedures}
    assert set(made) == {("bourbon2020", "no-noise-floor"), ("milicevic2023", "no-noise-floor")}
    far = made["milicevic2023", "no-noise-floor"]
    assert far.cells == 2 and far.draws == 80
    assert far.rate == 0.0  # twice as fast is not missed
    near = made["bourbon2020", "no-noise-floor"]
    assert near.rate is not None and near.rate < 0.2  # HTTP/3 is the slower one there, and mostly named so


def test_what_a_program_gets_is_json(found: reconcile.Reconciled) -> None:
    assert json.loads(page.as_json(found))["pairs"][0]["outcome"] in ("both", "first", "second", "open")


def test_a_folder_without_a_reproduction_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no reproduction\.json here; give the folder"):
        reconcile.read(tmp_path)
    (tmp_path / "reproduction.json").write_text("[1, 2")
    with pytest.raises(UserError, match="cannot be read"):
        reconcile.read(tmp_path)
    (tmp_path / "reproduction.json").write_text('{"claims": {}}')
    with pytest.raises(UserError, match="is not what 'trifecta reproduce' writes"):
        reconcile.read(tmp_path)


def test_a_run_never_leaves_the_folder(tmp_path: Path) -> None:
    cells = [
        {"run": "../elsewhere", "cell": "path=x", "state": "open", "value": 1, "low": None, "high": None, "to": "h2"}
    ]
    claim = {"id": "bourbon2020.clean-h3-highest", "state": "open", "metric": "latency_p50_ns", "cells": cells}
    (tmp_path / "reproduction.json").write_text(json.dumps({"reproduction": {}, "claims": [claim]}))
    with pytest.raises(UserError, match="is outside of the folder"):
        reconcile.read(tmp_path)


def test_without_any_run_the_page_says_so(tmp_path: Path) -> None:
    (tmp_path / "reproduction.json").write_text(json.dumps({"reproduction": {}, "claims": []}))
    found = reconcile.read(tmp_path)
    text = page.render(found)
    assert {one.found.outcome for one in found.pairs} == {"not run"}
    assert text.count("Nothing was run that tells.") >= len(found.pairs)
    assert pages.read(text).faults == []
