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

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import duckdb

from trifecta.design.errors import CannotError, TrifectaError, UserError
from trifecta.design.extras import Later
from trifecta.store.exports import athena, aws_files, saying, side_by_side, tables
from trifecta.store.exports.exporter import Source

obstore: Any = Later("obstore")
stores: Any = Later("obstore.store")
exceptions: Any = Later("obstore.exceptions")

SCHEMES = ("s3", "gs", "az", "file")
_ROWS = 1_000_000  # of a part: some tens of MB, which is what Athena and Spark like
# A column of more values gets no dictionary: it took a seventh of the writer's time and saved a fortieth of the size.
_OPTIONS = "FORMAT parquet, COMPRESSION snappy, DICTIONARY_SIZE_LIMIT 4096"
_AGAIN = "mend it and run this again, which goes on where it ended"
_PART = re.compile(r"part-\d{5,}-[0-9a-f]{16}\.parquet")
# Nothing is tried twice: whoever asks again goes on where it ended.
_ONCE = {
    "max_retries": 0,
    "retry_timeout": timedelta(seconds=30),
    "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=1), "base": 2},
}


@dataclass(frozen=True)
class Place:
    """A part of an object store: the store of one bucket, and the names below a prefix of it."""

    store: Any
    url: str
    """Of the prefix, without a slash at its end."""
    prefix: str
    """Empty, or with a slash at its end."""

    def names(self, folder: str) -> set[str]:
        """The objects below a folder of the prefix, as names from the prefix."""
        found: set[str] = set()
        for chunk in obstore.list(self.store, prefix=f"{self.prefix}{folder}"):
            found |= {str(each["path"]).removeprefix(self.prefix) for each in chunk}
        return found

    def put(self, name: str, content: Path | bytes) -> None:
        """Whole or not at all."""
        obstore.put(self.store, f"{self.prefix}{name}", content)

    def delete(self, names: list[str]) -> None:
        """Remove objects."""
        if names:
            obstore.delete(self.store, [f"{self.prefix}{name}" for name in names])


def send(source: Source, url: str) -> list[str]:
    """All tables of a run, one after the other; a line a table."""
    with _clear(url):
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
            name = f"{folders[table]}/part-{number:05}-{_digest(part)}.parquet"
            if name not in there[table]:
                place.put(name, part)
            part.unlink()
            return name

        every = [(name, *piece) for name, wheres in pieces.items() for piece in enumerate(wheres)]
        told = []
        with closing(side_by_side.each(source.connection, brought, every)) as parts:
            for name, folder in folders.items():  # in the order of `pieces`
                wanted = set(islice(parts, len(pieces.get(name, ()))))
                if name in filled:
                    definition = athena.definition(filled[name], f"{place.url}/{name}/")
                    place.put(f"athena/{name}.sql", definition.encode())
                    told.append(f"{place.url}/{folder}")
                gone = there[name] - wanted
                place.delete(sorted(one for one in gone if _PART.fullmatch(one.rpartition("/")[2])))
        return told


def opened(url: str) -> Place:
    """The store of a URL; a folder is made, nothing else is tried. UserError where the URL names no place."""
    parted = urlsplit(url)
    path = unquote(parted.path).strip("/")
    if parted.query or parted.fragment or parted.username is not None:
        raise UserError(f"--to {parted.scheme}://: nothing but a place stands in the URL; credentials are looked for "
                        "where `trifecta export --help` says")  # fmt: skip
    if parted.scheme == "file":
        if parted.netloc or not path:
            raise UserError("--to file://: a folder is file:///PATH, in full")
        return Place(stores.LocalStore(prefix=Path("/") / path, mkdir=True), f"file:///{path}", "")
    if not parted.netloc:
        form = "CONTAINER" if parted.scheme == "az" else "BUCKET"
        raise UserError(f"--to {parted.scheme}://: the URL lacks a place; it is {parted.scheme}://{form}/PREFIX")
    base = f"{parted.scheme}://{parted.netloc}"
    config = aws_files.credentials() if parted.scheme == "s3" else {}
    options = {"client_options": {"allow_http": True}} if _without_tls(parted.scheme) else {}
    store = stores.from_url(base, retry_config=_ONCE, **options, **config)
    return Place(store, f"{base}/{path}".rstrip("/"), f"{path}/" if path else "")


def _refuse_inside(run: Path, url: str) -> None:
    """UserError for a folder in the run's own, which an export leaves alone."""
    parted = urlsplit(url)
    folder = Path("/") / unquote(parted.path).strip("/")
    if parted.scheme == "file" and folder.resolve().is_relative_to(run):
        raise UserError(f"{url} is in the run's folder, which an export leaves alone; name another")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


@contextmanager
def _clear(url: str) -> Iterator[None]:
    """One line for whatever the store raises, without what is secret."""
    try:
        yield
    except TrifectaError:
        raise
    except FileNotFoundError as error:
        raise CannotError(f"{saying.place(url)}: there is no such bucket or container ({_said(error)})") from None
    except PermissionError as error:
        raise CannotError(f"{saying.place(url)}: {_said(error)}; {_AGAIN}") from None
    except Exception as error:
        if not isinstance(error, exceptions.BaseError):
            raise
        raise CannotError(f"{saying.place(url)}: {_said(error)}; {_AGAIN}") from None


def _said(error: Exception) -> str:
    """The library says what happened, then how its own structures look."""
    return saying.line(str(error).partition("Debug source")[0].strip() or error)


def _without_tls(scheme: str) -> bool:
    """Whether the environment allows a server of S3's protocol without TLS; the library forgets it beside options."""
    return scheme == "s3" and os.environ.get("AWS_ALLOW_HTTP", "").lower() in ("1", "true")
