"""Parquet in an object store or a folder, partitioned as Hive does

## Writes
`TABLE/study=STUDY/run=RUN/part-N-DIGEST.parquet` for each table that has rows, at most a million of them a file (a
trial's stay together), in types that Spark and Athena have; `athena/TABLE.sql` defines the table for Athena and Spark.
A part's name is made of what is in it: what is there already is not sent again, and what an earlier state of the run
left is removed.

## For
DuckDB, Spark, Athena, and studies of many runs and machines in one place.

## Needs
The extra `exports`.

`s3://BUCKET/PREFIX`: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN), or the files
`~/.aws/credentials` and `~/.aws/config` (AWS_PROFILE), or the instance's role. Another server than Amazon's:
AWS_ENDPOINT, and AWS_ALLOW_HTTP=true without TLS.

`gs://BUCKET/PREFIX`: GOOGLE_APPLICATION_CREDENTIALS, or gcloud's file.

`az://CONTAINER/PREFIX`: AZURE_STORAGE_ACCOUNT_NAME with AZURE_STORAGE_ACCOUNT_KEY, or with AZURE_USE_AZURE_CLI=true.

`file:///FOLDER`: no credentials.
"""

from __future__ import annotations

import re
from contextlib import closing
from itertools import islice
from pathlib import Path
from urllib.parse import unquote, urlsplit

import duckdb

from trifecta.contract.digest import sha256_of
from trifecta.design.errors import UserError
from trifecta.store.exports import athena, error_messages, parallel, tables
from trifecta.store.exports.exporter import Source
from trifecta.store.exports.object_store import SCHEMES, Place, clear, opened

__all__ = ["SCHEMES", "Place", "send"]

_ROWS = 1_000_000  # of a part: some tens of MB, which is what Athena and Spark like
# A column of more values gets no dictionary: it took a seventh of the writer's time and saved a fortieth of the size.
_OPTIONS = "FORMAT parquet, COMPRESSION snappy, DICTIONARY_SIZE_LIMIT 4096"
_PART = re.compile(r"part-\d{5,}-[0-9a-f]{16}\.parquet")


def send(source: Source, url: str) -> list[str]:
    """All tables of a run, one after the other; a line a table."""
    with clear(url, error_messages.RUN_AGAIN):
        _refuse_inside(source.path, url)
        place = opened(url)
        run = tables.identity(source.path)
        filled = {table.name: table for table in tables.tables(source.connection)}
        folders = {name: f"{name}/study={run.study}/run={run.run}" for name in tables.names(source.connection)}
        there = {name: place.names(folder) for name, folder in folders.items()}
        pieces = {name: list(tables.parts(source.connection, table, _ROWS)) for name, table in filled.items()}

        def brought(cursor: duckdb.DuckDBPyConnection, piece: tuple[str, int, str]) -> str:
            """Bring a part that is not there; its name."""
            table, number, where = piece
            part = source.scratch / f"{table}-{number}.parquet"
            select = f"SELECT {athena.selected(filled[table])} {tables.rows(table, where)}"
            tables.copy(cursor, select, part, _OPTIONS)
            name = f"{folders[table]}/part-{number:05}-{sha256_of(part)[:16]}.parquet"
            if name not in there[table]:
                place.put(name, part)
            part.unlink()
            return name

        every = [(name, *piece) for name, wheres in pieces.items() for piece in enumerate(wheres)]
        sentences = []
        with closing(parallel.map_pieces(source.connection, brought, every)) as parts:
            for name, folder in folders.items():  # in the order of `pieces`
                wanted = set(islice(parts, len(pieces.get(name, ()))))
                if name in filled:
                    definition = athena.definition(filled[name], f"{place.url}/{name}/")
                    place.put(f"athena/{name}.sql", definition.encode())
                    sentences.append(f"{place.url}/{folder}")
                gone = there[name] - wanted
                place.delete(sorted(one for one in gone if _PART.fullmatch(one.rpartition("/")[2])))
        return sentences


def _refuse_inside(run: Path, url: str) -> None:
    """UserError for a folder in the run's own, which an export leaves alone."""
    parted = urlsplit(url)
    folder = Path("/") / unquote(parted.path).strip("/")
    if parted.scheme == "file" and folder.resolve().is_relative_to(run):
        raise UserError(f"{url} is in the run's folder, which an export leaves alone; name another")
