"""Export formats: whole or not at all, and as their readers want them; a target is asked for by its URL."""

import csv
import errno
import json
import re

import duckdb
import pytest

from tests.report.synthetic import Shape, write_run
from trifecta.design.errors import UserError
from trifecta.store import views
from trifecta.store.exports import EXPORTERS, TARGETS, export, schemes, send, tables, to
from trifecta.store.exports import csv as of_csv
from trifecta.store.exports.tables import Table


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("made") / "run", Shape(blocks=5, samples_per_trial=60))


@pytest.fixture(scope="module")
def connection(run):
    with views.connect(run) as opened:
        yield opened


def state(folder):
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in sorted(folder.rglob("*"))}


def test_csv_has_every_row_of_every_table(run, connection, tmp_path):
    before = state(run)
    written = {path.stem: path for path in export("csv", run, tmp_path / "out")}
    assert state(run) == before
    assert {"trials", "samples", "checks"} <= set(written)
    assert set(tmp_path.joinpath("out").iterdir()) == set(written.values())
    for name in ("trials", "samples"):
        with written[name].open() as file:
            rows = list(csv.DictReader(file))
        (expected,) = connection.execute(f"SELECT count(*) FROM {name}").fetchone()
        assert len(rows) == expected
    trial, first = connection.execute("SELECT trial, started_ns FROM samples LIMIT 1").fetchone()
    with written["samples"].open() as file:
        row = next(csv.DictReader(file))
    assert (row["trial"], row["started_ns"]) == (trial, str(first))


HARD = """
CREATE TABLE hard AS SELECT row_number() OVER () - 1 AS number, x AS text, y AS fraction, y::FLOAT AS small,
  [1, number] AS list, {'a': x} AS struct, number = 3 AS truth, 18446744073709551615::UBIGINT AS most,
  (-9223372036854775808)::BIGINT AS least, 170141183460469231731687303715884105727::HUGEINT AS huge, 1.50::DECIMAL(9, 2)
  AS decimal, TIMESTAMP '2026-11-28 22:40:00.5' AS day, nullif(number, 2)::UTINYINT AS gap
FROM (SELECT unnest(['', NULL, 'a,b', 'a"b', E'a\\nb', E'a\\rb', '#x', ' x ', 'NULL', 'ä😀', '""', '-', 'h2#aa']) AS x,
  unnest([0, -0.0, 1e-5, 1e-7, 0.1, 1e15, 1e16, 1e22, 5e-324, 'inf', '-inf', 'nan', NULL]::DOUBLE[]) AS y);
CREATE TABLE nothing AS SELECT NULL::VARCHAR AS only FROM range(3)"""


@pytest.fixture
def _faster(monkeypatch):
    """Polars writes tables of any size."""
    pytest.importorskip("polars")
    monkeypatch.setattr(of_csv, "_MANY", 1)


@pytest.mark.usefixtures("_faster")
def test_csv_is_the_same_whoever_writes_it(tmp_path, monkeypatch):
    by_polars, copy = [], of_csv._by_polars
    monkeypatch.setattr(of_csv, "_by_polars", lambda *all_: (by_polars.append(all_[1].name), copy(*all_)))
    with duckdb.connect() as made:
        made.execute(HARD)
        made.execute("CREATE TABLE long AS SELECT i, 't' || i % 7 AS trial FROM range(50_000) AS r(i)")
        written = {}
        for name, found in (("duckdb", lambda _: None), ("polars", lambda module: module)):
            (tmp_path / name).mkdir()
            monkeypatch.setattr(of_csv, "find_spec", found)
            written[name] = {path.name: path.read_bytes() for path in of_csv.write(made, tmp_path / name)}
        if duckdb.__version__ < "2":  # puts a text with a # in quotes
            written["duckdb"]["hard.csv"] = re.sub(rb'"([^",]*#[^",]*)"', rb"\1", written["duckdb"]["hard.csv"])
    assert by_polars == ["hard", "long", "nothing"]
    assert written["polars"] == written["duckdb"]
    assert written["polars"]["hard.csv"].count(b"\n") == 16


@pytest.mark.usefixtures("_faster")
def test_a_full_disk_is_told_whoever_writes(tmp_path):
    (tmp_path / "full.csv").symlink_to("/dev/full")
    with duckdb.connect() as made:
        made.execute('CREATE TABLE "full" AS FROM range(200_000)')
        with pytest.raises(OSError, match="No space left") as raised:
            of_csv.write(made, tmp_path)
    assert raised.value.errno == errno.ENOSPC


def test_lines_of_json_are_what_the_tables_hold(run, connection, tmp_path):
    written = {path.stem: path for path in export("jsonl", run, tmp_path / "out")}
    lines = written["samples"].read_text().splitlines()
    names = [name for name, *_ in connection.execute("SELECT * FROM samples LIMIT 0").description]
    rows = connection.execute("SELECT * FROM samples").fetchall()
    assert len(lines) == len(rows)
    for line, row in zip(lines, rows, strict=True):
        told = json.loads(line, parse_constant=pytest.fail)  # JSON has no Infinity
        expected = {name: "inf" if value == float("inf") else value for name, value in zip(names, row, strict=True)}
        assert told == expected
    assert any('"latency_censored_ns":"inf"' in line for line in lines), "the run has failed requests"
    for line in written["trials"].read_text().splitlines():
        assert isinstance(json.loads(line)["load_json"], dict)


