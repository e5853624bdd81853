"""The reconciliation report, from a folder as ``trifecta reproduce`` leaves it."""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from tests.analysis.mapping.plane import a_plan, a_study, explore
from tests.report import pages
from tests.report.synthetic import Shape, write_run
from tests.report.synthetic_reproduction import FAR, NEAR, write_reproduction
from trifecta.analysis.mapping.result import work_out
from trifecta.analysis.places import paired
from trifecta.analysis.resampling import Concluded
from trifecta.analysis.statements import Assertion
from trifecta.conclude.reconcile.experiments import Experiments
from trifecta.conclude.reconcile.maps import read as read_maps
from trifecta.conclude.reconcile.procedures import pool_cells
from trifecta.conclude.reconcile.read import Reconciled, read
from trifecta.conclude.reconcile.read import pairs as read_pairs
from trifecta.design.errors import UserError
from trifecta.report import reconcile
from trifecta.report.map import page as map_page
from trifecta.report.reconcile import citation, conditions, maps, page, words


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = write_reproduction(tmp_path_factory.mktemp("reproductions") / "four")
    shape = Shape(blocks=7, samples_per_trial=60, paths=("far", "rough"), connections=("new", "reused"),
                  servers=("origin",), seed=9)  # fmt: skip
    shape.troubles = False
    write_run(made / "threats" / "round-trips", shape)
    return made


@pytest.fixture(scope="module")
def found(folder: Path) -> Reconciled:
    made = read(folder, draws=40)
    reconcile.write(made)
    return made


def test_both_sides_are_found_where_they_hold(found: Reconciled) -> None:
    first = found.pairs[0]
    assert first.evidence.pair.id == "slowest-or-faster"
    assert {place.run for place in first.evidence.places[0]} == {NEAR}
    assert {place.run for place in first.evidence.places[1]} == {FAR}
    assert first.evidence.states[1]["milicevic2023.near-faster"] == "not run"
    assert first.explained[1] is not None and first.explained[1].place.state == "confirmed"
    answer = reconcile.as_data(found)["pairs"][0]["answer"]
    assert "“HTTP/3 takes less time” holds in" in answer
    because = reconcile.as_data(found)["pairs"][0]["because"][1]["sentences"]
    assert any("round trips of set-up" in said for said in because)


def test_the_page_is_whole_and_its_figures_are_files(folder: Path, found: Reconciled) -> None:
    reader = pages.read((folder / "reconciliation.html").read_text())
    assert reader.faults == []
    root = reader.root
    assert len([one for one in root.all("section") if one.has("pair")]) == len(found.pairs)
    names = [link.attributes["href"] for link in root.all("a") if "reconciliation-figures" in link.attributes["href"]]
    assert names and all((folder / name).is_file() for name in names)
    assert {Path(name).suffix for name in names} == {".svg", ".png", ".pdf", ".csv"}
    text = root.text
    assert "trifecta reproduce all --quick --out FOLDER" in text
    assert str(folder) not in (folder / "reconciliation.html").read_text()  # no path of the machine that ran it
    assert "What counts as wrong" in text and "counts neither as right nor as wrong" in text
    assert (folder / "reconciliation.bib").read_text().startswith("@misc{trifecta-reconciliation-2026-01-02,")
    assert "authors and DOI not recorded" in text
    assert "no curl with HTTP/3 <here>" in text  # escaped, not an element
    assert "seeds 7, 8" in text
    assert "not run" in text
    ids = [one.attributes["id"] for one in root.all() if "id" in one.attributes]
    assert len(ids) == len(set(ids))


def test_procedures_of_the_studies_are_carried_out(found: Reconciled) -> None:
    made = {(one.study, one.name): one for one in found.procedures}
    assert set(made) == {("bourbon2020", "no-noise-floor"), ("milicevic2023", "no-noise-floor")}
    far = made["milicevic2023", "no-noise-floor"]
    assert far.cells == 2 and far.draws == 80
    assert far.rate == 0.0  # twice as fast is not missed
    assert far.decided == 2 and far.open == far.same == 0 and far.contradict == 0.0
    near = made["bourbon2020", "no-noise-floor"]
    assert near.rate is not None and near.rate < 0.2  # HTTP/3 is the slower one there, and mostly named so


