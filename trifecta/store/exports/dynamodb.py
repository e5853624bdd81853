"""DynamoDB

## Writes
A table PREFIX-TABLE for each of the run's tables that has rows, made where it is missing and paid by request. The key
`part` is the run's name, of tables with trials RUN/TRIAL, and `row` counts in it; the rest are the row's columns:
numbers to their last digit, booleans, text. A null and an infinite number, which DynamoDB has not, are left out.
PREFIX-runs has an item a run, with the rows of each table, and one for each part of a table: a part that is there as it
is stays, and what an earlier state of the run left is removed.

## For
Whoever keeps experiments there, as milicevic2023 did: a table about them, and one of data.

## Needs
The extra `exports`.

`dynamodb://REGION/PREFIX`: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN), or the files
`~/.aws/credentials` and `~/.aws/config` (AWS_PROFILE), or the instance's role. Another server than Amazon's:
AWS_ENDPOINT_URL_DYNAMODB, or AWS_ENDPOINT_URL.
"""
# Statements are put together from names of our own views and columns, in quotes.
# ruff: noqa: S608

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import Any

from trifecta.store import parquet
from trifecta.store.exports import dynamodb_server, tables
from trifecta.store.exports.dynamodb_server import BATCH, KEYS, Attribute, Item, Place, Request, key
from trifecta.store.exports.exporter import Source
from trifecta.store.exports.tables import Identity, Table

SCHEMES = ("dynamodb",)
_ROWS = 5_000  # of a part, whose item names its trials: an item has at most 400 KB
_FETCHED = 1_000
_RUNS = "runs"
_NO_TRIAL = "/"  # in the place of a trial's name, which is that of a file
_BEGUN = "begun"  # in the place of the digest of a part that is on its way
_LEAST, _MOST = 1e-130, 1e126  # of DynamoDB's numbers: from the one to below the other


@dataclass(frozen=True)
class Part:
    """What is noted of a part of a table: its digest, and by trial how many rows may be there."""

    digest: str
    rows: dict[str, int]


def send(source: Source, url: str) -> list[str]:
    """All tables of a run, one after the other; a line a table."""
    with dynamodb_server.opened(url) as place:
        return Filling(place, tables.identity(source.path)).fill(source)


class Filling:
    """A run that is brought to a place."""

    def __init__(self, place: Place, identity: Identity) -> None:
        """Nothing is asked yet."""
        self._place = place
        self._identity = identity
        self._beginning: Item | None = None

    def fill(self, source: Source) -> list[str]:
        """Bring all of it, or what is not there; a line a table."""
        there = {table.name: table for table in tables.tables(source.connection)}
        counts = {name: _counts(source, table) for name, table in there.items()}
        now = {name: sum(rows.values()) for name, rows in counts.items()}
        created = self._place.make([_RUNS, *there])
        known = self._place.item(_RUNS, self._identity.run, 0)
        before = _numbers(known.get("rows"))
        self._beginning, ended = self._of_run({**before, **now}, whole=False), self._of_run(now, whole=True)
        for name in sorted({*before, *there}):
            if name in there or self._place.described(name) is not None:
                self._bring(source, there.get(name) or Table(name, ()), counts.get(name, {}), fresh=name in created)
        if self._beginning is None or known != ended:
            self._write(_RUNS, [_put(ended)])
        return [f"{self._place.where}-{name}: {rows} rows, part={self._identity.run}" for name, rows in now.items()]

    def _of_run(self, rows: Mapping[str, int], *, whole: bool) -> Item:
        """The item of the run."""
        item: Item = {"study": {"S": self._identity.study}, "run": {"S": self._identity.run}, "whole": {"BOOL": whole}}
        return key(self._identity.run, 0) | item | {"rows": _map(rows)}

    def _bring(self, source: Source, table: Table, counts: Mapping[str, int], *, fresh: bool) -> None:
        """Each part of a table that is not there as it is; what of the run is beyond is removed first.

        Whenever this is cut, what is noted of the parts names all that may be there.
        """
        noted = {number: Part(_BEGUN, {}) if fresh else part for number, part in self._noted(table.name).items()}
        self._write(table.name, self._beyond(noted.values(), counts))
        parts = list(tables.parts(source.connection, table, _ROWS)) if counts else []
        for number, where in enumerate(parts):
            before = noted.get(number, Part(_BEGUN, {}))
            digest, rows = _digest(table, _rows(source, table, where))
            left = {trial: min(held, counts[trial]) for trial, held in before.rows.items() if trial in counts}
            ended = Part(digest, left | rows)
            if before.digest != digest:
                self._note(table.name, number, Part(_BEGUN, ended.rows))
                self._write(table.name, self._items(table, _rows(source, table, where)))
            if before != ended:
                self._note(table.name, number, ended)
        self._write(_RUNS, (_delete(self._part(table.name), number) for number in noted if number >= len(parts)))

    def _beyond(self, noted: Iterable[Part], counts: Mapping[str, int]) -> Iterator[Request]:
        """To delete what an earlier state of the run had more."""
        held: dict[str, int] = {}
        for part in noted:
            held |= {trial: max(rows, held.get(trial, 0)) for trial, rows in part.rows.items()}
        for trial, rows in held.items():
            for number in range(counts.get(trial, 0), rows):
                yield _delete(self._part(trial), number)

    def _items(self, table: Table, rows: Iterable[tuple[Any, ...]]) -> Iterator[Request]:
        """To write each row; those of a trial are counted in their order."""
        counted: Counter[str] = Counter()
        names = [f"{name}_told" if name in KEYS else name for name in table.names]
        for row in rows:
            trial = _trial(table, row)
            values = {
                name: value
                for name, value_of_column in zip(names, row, strict=True)
                if (value := attribute(value_of_column))
            }
            yield _put(values | key(self._part(trial), counted[trial]))
            counted[trial] += 1

    def _part(self, name: str) -> str:
        return self._identity.run if name == _NO_TRIAL else f"{self._identity.run}/{name}"

    def _noted(self, table: str) -> dict[int, Part]:
        """What is noted of the parts of a table, by number."""
        items = self._place.items(_RUNS, self._part(table))
        return {int(item["row"]["N"]): Part(item["digest"]["S"], _numbers(item["rows"])) for item in items}

    def _note(self, table: str, number: int, part: Part) -> None:
        item = key(self._part(table), number) | {"digest": {"S": part.digest}, "rows": _map(part.rows)}
        self._write(_RUNS, [_put(item)])

    def _write(self, table: str, requests: Iterable[Request]) -> None:
        """In batches; before the first of all, the run is said to be on its way."""
        every = iter(requests)
        while batch := list(islice(every, BATCH)):
            if self._beginning is not None:
                self._place.write(_RUNS, [_put(self._beginning)])
                self._beginning = None
            self._place.write(table, batch)