def test_archives_are_gathered_under_their_trials(tmp_path):
    run = write_run(tmp_path / "run", Shape(blocks=4, paths=("clean",), connections=("new",), servers=("origin",)))
    with views.connect(run) as opened:
        first, second = [name for (name,) in opened.execute("SELECT trial FROM trials ORDER BY 1 LIMIT 2").fetchall()]
    with pytest.raises(UserError, match="has no HTTP Archives"):
        export("har", run, tmp_path / "none")
    assert not (tmp_path / "none").exists()
    for name in (f"{first}/0.har", f"{first}/10.har", f"{first}/2.har", f"{second}/0.har", f"{second}/.tmp-1.har"):
        (run / "har" / name).parent.mkdir(parents=True, exist_ok=True)
        (run / "har" / name).write_text(name)
    (run / "manifest.sha256").unlink(missing_ok=True)  # which knows nothing of these
    written = export("har", run, tmp_path / "out")
    expected = [f"{first}-0.har", f"{first}-2.har", f"{first}-10.har", f"{second}-0.har"]
    assert [path.name for path in written] == expected
    assert (tmp_path / "out" / f"{first}-10.har").read_text() == f"{first}/10.har"


def test_benchstat_reads_the_trials(run, connection, tmp_path):
    (path,) = export("benchstat", run, tmp_path / "out")
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


def test_a_format_that_is_not_there_and_a_folder_that_is_taken_are_refused(run, tmp_path):
    with pytest.raises(UserError, match="no format 'cvs'; did you mean 'csv'"):
        export("cvs", run, tmp_path / "out")
    with pytest.raises(UserError, match="no format 's3'; it is a target: --to s3://"):
        export("s3", run, tmp_path / "out")
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(UserError, match="is not empty; choose another with --out"):
        export("csv", run, tmp_path)
    with pytest.raises(UserError, match="is in the run's folder, which an export leaves alone"):
        export("csv", run, run / "out")
    assert not (run / "out").exists()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("s4://bucket", "--to s4://: no target of this scheme; choose from s3, gs, az, file, "),
        ("influx://db/x", "--to influx://: no target of this scheme; did you mean 'influxdb'"),
        ("mariadb://me:secret@db/x", "a password in a URL ends in histories and logs"),
        ("influxdb://db:port/x", "not a URL"),
    ],
)
def test_a_bad_url_is_refused_without_its_secret(run, url, said):
    with pytest.raises(UserError, match=re.escape(said)) as error:
        send(url, run)
    assert "secret" not in str(error.value)


def test_to_takes_a_format_with_its_folder(run, tmp_path):
    assert to(f"benchstat:{tmp_path / 'lines'}", run) == [str(tmp_path / "lines/trials.txt")]


@pytest.mark.parametrize("name", [*EXPORTERS.own, *TARGETS.own])
def test_every_format_and_target_is_documented_in_its_file(name):
    one = EXPORTERS[name] if name in EXPORTERS.own else TARGETS[name]
    assert one.documentation["Writes"]
    assert bool(one.documentation["Needs"]) == (name in TARGETS.own)


def test_no_scheme_is_taken_twice():
    every = [scheme for target in TARGETS.values() for scheme in target.schemes]
    assert sorted(every) == sorted(schemes())


@pytest.mark.parametrize("rows", [1, 3, 4, 7, 100])
def test_parts_hold_each_row_once(rows):
    with duckdb.connect() as made:
        made.execute("CREATE TABLE t AS SELECT 't' || lpad((i // 3)::VARCHAR, 5, '0') AS trial, i // 2 AS started_ns "
                     "FROM range(20) AS r(i) UNION ALL SELECT NULL, 7")  # fmt: skip
        table = Table("t", (("trial", "VARCHAR"), ("started_ns", "BIGINT")))
        for split_by in (None, "started_ns"):
            wheres = list(tables.parts(made, table, rows, split_by=split_by))
            counts = [made.execute(f"SELECT count(*) FROM t WHERE {where}").fetchone()[0] for where in wheres]
            assert sum(counts) == 21
            covered = " + ".join(f"coalesce(({where})::INT, 0)" for where in wheres)
            assert made.execute(f"SELECT DISTINCT {covered} FROM t").fetchall() == [(1,)]
            assert max(counts) <= max(rows, 3)


def test_a_run_is_told_from_another_of_its_name(tmp_path):
    shape = Shape(blocks=4, paths=("clean",), connections=("new",), servers=("origin",))
    one = write_run(tmp_path / "a" / "my run", shape)
    two = write_run(tmp_path / "b" / "my run", shape)
    facts = json.loads((two / "run.json").read_text())
    first, same = tables.identity(one), tables.identity(two)
    assert first == same, "a copy is the same run"
    (two / "run.json").write_text(json.dumps(facts | {"seed": facts["seed"] + 1}))
    other = tables.identity(two)
    assert re.fullmatch(r"my-run-[0-9a-f]{8}", first.run)
    assert other.run != first.run
    assert other.study == first.study == "race"


def test_a_run_is_copied_only_to_where_it_may_be(run, tmp_path):
    (tmp_path / "in").mkdir()
    with views.connect(run, writes=tmp_path / "in") as opened:
        opened.execute(f"COPY (SELECT 1 AS a) TO '{tmp_path}/in/a.csv' (HEADER true)")
        for elsewhere in (tmp_path / "b.csv", tmp_path / "in.csv"):
            with pytest.raises(duckdb.Error, match=r"(?i)permission|disabled"):
                opened.execute(f"COPY (SELECT 1 AS a) TO '{elsewhere}'")
    assert (tmp_path / "in/a.csv").read_text() == "a\n1\n"
    assert not list(tmp_path.glob("*.csv"))