def test_only_cells_with_a_truth_make_a_conclusion_right_or_wrong() -> None:
    def one(winner: str | None, wrong: int, contradict: float) -> Concluded:
        rate = None if winner is None else wrong / 10
        ends = (rate, 0.0, 1.0) if winner else (None, None, None)
        return Concluded(
            "single-load", "c", "h3", "h2", winner, 10, wrong, wrong, *ends, 1.0, 0.9, 1.1, 0.5, contradict
        )

    made = pool_cells(
        "s", "single-load", [one("h3", 1, 0.2), one("h2", 3, 0.4), one("same", 10, 0.5), one(None, 0, 0.5)]
    )
    assert (made.cells, made.decided, made.same, made.open) == (4, 2, 1, 1)
    assert (made.draws, made.wrong, made.rate, made.least, made.most) == (20, 4, 0.2, 0.1, 0.3)
    assert made.contradict == pytest.approx(0.4)
    said = words.procedure(made)
    assert "(2 cells), wrong in 20 % of 20 conclusions" in said
    assert "1 cell without a difference beyond the margin" in said and "1 cell stays open" in said
    nothing = pool_cells("s", "single-load", [one(None, 0, 0.5)])
    assert nothing.rate is None and "nothing can be called wrong" in words.procedure(nothing)


def test_a_rate_of_an_experiment_is_turned_into_a_time(folder: Path) -> None:
    pair = next(one for one in read_pairs() if one.id == "slowest-or-faster")
    of_rate = Experiments(folder)
    read = of_rate.get("round-trips")
    assert read is not None
    about = replace(read.about, study={**read.about.study, "metric": "requests_per_s"})
    of_rate.known["round-trips"] = replace(read, about=about)
    found = of_rate.cells(pair)
    says = Assertion("requests_per_s", (pair.arm,), (pair.to,))
    assert len(found) == len(read.places)
    for own, place in zip(found, read.places, strict=True):  # twice the rate is half the time
        rate = math.exp(paired(says, place, pair.to).mean())
        assert own.ratio == pytest.approx(1 / rate)
        assert own.low is not None and own.high is not None and own.low <= own.ratio <= own.high


def test_experiments_say_at_what_a_side_becomes_true(folder: Path, found: Reconciled) -> None:
    """The invented runs: HTTP/3 needs half the time with new connections on both paths, and not on reused ones."""
    first = found.pairs[0]
    assert {cell.experiment for cell in first.cells} == {"round-trips"}
    truths = {(cell.cell.split(",")[0], cell.levels["connection"]): cell.truths[1] for cell in first.cells}
    assert set(truths) == {(f"path={path}", how) for path in ("far", "rough") for how in ("new", "reused")}
    told = " ".join(conditions.short(first))
    for cell in first.cells:
        assert cell.ratio is not None and cell.low is not None and cell.high is not None
        assert (cell.truths[1] == "true") == (cell.high < 1 / 1.05)
    true = [cell for cell in first.cells if cell.truths[1] == "true"]
    assert bool(true) == ("“HTTP/3 takes less time” becomes true" in told)
    assert "early-data" in conditions.missing(first)
    text = (folder / "reconciliation.html").read_text()
    assert "What would decide more" in text and "trifecta threats measure round-trips" in text
    rows = list(csv.DictReader((folder / "reconciliation-figures" / f"{first.evidence.pair.id}.csv").open()))
    cells = [row for row in rows if row["kind"] == "experiment"]
    assert len(cells) == 2 * len(first.cells)  # a row for either side
    places = [row for row in rows if row["kind"] == "claim"]
    assert len(places) == sum(len(side) for side in first.evidence.places)
    assert float(places[0]["ratio"]) == first.evidence.places[0][0].ratio


@pytest.mark.parametrize(("slope", "says"), [(1.2, "HTTP/3 is the fastest"), (-1.2, "HTTP/3 is the slowest")])
def test_a_map_says_where_either_sentence_is_true(slope: float, says: str, folder: Path, tmp_path: Path) -> None:
    """Faster by up to e^0.6 at the far end of the first axis, and slower as much at the near end, or the other way."""
    plan = a_plan("6x6", blocks=60)
    study = a_study(plan)
    rows, stop, _ = explore(plan, study, lambda x, _: slope * (x - 0.5))
    map_page.write(work_out(plan, study, rows, ending=stop.reason), tmp_path)
    pair = next(one for one in read_pairs() if one.id == "chain-or-fan-in")
    told = maps.sentences(pair, read_maps([tmp_path]))
    assert len(told) == 2  # one a side
    mine = next(said for said in told if says in said)
    other = next(said for said in told if says not in said)
    last, first = plan.x.kind.format(plan.x.values[-1]), plan.x.kind.format(plan.x.values[0])
    assert f"to {last}" in mine.split("within")[1].split(" and ")[0], mine
    assert first in other.split("within")[1], other
    half = next(one for one in read_pairs() if one.id == "slowest-or-faster")
    assert maps.sentences(half, read_maps([tmp_path])) == []  # it maps another traffic than that pair is about
    with pytest.raises(UserError, match=r"map\.json is not there yet"):
        read_maps([folder])


