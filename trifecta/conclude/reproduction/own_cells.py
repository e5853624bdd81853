"""The cells of a reproduction that a study's own figures are drawn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trifecta.analysis.published import Place
from trifecta.conclude.query import Query
from trifecta.conclude.reproduction.result import StudyResult


def own_cells(study: StudyResult, **levels: str) -> list[Place]:
    """The cells of the study's own programs with these levels that have trials, in the order of its runs."""
    wanted = {name: str(level) for name, level in study.published.where.items()} | levels
    return [one for one in study.places if all(one.levels.get(name) == level for name, level in wanted.items())]


def counted_trials(places: Sequence[Place]) -> list[str]:
    """The trials that count for the study's statements in these cells of a run, also where they fail a check that its
    own conditions make fail.
    """
    return sorted({str(row["trial"]) for place in places for row in place.rows})


def of_trials(query: Query, trials: Sequence[str]) -> Query:
    """The query over these trials, instead of all valid ones."""
    names = ", ".join("'" + trial.replace("'", "''") + "'" for trial in trials) or "NULL"
    return replace(query, sql=query.sql.replace("t.valid", f"t.trial IN ({names})"))
