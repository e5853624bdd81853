"""``trifecta.open``: the tables, verdicts and errors of a run, on a machine that could not have measured it."""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import trifecta
from tests.report.synthetic import Shape
from trifecta.api import reading
from trifecta.store import digest_prefetch, manifest
from trifecta.store.data_dictionary import TABLES
from trifecta.store.run import RunDirectory


def python(code: str, *arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True, text=True, check=False, env=os.environ | environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_trifecta_imports_nothing_of_what_it_offers() -> None:
    code = """
import sys
before = set(sys.modules)
import trifecta
assert {"open", "run", "race", "Run", "UserError", "__version__"} <= set(dir(trifecta))
print(sorted(name for name in set(sys.modules) - before if name.partition(".")[0] not in sys.stdlib_module_names))
"""
    assert python(code).strip() == "['trifecta']"


def test_what_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'opne'"):
        trifecta.opne  # type: ignore[attr-defined]  # noqa: B018


def test_the_types_are_those_of_what_is_there() -> None:
    text = Path(trifecta.__file__).with_suffix(".pyi").read_text()
    from trifecta import _ASKED  # type: ignore[attr-defined]

    for name, module in _ASKED.items():
        assert f"from {module} import {name} as {name}\n" in text
    assert text.count("import") == len(_ASKED) + 2, "and nothing else; the docstring says the word twice"


def test_a_run_is_read_without_lab_engine_or_frames(folder: Path) -> None:
    code = """
import sys
import trifecta
run = trifecta.open(sys.argv[1])
assert run.trials.fetchall() and run.samples.limit(1).fetchall() and run.answer()
run.plot.ecdf(path="far", connection="new"), run.plot.ratios(), run.plot.blocks(path="far", connection="new")
bad = ("trifecta.lab", "trifecta.workloads", "trifecta.implementations", "trifecta.cli", "pandas", "polars", "pyarrow")
print(sorted(name for name in sys.modules if name.startswith(bad)))
"""
    assert python(code, str(folder), TRIFECTA_ENGINE="/nowhere", PATH="/nowhere").strip() == "[]"


def test_a_first_query_needs_no_statistics(folder: Path) -> None:
    code = """
import sys
import trifecta
trifecta.open(sys.argv[1]).samples.aggregate("count(*)").fetchall()
print(sorted({"scipy", "matplotlib", "click", "rich"} & set(sys.modules)))
"""
    assert python(code, str(folder)).strip() == "[]"


def test_every_view_is_an_attribute() -> None:
    assert {name for name, one in vars(reading.Run).items() if isinstance(one, reading.View)} == set(TABLES)
    assert reading.Run.trials.__doc__ == TABLES["trials"]


def test_the_attributes_are_the_views(folder: Path) -> None:
    with trifecta.open(folder) as run:
        there = {row[0] for row in run.sql("SELECT table_name FROM information_schema.tables").fetchall()}
        assert there == set(TABLES) - {"link_packets"}
        for name in there:
            columns = run.sql(f"SELECT * FROM {name} LIMIT 0").columns
            assert getattr(run, name).columns == columns, name
        with pytest.raises(trifecta.UserError, match="no view 'link_packets'; it is there of captured trials only"):
            run.link_packets  # noqa: B018 - it is asked for here
        with pytest.raises(trifecta.UserError, match="no view 'trails'; did you mean 'trials'"):
            run.view("trails")


def test_tables_become_frames(folder: Path) -> None:
    run = trifecta.open(folder)
    trials = len(list((folder / "trials").iterdir()))
    frame = run.trials.df()
    assert len(frame) == trials
    assert set(frame["arm"]) == {"h1", "h2", "h3", "h2#aa"}
    assert run.trials.to_arrow_table().num_rows == trials
    assert sum(batch.num_rows for batch in run.samples.arrow()) == 60 * trials
    whole = run.sql("SELECT typeof(started_ns) FROM samples LIMIT 1").fetchall()
    assert whole == [("BIGINT",)], "times stay integers"


def test_tables_become_frames_of_polars(folder: Path) -> None:
    pytest.importorskip("polars")
    assert trifecta.open(folder).trials.pl().height == len(list((folder / "trials").iterdir()))


def test_a_relation_outlives_the_run_that_it_came_from(folder: Path) -> None:
    relation = trifecta.open(folder).trials.filter("arm = 'h3'")
    gc.collect()
    assert relation.fetchall()


def test_a_query_that_is_wrong_is_one_line(folder: Path) -> None:
    with trifecta.open(folder) as run:
        with pytest.raises(trifecta.UserError, match=r"^query: .*trails") as raised:
            run.sql("SELECT * FROM trails")
        assert "\n" not in str(raised.value)
        with pytest.raises(trifecta.UserError, match="query: "):
            run.sql("-- nothing")
        with pytest.raises(trifecta.UserError, match="query: "):
            run.sql("FROM read_csv('/etc/passwd')")


def test_a_verdict_is_that_of_the_run(folder: Path) -> None:
    run = trifecta.open(folder)
    kept = {(one.cell, one.arm, one.reference, one.metric): one for one in RunDirectory.open(folder).verdicts()}
    cell = "path=far,connection=new,server=origin"
    one = run.verdict("h3", "h2", path="far", connection="new")
    assert one == kept[cell, "h3", "h2", run.study.metric]
    assert run.verdict("HTTP/3", "HTTP/2", path="far", connection="new") == one
    only = run.verdict("h1", path="far", connection="new")
    assert (only.arm, only.reference) == ("h1", "h2"), "there is no other reference"


@pytest.mark.parametrize(
    ("arguments", "levels", "said"),
    [
        (("h3", "h2"), {}, "4 verdicts fit: h3 against h2 in path="),
        (("h4",), {}, "no verdict with arm 'h4'; there is h"),
        (("h3", "h2"), {"paht": "far"}, "no factor 'paht' in its cells; did you mean 'path'"),
        (("h3", "h2"), {"path": "fra"}, "no cell has path=fra; did you mean 'far'"),
    ],
)
def test_what_leaves_no_single_verdict_is_said(
    folder: Path, arguments: tuple[str, ...], levels: dict[str, str], said: str
) -> None:
    with pytest.raises(trifecta.UserError) as raised:
        trifecta.open(folder).verdict(*arguments, **levels)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_run_says_what_it_is(folder: Path) -> None:
    run = trifecta.open(folder)
    assert repr(run) == f"Run({str(folder)!r}): The race, 112 trials"
    assert run.facts["seed"] == run.study.seed
    assert len(run.cells) == 4
    assert run.said == ()


def test_what_is_no_run_is_one_line(tmp_path: Path) -> None:
    for there in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(trifecta.UserError, match=r"holds no run \(no run.json\); give the folder") as raised:
            trifecta.open(there)
        assert "\n" not in str(raised.value)


def copied(folder: Path, to: Path) -> Path:
    return Path(shutil.copytree(folder, to))


def test_a_damaged_run_is_one_line(folder: Path, tmp_path: Path) -> None:
    run = copied(folder, tmp_path / "run")
    file = run / "samples/t00003.parquet"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(trifecta.UserError, match=r"t00003\.parquet: .*copy it again") as raised:
        trifecta.open(run)
    assert "\n" not in str(raised.value)


def test_a_run_of_a_later_version_is_one_line(folder: Path, tmp_path: Path) -> None:
    run = copied(folder, tmp_path / "run")
    about = json.loads((run / "run.json").read_text()) | {"schema": 999}
    (run / "run.json").write_text(json.dumps(about))
    with pytest.raises(trifecta.UserError, match="999"):
        trifecta.open(run)


def test_verdicts_that_were_taken_away_are_worked_out_again(folder: Path, tmp_path: Path) -> None:
    run = copied(folder, tmp_path / "run")
    (run / "verdicts.parquet").unlink()
    with pytest.warns(UserWarning, match="verdicts.parquet is gone"):
        opened = trifecta.open(run)
    assert opened.said
    assert opened.verdict("h3", "h2", path="far", connection="new").blocks >= 6


def test_a_run_without_a_trial_has_empty_tables(tmp_path: Path) -> None:
    directory = RunDirectory.create(tmp_path / "run", {"state": "running"}, Shape().study.source)
    directory.close()
    run = trifecta.open(tmp_path / "run")
    assert run.trials.fetchall() == [] and run.samples.fetchall() == [] and run.cells == []
    assert repr(run).endswith("0 trials, not over")
    with pytest.raises(trifecta.UserError, match="no cell with a trial yet; open it again"):
        run.plot.ecdf()
    with pytest.raises(trifecta.UserError, match="no verdict yet"):
        run.verdict("h3")


def test_what_was_read_ahead_is_not_read_again(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = copied(folder, tmp_path / "run")
    digest_prefetch.read(run)

    def refused(*_: object) -> None:
        raise AssertionError("a file was read twice")

    with monkeypatch.context() as patched:
        patched.setattr("hashlib.file_digest", refused)
        manifest.check(run)
    (run / "link/t00001.json").write_text("{}")
    digest_prefetch.read(run)
    with pytest.raises(trifecta.UserError, match=r"t00001\.json"):
        manifest.check(run)
