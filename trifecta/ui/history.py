"""How the intervals of a run closed in, as it wrote them after each block (`trifecta.store.intervals`)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path
from typing import cast

from trifecta.conclude import catalogue
from trifecta.conclude.comparisons import Comparison, VerdictRow, from_rows
from trifecta.conclude.facts import RunFacts
from trifecta.contract.values import JsonObject
from trifecta.report import verdict_words
from trifecta.store import intervals, manifest, parquet, schema
from trifecta.ui import tables

_ENDS = ("ratio", "low", "high")
_SQL = """SELECT blocks, verdict, ratio, low, high FROM intervals
WHERE cell = '{cell}' AND metric = '{metric}' AND arm = '{arm}' AND reference = '{reference}'
ORDER BY blocks"""

Key = tuple[str, str, str]
"""Cell, arm and reference."""


def query(source: str, cell: str | None = None) -> str:
    """The SQL for `points`: `catalogue.VERDICTS` of what has the columns of the view ``intervals``."""
    every = f"{schema.empty_select(schema.VERDICTS)} UNION ALL BY NAME SELECT * FROM {source}"  # noqa: S608
    return f"WITH verdicts AS ({every}) {catalogue.VERDICTS.text(cell)}"


def comparisons(rows: Iterable[VerdictRow], about: RunFacts) -> dict[Key, list[Comparison]]:
    """What the rows of `query` say of the study's metric, in the order of blocks."""
    by_pair: dict[Key, list[Comparison]] = {}
    for one in sorted(from_rows(rows, about.metric), key=lambda one: cast(int, one.row["blocks"])):
        if one.row["ratio"] is not None:
            by_pair.setdefault((one.cell, one.arm, one.reference), []).append(one)
    return by_pair


def point(comparison: Comparison) -> JsonObject:
    """What was said after so many blocks; while arms have their names (`RunFacts.naming`)."""
    return {
        "block": comparison.row["blocks"],
        "said": verdict_words.statement(comparison, comparison.metric.label),
        "mark": tables.arm(comparison.arm)["mark"],
        **{name: tables.json_value(comparison.row[name]) for name in _ENDS},
    }


def sql(cell: str, metric: str, arm: str, reference: str) -> str:
    """What a reader asks `trifecta sql` for the same."""
    names = {"cell": cell, "metric": metric, "arm": arm, "reference": reference}
    return _SQL.format(**{name: value.replace("'", "''") for name, value in names.items()})


class History:
    """That of a run which is followed."""

    def __init__(self, folder: Path) -> None:
        """Nothing was read yet."""
        self._folder = folder
        self._of: object = None
        self._known: dict[Key, list[Comparison]] = {}
        self._points: dict[Key, list[JsonObject]] = {}

    def changes(self, about: RunFacts) -> list[JsonObject]:
        """By comparison that says something else than when this was asked last: of the points known then the first
        ``keep``, and these ``points`` after them; while arms have their names. duckdb.Error where there is no reading
        the file.
        """
        state = _state(self._folder / manifest.DECISIONS)
        if state == self._of:
            return []
        rows = cast(list[VerdictRow], parquet.select(query(f"({intervals.select(self._folder)})")))
        before, self._known, self._of = self._known, comparisons(rows, about), state
        documents = []
        for key in {**before, **self._known}:
            old, new = before.get(key, []), self._known.get(key, [])
            keep = sum(1 for _ in takewhile(lambda two: two[0] == two[1], zip(old, new, strict=False)))
            if keep < max(len(old), len(new)):
                after = [point(one) for one in new[keep:]]
                self._points[key] = [*self._points.get(key, [])[:keep], *after]
                documents.append(_changed_comparison(key, keep, after))
        return documents

    def document(self) -> list[JsonObject]:
        """All that is known, as `news` has it."""
        return [_changed_comparison(key, 0, points) for key, points in self._points.items() if points]


def _changed_comparison(key: Key, keep: int, points: list[JsonObject]) -> JsonObject:
    cell, arm, reference = key
    return {"cell": cell, "arm": arm, "reference": reference, "keep": keep, "points": points}


def _state(path: Path) -> object:
    """Changes when the file does; each block makes a new one."""
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size, state.st_ino
