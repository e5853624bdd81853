"""Which module has the figures of which study. A new study is a module here and a line in the table.

A module has ``figures(folder, study)``: the figures of a study from its runs in ``folder``, the reproduction's. One
that cannot be drawn is left out, or has neither picture nor rows and says in its caption why.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import cast

from trifecta.conclude.reproduction.result import StudyResult
from trifecta.report.reproduction.own.study_figure import StudyFigure

STUDIES = {
    "bourbon2020": "trifecta.report.reproduction.own.bourbon2020",
    "baccichet2021": "trifecta.report.reproduction.own.baccichet2021",
    "ding2022": "trifecta.report.reproduction.own.ding2022",
    "milicevic2023": "trifecta.report.reproduction.own.milicevic2023",
}


def figures(folder: Path, study: StudyResult) -> list[StudyFigure]:
    """The figures of a study; none where it has none, or nothing of it was run."""
    name = STUDIES.get(study.published.id)
    if name is None or not study.runs:
        return []
    draw = cast(Callable[[Path, StudyResult], list[StudyFigure]], import_module(name).figures)
    return draw(folder, study)