def attribute(value: bool | int | float | str | None) -> Attribute | None:
    """A value as DynamoDB has it; None for what it has not. A number beyond its range is text."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, float):
        fits = value == 0 or _LEAST <= abs(value) < _MOST
        return {"N": str(Decimal(repr(value)))} if fits else {"S": repr(value)}
    return {"N": str(value)} if isinstance(value, int) else {"S": value}


def _counts(source: Source, table: Table) -> dict[str, int]:
    """How many rows each trial has."""
    trial = "trial" if "trial" in table.names else "NULL"
    query = f"SELECT {trial}, count(*) FROM {parquet.name_of(table.name)} GROUP BY 1"
    return {name or _NO_TRIAL: rows for name, rows in source.connection.execute(query).fetchall()}


def _rows(source: Source, table: Table, where: str) -> Iterator[tuple[Any, ...]]:
    """The rows of a part, in types that every store has, in the same order every time."""
    columns = ", ".join(tables.portable(name, kind) for name, kind in table.columns)
    cursor = source.connection.execute(f"SELECT {columns} {tables.rows(table.name, where)}")
    while rows := cursor.fetchmany(_FETCHED):
        yield from rows


def _digest(table: Table, rows: Iterable[tuple[Any, ...]]) -> tuple[str, dict[str, int]]:
    """Of a part, and by trial the number of its rows."""
    digest = hashlib.sha256(repr(table.names).encode())
    counted: Counter[str] = Counter()
    for row in rows:
        digest.update(repr(row).encode())
        counted[_trial(table, row)] += 1
    return digest.hexdigest(), dict(counted)


def _trial(table: Table, row: tuple[Any, ...]) -> str:
    return (row[table.names.index("trial")] if "trial" in table.names else None) or _NO_TRIAL


def _put(item: Item) -> Request:
    return {"PutRequest": {"Item": item}}


def _delete(part: str, row: int) -> Request:
    return {"DeleteRequest": {"Key": key(part, row)}}


def _map(numbers: Mapping[str, int]) -> Attribute:
    return {"M": {name: {"N": str(number)} for name, number in numbers.items()}}


def _numbers(attribute: Attribute | None) -> dict[str, int]:
    """Of an attribute that `_map` made."""
    return {name: int(number["N"]) for name, number in attribute["M"].items()} if attribute else {}
