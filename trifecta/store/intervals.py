"""How the intervals of a run closed in: what its verdicts said after each block, kept in lines of ``planner.jsonl``.

``verdicts.parquet`` is replaced after every block. A line of a block has what changed in it, so that the file stays
small, and is whole once it is there; the view ``intervals`` reads it in place.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from trifecta.contract.values import JsonObject
from trifecta.design.model import Verdict
from trifecta.design.tables import DOUBLE, INT64, TEXT, make_schema
from trifecta.store import damage, documents, manifest, parquet
from trifecta.store.schema import VERDICTS, empty_select

_WHICH = ("cell", "metric", "arm", "reference")
_OF_VERDICT = (*_WHICH, "blocks", "verdict", "likely", "ratio", "low", "high", "family_low", "family_high", "margin",
               "blocks_needed_low", "blocks_needed_high")  # fmt: skip
INTERVALS = make_schema(*((name, VERDICTS.types[name]) for name in _OF_VERDICT), ("elapsed_ns", INT64))
"""One row a comparison and number of blocks."""

# A line that is none (cut off by a crash), and a field of another type, are nulls. What was said of as many blocks or
# more before a line counts no longer: it rested on trials that were taken back since.
_SELECT = """
SELECT {columns} FROM (
  SELECT * FROM (
    SELECT line, elapsed_ns, one.* FROM (
      SELECT row_number() OVER () AS line, elapsed_ns, unnest(intervals) AS one
      FROM read_json({path}, format = 'newline_delimited', ignore_errors = true,
        maximum_object_size = {longest}, columns = {{elapsed_ns: 'BIGINT', intervals: 'STRUCT({fields})[]'}})
    )
  )
  WHERE {known}
  QUALIFY blocks < coalesce(min(blocks) OVER (PARTITION BY {which} ORDER BY line
    ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING), blocks + 1::BIGINT)
)
WHERE blocks > 0
"""


MOST_BYTES = 16 << 20
"""Lines beyond so many octets say no more of intervals: each block writes the file anew, and others read all of it."""


class Written:
    """What this process wrote last of each comparison."""

    def __init__(self, run: Path | None = None, *, resumed: bool) -> None:
        """Of a run that is resumed, nothing is known of what its lines say: all is written once."""
        self._file = None if run is None else run / manifest.DECISIONS
        nothing = (0, None, None, None, "undecided")  # what a comparison without a block says, and need not be told
        self._otherwise = None if resumed else nothing
        self._last: dict[tuple[str, ...], tuple[object, ...]] = {}

    def fresh(self, judged: Iterable[Verdict]) -> list[JsonObject]:
        """The comparisons that say something else than they did, each a `contract.run.IntervalThen`."""
        if self._file is not None and self._file.exists() and self._file.stat().st_size > MOST_BYTES:
            return []
        documents = []
        for one in judged:
            which = tuple(str(getattr(one, name)) for name in _WHICH)
            state = one.blocks, one.ratio, one.low, one.high, one.verdict
            if self._last.get(which, self._otherwise) != state:
                documents.append(_interval_data(one))
            self._last[which] = state
        return documents


def _interval_data(verdict: Verdict) -> JsonObject:
    """Without what is null, or a number that JSON has not; plain Python's, which it has."""
    values = {name: _json_value(getattr(verdict, name), VERDICTS.types[name]) for name in _OF_VERDICT}
    return {name: value for name, value in values.items() if value is not None}


def _json_value(value: Any, kind: str) -> str | float | None:
    if value is None or kind == TEXT:
        return cast(str | None, value)
    if not math.isfinite(value):
        return None
    return float(value) if kind == DOUBLE else int(value)


def select(run: Path) -> str:
    """The view as a SELECT; without rows where a run has no such file, or a link that leads out of its folder."""
    path = run / manifest.DECISIONS
    if not path.is_file() or damage.leads_out(run, path):
        return empty_select(INTERVALS)
    return _SELECT.format(
        columns=", ".join(INTERVALS.names),
        path=parquet.quoted(parquet.no_glob(str(path))),
        longest=documents.LARGEST_BYTES,  # of a line; beyond it DuckDB would read nothing at all
        fields=", ".join(f"{name} {VERDICTS.types[name]}" for name in _OF_VERDICT),
        known=" AND ".join(f"{name} IS NOT NULL" for name in (*_WHICH, "verdict")),
        which=", ".join(_WHICH),
    )