def test_the_same_folder_makes_the_same_files(folder: Path, found: Reconciled) -> None:
    """Byte for byte: page, figures (vector and not), tables, references."""
    kinds = {".svg", ".pdf", ".png", ".csv", ".html", ".bib"}
    paths = [folder / "reconciliation.html", folder / "reconciliation.bib",
             *(folder / "reconciliation-figures").iterdir()]  # fmt: skip
    before = {path: path.read_bytes() for path in paths}
    assert {path.suffix for path in before} == kinds
    reconcile.write(read(folder, draws=40))
    assert [path.name for path, text in before.items() if path.read_bytes() != text] == []


def test_the_terminal_says_conditions_and_what_is_missing(found: Reconciled) -> None:
    console = Console(record=True, width=300, file=io.StringIO())
    reconcile.print_reconciled(found, console)
    text = console.export_text()
    assert "“HTTP/3 is the slowest” held in bourbon2020, near (path clean" in text
    assert "3 experiments (early-data, implementation and cpu-bound) were not run" in text
    assert "1 part of the studies could not be run" in text
    assert text.rstrip().endswith("reconciliation.html")


def test_a_damaged_or_partial_folder_is_told_not_crashed(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "part"
    shutil.copytree(folder, copy)
    document = json.loads((copy / "reproduction.json").read_text())
    document["claims"] = document["claims"][:1]  # one study only
    document["runs"] = [{"folder": NEAR}, {"folder": "bourbon2020/gone"}]
    del document["threats"], document["missing"]
    (copy / "reproduction.json").write_text(json.dumps(document))
    (copy / "threats" / "round-trips" / "study.yaml").write_text("workload: [")  # what was measured cannot be read
    (copy / NEAR / "run.json").write_text("{")
    made = read(copy, draws=5)
    reconcile.write(made)
    reader = pages.read((copy / "reconciliation.html").read_text())
    assert reader.faults == []
    assert made.problems  # said, not hidden
    assert all(problem in " ".join(reader.root.text.split()) for problem in [made.problems[0].split("\n")[0]])
    assert "could not be checked: no cell that it is about was run" in reader.root.text
    assert "round-trips" in conditions.missing(made.pairs[0])


def test_what_a_program_gets_is_json(found: Reconciled) -> None:
    assert json.loads(reconcile.as_json(found))["pairs"][0]["outcome"] in ("both", "first", "second", "open")


def test_a_folder_without_a_reproduction_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no reproduction\.json here; give the folder"):
        read(tmp_path)
    (tmp_path / "reproduction.json").write_text("[1, 2")
    with pytest.raises(UserError, match="is not valid JSON"):
        read(tmp_path)
    (tmp_path / "reproduction.json").write_text('{"claims": {}}')
    with pytest.raises(UserError, match="is not what 'trifecta reproduce' writes"):
        read(tmp_path)


def test_a_run_never_leaves_the_folder(tmp_path: Path) -> None:
    cells = [
        {"run": "../elsewhere", "cell": "path=x", "state": "open", "value": 1, "low": None, "high": None, "to": "h2"}
    ]
    claim = {"id": "bourbon2020.clean-h3-highest", "state": "open", "metric": "latency_p50_ns", "cells": cells}
    (tmp_path / "reproduction.json").write_text(json.dumps({"reproduction": {}, "claims": [claim]}))
    with pytest.raises(UserError, match="is outside of the folder"):
        read(tmp_path)


def test_without_any_run_the_page_says_so(tmp_path: Path) -> None:
    (tmp_path / "reproduction.json").write_text(json.dumps({"reproduction": {}, "claims": []}))
    found = read(tmp_path)
    text = page.render(found)
    assert {one.evidence.outcome for one in found.pairs} == {"not run"}
    assert text.count("No run answers this.") >= len(found.pairs)
    assert pages.read(text).faults == []


def test_the_command_names_no_folder_of_this_machine() -> None:
    argv = ["/here/trifecta", "reproduce", "all", "--quick", "--out", "/here/runs/four"]
    made = Reconciled(folder=Path("four"), invocation={"argv": argv}, claims={}, runs=[], missing=[])
    assert citation.command(made) == "trifecta reproduce all --quick --out FOLDER"
