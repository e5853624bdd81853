"""A file of a run that was cut short is named, with what to do; any other error stays what it is."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.report.synthetic import Shape, write_run
from trifecta.cli import main
from trifecta.store import damage


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shape = Shape(blocks=2, samples_per_trial=20, paths=("clean",), connections=("reused",), servers=("origin",))
    return write_run(tmp_path_factory.mktemp("runs") / "made-up", shape)


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "copied"))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


@pytest.mark.parametrize("command", ["report", "explain", "sql"])
@pytest.mark.parametrize("file", ["trials/t00000.parquet", "trials/t00003.parquet", "samples/t00001.parquet"])
def test_a_file_that_was_cut_is_named_with_the_remedy(
    run: Path, command: str, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cut(run / file)
    query = ["SELECT sum(done_ns), count(load_json) FROM samples JOIN trials USING (trial)"] if command == "sql" else []
    assert main.run([command, str(run), *query]) == 2
    out, error = capsys.readouterr()
    assert (out, error.count("\n")) == ("", 1)
    assert str(run / file) in error
    if command != "sql":
        trial = run / "trials" / Path(file).name
        assert f"is damaged (no whole Parquet file); copy it again, or remove {trial} and measure" in error


def test_what_is_no_trials_file_is_copied_again(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut(run / "verdicts.parquet")
    assert main.run(["report", str(run), "--json"]) == 2
    assert capsys.readouterr().err == (
        f"trifecta: {run / 'verdicts.parquet'}: is damaged (no whole Parquet file); copy it again, or remove it\n"
    )


@pytest.mark.parametrize("file", ["study.yaml", "planner.jsonl"])
def test_a_text_that_is_none_is_named(run: Path, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Found by damaging files of a run by chance."""
    with (run / file).open("ab") as text:
        text.write(b"\xb4\n")
    assert main.run(["report", str(run), "--json"]) == 2
    assert capsys.readouterr().err.startswith(f"trifecta: {run / file}: is not UTF-8 (octet ")


@pytest.mark.parametrize("command", ["report", "explain"])
def test_a_file_of_another_kind_is_named(run: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copyfile(run / "verdicts.parquet", run / "trials" / "t00003.parquet")
    assert main.run([command, str(run)]) == 2
    error = capsys.readouterr().err
    assert "t00003.parquet: lacks the column 'trial'; copy it again" in error
    assert error.count("\n") == 1


def test_an_error_of_ours_is_not_blamed_on_whole_files(whole: Path) -> None:
    with pytest.raises(KeyError), damage.naming_damaged_file(whole):
        raise KeyError("ours")
    assert damage.first_damaged(whole) is None


def test_the_run_goes_on_without_the_trial_that_was_removed(run: Path) -> None:
    cut(run / "trials" / "t00003.parquet")
    (run / "trials" / "t00003.parquet").unlink()
    assert main.run(["report", str(run), "--json"]) == 0
    assert json.loads((run / "run.json").read_text())


@pytest.mark.parametrize("command", ["report", "explain", "sql"])
@pytest.mark.parametrize("column", ["server", "load_json", "error"])
@pytest.mark.parametrize("file", ["trials/t00001.parquet", "verdicts.parquet"])
def test_a_column_whose_text_is_none_is_named(
    run: Path, command: str, column: str, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Found by the fuzzer: the file is whole, its text is no UTF-8, and who read it ended with an internal error."""
    table = pq.read_table(run / file)
    name = column if column in table.column_names else "reason"
    bad = pa.array([b"\xff\xfe"] * table.num_rows).view(pa.string())
    pq.write_table(table.set_column(table.column_names.index(name), name, bad), run / file)
    query = ["SELECT * FROM trials, verdicts"] if command == "sql" else []
    assert main.run([command, str(run), *query]) == 2
    out, error = capsys.readouterr()
    assert (out, error.count("\n")) == ("", 1)
    assert str(run / file) in error
    assert f"column {name!r} is not text (UTF-8)" in error
