"""The cells of a run in the order of its study, with their comparisons and the values of their trials."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import duckdb

from trifecta.conclude import queries
from trifecta.conclude.comparisons import Comparison, VerdictRow, from_rows, levels
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.queries import QueryResult
from trifecta.contract.trial import TrialRow
from trifecta.design.errors import UserError
from trifecta.design.metrics import METRICS

_OF_TRIALS = ("cell", "arm", "block", "node", "valid", "samples", "success_rate")


def cells_in_order(facts: RunFacts, keys: Iterable[str]) -> list[str]:
    """Cells in the order of the study's levels, unknown ones last; those of a path together, as they are shown."""
    factors = facts.study.get("factors") or {}
    positions = {
        name: {str(level): i for i, level in enumerate(factor_levels)} for name, factor_levels in factors.items()
    }
    names = sorted(facts.factors, key=lambda name: name != "path")

    def position(cell: str) -> tuple[Any, ...]:
        there = levels(cell)
        return (*(positions[name].get(there.get(name, ""), 999) for name in names), cell)

    return sorted(set(keys), key=position)


def comparisons_of(facts: RunFacts, verdicts: QueryResult, cells: Sequence[str]) -> list[Comparison]:
    """Comparisons of the study's metric, cell by cell in order."""
    place = {cell: i for i, cell in enumerate(cells)}
    comparisons = from_rows(verdicts.of(VerdictRow), facts.metric)
    return sorted(comparisons, key=lambda one: (place.get(one.cell, len(place)), one.arm, one.reference))


def trial_values(connection: duckdb.DuckDBPyConnection, metric: str) -> dict[str, list[TrialRow]]:
    """The values of trials that the analysis needs, by cell."""
    if metric not in METRICS:
        raise UserError(f"metric {metric!r} of the study is not known; known are {', '.join(METRICS)}")
    columns = ", ".join(dict.fromkeys((*_OF_TRIALS, metric)))
    sql = f"SELECT {columns} FROM trials ORDER BY block, trial"  # noqa: S608 - known columns
    trial_rows: dict[str, list[TrialRow]] = {}
    for row in queries.select(connection, TrialRow, sql):
        trial_rows.setdefault(row["cell"], []).append(row)
    return trial_rows
