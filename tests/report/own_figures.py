"""What tests of the studies' own figures share: a study's result out of invented runs, and its rows as records."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from trifecta import studies
from trifecta.conclude.reproduction.places import read
from trifecta.conclude.reproduction.result import StudyResult
from trifecta.report.reproduction.own.study_figure import StudyFigure
from trifecta.store import views

Record = dict[str, str | float | int | None]


def result(folder: Path, study: str, runs: Sequence[str]) -> StudyResult:
    """What ``conclude.reproduction.result.read`` knows of these runs in ``folder/STUDY``."""
    places = [place for run in runs for place in read(folder / study / run, f"{study}/{run}")]
    return StudyResult(studies.published()[study], (), places=tuple(places))


def records(figure: StudyFigure) -> list[Record]:
    """The rows of a figure by column; every row has all of them."""
    return [dict(zip(figure.columns, row, strict=True)) for row in figure.rows]


def text_of(figure: StudyFigure) -> str:
    """The words in its picture."""
    return " ".join(ElementTree.fromstring(figure.svg).itertext())


def asked(run: Path, sql: str) -> list[tuple[object, ...]]:
    """The answer of a run's views."""
    with views.connect(run) as connection:
        return connection.execute(sql).fetchall()


def assert_sound(figures: Sequence[StudyFigure]) -> None:
    """Each has a name of its own, rows as wide as its columns, times in whole ns, and a picture that stands alone."""
    assert len({one.id for one in figures}) == len(figures)
    ids: list[str] = []
    for one in figures:
        assert one.title and one.source and one.caption and one.rows
        assert bool(one.svg) != one.table
        for record in records(one):
            assert all(isinstance(value, int | None) for name, value in record.items() if name.endswith("_ns"))
        if one.svg:
            ElementTree.fromstring(one.svg)
            assert re.findall(r"#0[123]00[0-9a-f]{2}\b", one.svg) == []
            ids += re.findall(r' id="([^"]+)"', one.svg)
    assert len(ids) == len(set(ids))
