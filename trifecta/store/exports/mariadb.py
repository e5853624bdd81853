"""MariaDB, and MySQL

## Writes
A table for each of the run's tables that has rows, every row with the number of its run in `runs`; and for each test (a
level of what is compared in a cell) a view `test_RUN_N`, named in `tests`, as bourbon2020 had a table a test (4.10.1):
of services its `elapsedXY`, here in ns, else its requests. Part by part, each whole or not at all; a part that is there
as it is stays. An infinite number is null, which MariaDB has not.

## For
Whoever has a server of it, and tools that speak SQL over the network.

## Needs
The extra `exports`.

`mariadb://USER@HOST:3306/DATABASE` (`mysql://` is the same), `mariadbs://` over TLS, `mariadb:///DATABASE` by the
socket of this machine (MYSQL_UNIX_PORT). The database has to be there, the server to allow local_infile.

The password: MYSQL_PWD; it and the user also from `[client]` in `~/.my.cnf`.
"""
# Statements are put together from names of our own views and columns, in quotes; what rows say goes as parameters.
# ruff: noqa: S608

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trifecta.contract.digest import sha256_of
from trifecta.design.errors import CannotError
from trifecta.design.extras import LazyModule
from trifecta.store import parquet
from trifecta.store.exports import error_messages, mariadb_server, mariadb_tests, tables
from trifecta.store.exports.exporter import Source
from trifecta.store.exports.tables import Table

pymysql: Any = LazyModule("pymysql")

GRANTS = "CREATE, ALTER, DROP, CREATE VIEW, SELECT, INSERT and DELETE"
SCHEMES = ("mariadb", "mysql", "mariadbs")
_ROWS = 500_000  # of a part, which is one transaction
_TYPES = {"BOOLEAN": "BOOLEAN", "INTEGER": "INT", "BIGINT": "BIGINT", "DOUBLE": "DOUBLE", "VARCHAR": "LONGTEXT"}
_SHORT = {"trial": "VARCHAR(32)", "arm": "VARCHAR(255)", "protocol": "VARCHAR(32)"}
_CHARACTERS = "DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
_LEDGER = f"""
CREATE TABLE IF NOT EXISTS runs (run_id INT AUTO_INCREMENT PRIMARY KEY, study VARCHAR(190) NOT NULL,
  run VARCHAR(190) NOT NULL UNIQUE) ENGINE=InnoDB {_CHARACTERS};
CREATE TABLE IF NOT EXISTS parts (run_id INT NOT NULL, table_name VARCHAR(64) NOT NULL, part INT NOT NULL,
  digest CHAR(64) NOT NULL, PRIMARY KEY (run_id, table_name, part)) ENGINE=InnoDB {_CHARACTERS};
CREATE TABLE IF NOT EXISTS tests (run_id INT NOT NULL, test VARCHAR(64) NOT NULL, treatment LONGTEXT NOT NULL,
  PRIMARY KEY (run_id, test)) ENGINE=InnoDB {_CHARACTERS}"""


def send(source: Source, url: str) -> list[str]:
    """All tables of a run, then the views of its tests; a line a table."""
    where = error_messages.place(url)
    server = mariadb_server.of_url(url)
    with _clear(where, server.password):
        context = {"ssl": ssl.create_default_context()} if server.tls else {}
        opened = pymysql.connect(**server.arguments(), **context)
        try:
            return Database(opened, where).fill(source)
        finally:
            opened.close()


