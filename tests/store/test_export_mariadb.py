"""MariaDB holds a run once, with its tests as views; what does not fit, and who is not let in, is one line."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.report.synthetic import Shape, write_run
from tests.store import servers
from tests.store.test_spans import span
from trifecta.design import extras
from trifecta.design.errors import CannotError, UserError
from trifecta.store import schema, views
from trifecta.store.exports import mariadb, mariadb_server, mariadb_tests, send

DOCS = Path(__file__).parents[2] / "docs" / "export.md"
SMALL = Shape(blocks=4, samples_per_trial=40, paths=("rough",), connections=("new",), servers=("origin",))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("made") / "run", SMALL)


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("MYSQL_PWD", "MYSQL_UNIX_PORT"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def library():
    return pytest.importorskip("pymysql", reason=f"pymysql is missing; run: {extras.remedy('exports')}")


def test_who_asks_is_of_the_url_the_environment_and_the_file(home, library, monkeypatch):
    (home / ".my.cnf").write_text('!includedir /etc/x\n[client]\nskip-ssl\nuser = me\npassword = "of file"\n')
    server = mariadb_server.of_url("mariadb://db.lab/measured")
    assert (server.host, server.port, server.user, server.password) == ("db.lab", 3306, "me", "of file")
    assert "of file" not in repr(server)
    monkeypatch.setenv("MYSQL_PWD", "of environment")
    server = mariadb_server.of_url("mariadbs://you@db.lab:3307/measured")
    assert (server.port, server.user, server.password, server.tls) == (3307, "you", "of environment", True)
    monkeypatch.setenv("MYSQL_UNIX_PORT", "/tmp/x.sock")
    assert mariadb_server.of_url("mysql:///measured").arguments()["unix_socket"] == "/tmp/x.sock"
    (home / ".my.cnf").write_text("password = hidden\n")
    with pytest.raises(UserError, match=r"~/\.my\.cnf is not in the format") as error:
        mariadb_server.of_url("mysql:///measured")
    assert "hidden" not in str(error.value)


@pytest.mark.parametrize("url", ["mariadb://db", "mariadb://db/", "mariadb://db/a/b", "mariadb://db/a?ssl=no"])
def test_a_url_of_another_form_is_refused(url):
    with pytest.raises(UserError, match="the URL has the form mariadb://USER@HOST:3306/DATABASE"):
        mariadb_server.of_url(url)


def test_columns_of_services_have_the_names_of_the_study():
    text = mariadb_tests._of_services([("A", "B"), ("B", "C"), ("B", "A")])
    names = [part.partition("`")[0] for part in text.split(" AS `")[1:]]
    of_a_b = ["elapsedAB_ns", "elapsedBA_ns", "elapsedABA_ns"]
    of_b_a = ["elapsedBA_ns_", "elapsedAB_ns_", "elapsedBAB_ns"]
    assert names == ["elapsed_ns", *of_a_b, "elapsedBC_ns", "elapsedCB_ns", "elapsedBCB_ns", *of_b_a]
    assert text.count("%s") == len(mariadb_tests._values([("A", "B"), ("B", "C"), ("B", "A")], 1, "x"))


def test_a_server_that_is_away_is_one_line(run, home, library, monkeypatch):
    monkeypatch.setenv("MYSQL_PWD", "very-hidden")
    with pytest.raises(CannotError, match=r"^mariadb://127\.0\.0\.1:\d+/x: ") as error:
        send(f"mariadb://me@127.0.0.1:{servers.free_port()}/x", run)
    assert "\n" not in str(error.value)
    assert "very-hidden" not in str(error.value)


@pytest.fixture(scope="module")
def socket(tmp_path_factory):
    """Of a real server."""
    with servers.mariadb(tmp_path_factory.mktemp("mariadb")) as there:
        yield there


@pytest.fixture
def database(socket, home, library, monkeypatch):
    """A connection to it, whose database is empty."""
    monkeypatch.setenv("MYSQL_UNIX_PORT", str(socket))
    opened = library.connect(unix_socket=str(socket), user="root", autocommit=True)
    with opened.cursor() as cursor:
        cursor.execute("CREATE OR REPLACE DATABASE measured")
        cursor.execute("USE measured")
        yield cursor
    opened.close()


def ask(cursor, query):
    cursor.execute(query)
    return list(cursor.fetchall())


URL = "mariadb://root@/measured"


def test_a_real_server_holds_a_run_once(run, database):
    told = send(URL, run)
    assert send(URL, run) == told
    with views.connect(run) as opened:
        for table in ("trials", "samples", "checks", "verdicts"):
            (expected,) = opened.execute(f"SELECT count(*) FROM {table}").fetchone()
            assert ask(database, f"SELECT count(*) FROM `{table}`") == [(expected,)]
        query = "SELECT trial, request, started_ns, latency_ns, error, protocol FROM samples ORDER BY 1, 2"
        assert ask(database, query) == opened.execute(query).fetchall()
        (failed,) = opened.execute("SELECT count(*) FROM samples WHERE error IS NOT NULL").fetchone()
        texts = opened.execute("SELECT trial, load_json, wall_started_utc FROM trials ORDER BY trial").fetchall()
    assert failed > 0
    assert ask(database, "SELECT count(*) FROM samples WHERE latency_censored_ns IS NULL") == [(failed,)]
    assert ask(database, "SELECT trial, load_json, wall_started_utc FROM trials ORDER BY trial") == texts
    tests = ask(database, "SELECT test, treatment FROM tests ORDER BY test")
    assert len(tests) == 3
    counts = [ask(database, f"SELECT count(*) FROM `{name}`")[0][0] for name, _ in tests]
    assert sum(counts) == ask(database, "SELECT count(*) FROM samples")[0][0]
    assert min(counts) > 0


def test_a_run_that_went_on_takes_the_place_of_what_was_there(run, database, tmp_path):
    fewer = write_run(tmp_path / "less" / run.name, SMALL)
    for folder in ("trials", "samples"):
        (fewer / folder / "t00015.parquet").unlink()
    send(URL, fewer)
    send(URL, run)
    (fewer / "verdicts.parquet").unlink()
    assert ask(database, "SELECT count(*) > 0 FROM verdicts") == [(1,)]
    with views.connect(run) as opened:
        (expected,) = opened.execute("SELECT count(*) FROM samples").fetchone()
    assert ask(database, "SELECT count(*), count(DISTINCT trial, request) FROM samples") == [(expected, expected)]
    assert ask(database, "SELECT count(*) FROM runs") == [(1,)]
    send(URL, fewer)
    assert ask(database, "SELECT count(*) FROM verdicts") == [(0,)], "a table that has no rows any more"
    assert 0 < ask(database, "SELECT count(*) FROM samples")[0][0] < expected


def test_a_cycle_is_a_row_as_the_study_had_it(database, tmp_path):
    run = write_run(tmp_path / "run", SMALL)
    rows = [span("t00000", 0, "A", "B"), span("t00000", 1, "B", "C", arrived_ns=1400)]
    (run / "spans").mkdir()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema.SPANS.arrow()), run / "spans" / "t00000.parquet")
    send(URL, run)
    with views.connect(run) as opened:
        (treatment,) = opened.execute("SELECT treatment FROM trials WHERE trial = 't00000'").fetchone()
    ((name,),) = [(test,) for test, told in ask(database, "SELECT test, treatment FROM tests") if told == treatment]
    query = f"SELECT elapsed_ns, elapsedAB_ns, elapsedBA_ns, elapsedABA_ns, elapsedBC_ns FROM `{name}`"
    assert [tuple(int(value) for value in row) for row in ask(database, query)] == [(1100, 300, 400, 700, 390)]


def test_a_user_with_the_grants_that_are_told_can_export_again_and_again(run, database, monkeypatch):
    told = mariadb.GRANTS.replace(" and ", ", ")
    database.execute("CREATE OR REPLACE USER granted@localhost IDENTIFIED BY 'x'")
    database.execute("GRANT SELECT ON measured.* TO granted@localhost")
    monkeypatch.setenv("MYSQL_PWD", "x")
    with pytest.raises(CannotError, match=f"; the user needs {mariadb.GRANTS} there"):
        send("mariadb://granted@/measured", run)
    database.execute(f"GRANT {told} ON measured.* TO granted@localhost")
    first = send("mariadb://granted@/measured", run)
    assert send("mariadb://granted@/measured", run) == first
    assert f"needs {mariadb.GRANTS};" in DOCS.read_text("utf-8").replace("\n", " ")


def test_a_user_who_is_not_let_in_is_one_line(run, database):
    database.execute("CREATE USER other@localhost IDENTIFIED BY 'x'")
    with pytest.raises(CannotError, match="set MYSQL_PWD, or user and password"):
        send("mariadb://other@/measured", run)
    with pytest.raises(CannotError, match="make it first: CREATE DATABASE"):
        send("mariadb://root@/absent", run)
    assert os.environ["MYSQL_UNIX_PORT"]


class Breaking:
    """A connection and a cursor of PyMySQL's, of which the socket went in the middle of a file."""

    def cursor(self) -> Breaking:
        return self

    def __enter__(self) -> Breaking:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def execute(self, *_: object) -> int:
        try:
            raise mariadb.pymysql.OperationalError(2006, "MySQL server has gone away")
        finally:
            getattr(None, "sendall")  # noqa: B009 - as PyMySQL 1.1 ends


def test_a_server_that_goes_in_the_middle_of_a_file_is_no_internal_error() -> None:
    pytest.importorskip("pymysql", reason=f"pymysql is missing; run: {extras.remedy('exports')}")
    database = mariadb.Database(Breaking(), "mariadb://here")
    with pytest.raises(CannotError, match="has gone away"), mariadb._clear("mariadb://here", ""):
        database._changed("LOAD DATA LOCAL INFILE %s", "part.tsv")
