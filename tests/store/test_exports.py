"""Export formats: whole or not at all, and as their readers want them."""

import csv
import re

import pytest

from tests.report.synthetic import write_run
from trifecta.design.errors import UserError
from trifecta.store import views
from trifecta.store.exports import EXPORTERS, export


@pytest.fixture(scope="module")
def connection(tmp_path_factory):
    with views.connect(write_run(tmp_path_factory.mktemp("made") / "run")) as opened:
        yield opened


def test_csv_has_every_row_of_every_table(connection, tmp_path):
    written = {path.stem: path for path in export("csv", connection, tmp_path / "out")}
    assert {"trials", "samples", "checks"} <= set(written)
    assert set(tmp_path.joinpath("out").iterdir()) == set(written.values())
    for name in ("trials", "samples"):
        with written[name].open() as file:
            rows = list(csv.DictReader(file))
        (expected,) = connection.execute(f"SELECT count(*) FROM {name}").fetchone()
        assert len(rows) == expected
    first = connection.execute("SELECT started_ns FROM samples LIMIT 1").fetchone()[0]
    with written["samples"].open() as file:
        assert next(csv.DictReader(file))["started_ns"] == str(first)


def test_benchstat_reads_the_trials(connection, tmp_path):
    (path,) = export("benchstat", connection, tmp_path / "out")
    lines = path.read_text().splitlines()
    units = [line.split()[1] for line in lines if line.startswith("Unit ")]
    assert "Unit latency_p50_ns better=lower" in lines and "Unit requests_per_s better=higher" in lines
    trials = [line for line in lines if line.startswith("Benchmark")]
    (expected,) = connection.execute("SELECT count(*) FROM trials WHERE valid AND NOT is_aa").fetchone()
    assert len(trials) == expected
    for line in trials:
        name, count, *told = line.split(" ")
        assert re.fullmatch(r"BenchmarkTrial(/\w+=[^\s/=]+)+", name) and "#aa" not in name
        assert int(count) > 0
        assert all(float(value) >= 0 and unit in units for value, unit in zip(told[::2], told[1::2], strict=True))


def test_a_format_that_is_not_there_and_a_folder_that_is_taken_are_refused(connection, tmp_path):
    with pytest.raises(UserError, match="no format 'cvs'; did you mean 'csv'"):
        export("cvs", connection, tmp_path / "out")
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(UserError, match="is not empty; choose another with --out"):
        export("csv", connection, tmp_path)


@pytest.mark.parametrize("name", EXPORTERS.own)
def test_every_format_is_documented_in_its_file(name):
    assert EXPORTERS[name].documentation["Writes"]