class Database:
    """A database that is filled."""

    def __init__(self, connection: Any, where: str) -> None:
        """``connection``: of PyMySQL, without autocommit; ``where``: what to call it."""
        self._connection = connection
        self._where = where
        self._run = 0

    def fill(self, source: Source) -> list[str]:
        """Bring a run there, or what of it is not; a line a table."""
        for statement in _LEDGER.strip().split(";\n"):
            self._ask(statement)
        run = tables.identity(source.path)
        self._ask("INSERT IGNORE INTO runs (study, run) VALUES (%s, %s)", run.study, run.run)
        ((self._run,),) = self._ask("SELECT run_id FROM runs WHERE run = %s", run.run)
        self._connection.commit()
        there = tables.tables(source.connection)
        sentences = []
        for table in there:
            self._make(table)
            while not self._load(source, table):
                self._empty(table.name)
            sentences.append(f"{self._where}: {table.name}, run_id={self._run}")
        for (gone,) in self._ask("SELECT DISTINCT table_name FROM parts WHERE run_id = %s", self._run):
            if gone not in {table.name for table in there}:
                self._empty(gone)
        for statement, values in mariadb_tests.views(source.connection, {each.name for each in there}, self._run):
            self._ask(statement, *values)
        self._connection.commit()
        return sentences

    def _make(self, table: Table) -> None:
        """The table, and columns that it lacks because runs before had them not."""
        columns = {name: _SHORT.get(name) or _TYPES[tables.portable_type(kind)] for name, kind in table.columns}
        index = ", KEY (run_id, trial)" if "trial" in columns else ", KEY (run_id)"
        listed = ", ".join(f"{_quoted(name)} {kind} NULL" for name, kind in columns.items())
        definition = f"(run_id INT NOT NULL, {listed}{index}) ENGINE=InnoDB {_CHARACTERS}"
        self._ask(f"CREATE TABLE IF NOT EXISTS {_quoted(table.name)} {definition}")
        known = {str(name).lower() for name, *_ in self._ask(f"SHOW COLUMNS FROM {_quoted(table.name)}")}
        for name, kind in columns.items():
            if name.lower() not in known:
                self._ask(f"ALTER TABLE {_quoted(table.name)} ADD COLUMN {_quoted(name)} {kind} NULL")

    def _load(self, source: Source, table: Table) -> bool:
        """Bring every part that is not there; False where what is there is of an earlier state of the run."""
        query = "SELECT part, digest FROM parts WHERE run_id = %s AND table_name = %s"
        known = {int(part): str(digest) for part, digest in self._ask(query, self._run, table.name)}
        count = 0
        for number, where in enumerate(tables.parts(source.connection, table, _ROWS)):
            count = number + 1
            path = source.scratch / "part.tsv"
            rows = _write(source, table, where, path)
            digest = sha256_of(path)
            if known.get(number) not in (None, digest):
                return False
            if number not in known:
                self._load_part(table, path, rows)
                self._ask("INSERT INTO parts VALUES (%s, %s, %s, %s)", self._run, table.name, number, digest)
                self._connection.commit()
        return all(number < count for number in known)

    def _load_part(self, table: Table, path: Path, rows: int) -> None:
        columns = ", ".join(_quoted(name) for name in table.names)
        self._check_keys(False)
        loaded = self._changed(
            f"LOAD DATA LOCAL INFILE %s INTO TABLE {_quoted(table.name)} CHARACTER SET utf8mb4 "
            r"FIELDS TERMINATED BY '\t' OPTIONALLY ENCLOSED BY '" + '"' + r"' ESCAPED BY '' LINES TERMINATED BY '\n' "
            f"({columns}) SET run_id = %s",
            str(path),
            self._run,
        )
        # LOCAL makes warnings of what does not fit, and skips it.
        warnings = self._ask("SHOW WARNINGS LIMIT 1")
        if warnings or loaded != rows:
            self._connection.rollback()
            sentence = error_messages.line(warnings[0][-1]) if warnings else f"{loaded} of {rows} rows"
            raise CannotError(f"{self._where}: table {table.name} does not take all of the run ({sentence}); nothing "
                              "of this part was kept")  # fmt: skip
        self._check_keys(True)

    def _check_keys(self, checked: bool) -> None:
        """Without, InnoDB fills an empty table in bulk. The tables of a run have no key that it could break."""
        for name in ("unique_checks", "foreign_key_checks"):
            self._ask(f"SET {name} = {int(checked)}")

    def _empty(self, table: str) -> None:
        """Take back what is there of the run in a table."""
        self._ask(f"DELETE FROM {_quoted(table)} WHERE run_id = %s", self._run)
        self._ask("DELETE FROM parts WHERE run_id = %s AND table_name = %s", self._run, table)
        self._connection.commit()

    def _ask(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with self._connection.cursor() as cursor:
            cursor.execute(statement, values or None)
            return list(cursor.fetchall())

    def _changed(self, statement: str, *values: object) -> int:
        with self._connection.cursor() as cursor:
            try:
                return int(cursor.execute(statement, values))
            except AttributeError as error:
                # Where the connection broke within the file, PyMySQL sends the file's end to a socket that is no more.
                if isinstance(error.__context__, pymysql.MySQLError):
                    raise error.__context__ from None
                raise


def _write(source: Source, table: Table, where: str, path: Path) -> int:
    """A part as LOAD DATA reads it: tabs, texts in quotes, the word NULL without. The number of rows."""
    columns = ", ".join(f"{_value(name, kind)} AS {parquet.name_of(name)}" for name, kind in table.columns)
    texts = [parquet.name_of(name) for name, kind in table.columns if tables.portable_type(kind) == "VARCHAR"]
    forced = f", FORCE_QUOTE ({', '.join(texts)})" if texts else ""
    options = f"FORMAT csv, HEADER false, DELIMITER '\t', QUOTE '\"', ESCAPE '\"', NULLSTR 'NULL'{forced}"
    return tables.copy(source.connection, f"SELECT {columns} {tables.rows(table.name, where)}", path, options)


def _value(column: str, kind: str) -> str:
    value, wanted = tables.portable(column, kind), tables.portable_type(kind)
    if wanted == "BOOLEAN":
        return f"{value}::INTEGER"
    return f"CASE WHEN isfinite({value}) THEN {value} END" if wanted == "DOUBLE" else value


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@contextmanager
def _clear(where: str, password: str) -> Iterator[None]:
    """One line for whatever the server or its library raises, without the password."""
    try:
        yield
    except pymysql.MySQLError as error:
        code = error.args[0] if error.args else None
        message = error_messages.line(error.args[-1] if error.args else error, password)
        remedies: dict[object, str] = {
            1045: "set MYSQL_PWD, or user and password in ~/.my.cnf",
            1044: f"the user needs {GRANTS} there",
            1142: f"the user needs {GRANTS} there",
            1049: "make it first: CREATE DATABASE",
            1148: "let the server take files: SET GLOBAL local_infile = 1",
            3948: "let the server take files: SET GLOBAL local_infile = 1",
            4166: "let the server take files: SET GLOBAL local_infile = 1",
        }
        remedy = remedies.get(code, error_messages.RUN_AGAIN)
        raise CannotError(f"{where}: {message}; {remedy}") from None
