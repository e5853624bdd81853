"""``trifecta sql`` and ``trifecta report`` on a run."""

import json

import pytest

from tests.report.synthetic import Shape, write_run
from trifecta.cli import main


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    shape = Shape(blocks=2, samples_per_trial=20, paths=("clean",), connections=("reused",), servers=("origin",))
    return write_run(tmp_path_factory.mktemp("runs") / "made up", shape)


def test_without_a_query_it_lists_tables_and_columns(run, capsys):
    assert main.run(["sql", str(run)]) == 0
    text = capsys.readouterr().out
    for table in ("trials", "samples", "checks", "verdicts", "link"):
        assert f"\n{table} " in text
    assert "latency_p50_ns" in text


def test_a_query_as_json(run, capsys):
    query = "SELECT arm, count(*) AS trials FROM trials GROUP BY arm ORDER BY arm"
    assert main.run(["sql", str(run), "--json", query]) == 0
    assert json.loads(capsys.readouterr().out) == [{"arm": arm, "trials": 2} for arm in ("h1", "h2", "h2#aa", "h3")]


def test_a_query_from_standard_input(run, capsys, monkeypatch):
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT count(*) AS n FROM verdicts"))
    assert main.run(["sql", str(run), "-", "--csv"]) == 0
    assert capsys.readouterr().out.split()[0] == "n"


@pytest.mark.parametrize(
    "query",
    ["SELECT nothing FROM trials", "SELEC", "COPY trials TO '/tmp/out.csv'", "SELECT * FROM read_csv('/etc/passwd')"],
)
def test_a_query_that_is_wrong_or_leaves_the_run_is_one_line(run, query, capsys):
    assert main.run(["sql", str(run), query]) == 2
    error = capsys.readouterr().err
    assert error.startswith("trifecta: query: ")
    assert error.count("\n") == 1


def test_json_and_csv_exclude_each_other(run, capsys):
    assert main.run(["sql", str(run), "--json", "--csv"]) == 2
    assert "--json and --csv cannot be combined" in capsys.readouterr().err


def test_report_writes_the_page_and_shows_verdicts(run, capsys):
    assert main.run(["report", str(run)]) == 0
    assert f"Report: {run / 'report.html'}" in capsys.readouterr().out
    assert (run / "report.html").read_text().startswith("<!")


def test_report_as_json(run, capsys):
    assert main.run(["report", str(run), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["cells"]
