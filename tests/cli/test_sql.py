"""``trifecta sql`` and ``trifecta report`` on a run."""

import json
import re

import pytest

from tests.report.synthetic import Shape, write_run
from trifecta.cli import main
from trifecta.store import data_dictionary
from trifecta.store.data_dictionary import TABLES


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    shape = Shape(blocks=2, samples_per_trial=20, paths=("clean",), connections=("reused",), servers=("origin",))
    return write_run(tmp_path_factory.mktemp("runs") / "made up", shape)


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch):
    """Nothing is broken into lines; xdist tells its workers of a terminal's width."""
    monkeypatch.delenv("COLUMNS", raising=False)


def test_without_a_query_it_lists_every_column_with_type_and_meaning(run, capsys):
    assert main.run(["sql", str(run)]) == 0
    text = capsys.readouterr().out
    for table in ("trials", "samples", "checks", "verdicts", "link"):
        assert re.search(rf"^{table}  one row", text, re.MULTILINE)
    assert re.search(r"^  latency_p50_ns +bigint +median latency; null .*, ns$", text, re.MULTILINE)
    assert main.run(["sql", str(run), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert set(rows[0]) == {"table", "column", "type", "meaning"}
    assert all(row["meaning"].strip() for row in rows)
    assert {row["table"] for row in rows} <= {*TABLES}
    assert sum(bool(re.match(r"  \w+ +\w", line)) for line in text.splitlines()) == len(rows)


def test_the_tables_that_everybody_asks_have_meanings_written_by_hand(run, capsys):
    main.run(["sql", str(run), "--json"])
    for row in json.loads(capsys.readouterr().out):
        if row["table"] in ("trials", "samples", "checks", "verdicts", "intervals", "link", "resources", "spans"):
            table, column = row["table"], row["column"]
            assert column in data_dictionary._OF_ONE[table] or column in data_dictionary._OF_ANY, (table, column)
    for table, columns in data_dictionary._OF_ONE.items():
        known = {row["column"] for row in columns_of(run, capsys) if row["table"] == table}
        assert {*columns} <= known, table  # none that is gone


def columns_of(run, capsys):
    main.run(["sql", str(run), "--json"])
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("width", [40, 60, 80, 132, 200])
@pytest.mark.parametrize("query", [None, "FROM trials LIMIT 2", "FROM verdicts LIMIT 2", "SELECT 1 AS one"])
def test_it_keeps_to_the_width_and_cuts_nothing(run, capsys, monkeypatch, width, query):
    monkeypatch.setenv("COLUMNS", str(width))
    assert main.run(["sql", str(run), *([query] if query else [])]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    if query and "trials" in query:
        row = json.loads(as_json_of(run, query, capsys))[0]
        whole = "".join(text.split())
        assert "".join(str(row["checks_json"]).split()) in whole


def as_json_of(run, query, capsys):
    main.run(["sql", str(run), "--json", query])
    return capsys.readouterr().out


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
