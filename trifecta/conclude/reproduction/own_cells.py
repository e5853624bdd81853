"""The cells of a reproduction that a study's own figures are drawn from."""

from __future__ import annotations

from trifecta.analysis.published import Place
from trifecta.conclude.reproduction.result import StudyResult


def own_cells(study: StudyResult, **levels: str) -> list[Place]:
    """The cells of the study's own programs with these levels that have trials, in the order of its runs."""
    wanted = {name: str(level) for name, level in (study.published.document.get("where") or {}).items()} | levels
    return [one for one in study.places if all(one.levels.get(name) == level for name, level in wanted.items())]
