"""The studies' own figures in the page of a reproduction, and each as files beside it."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trifecta.conclude.reproduction.result import Result, StudyResult
from trifecta.design import numbers
from trifecta.report.figures import picture_files
from trifecta.report.reproduction.own import table
from trifecta.report.reproduction.own.study_figure import StudyFigure
from trifecta.store import files

FOLDER = "figures"
Kept = MutableMapping[str, tuple[StudyResult, list[StudyFigure]]]
"""By study the figures that were drawn of a result of it."""
Value = str | float | int | None
_UNITS: Mapping[str, Callable[[float | None], str]] = {
    "_ns": numbers.duration,
    "_bytes": numbers.size,
    "_bits_per_s": numbers.bit_rate,
    "_per_s": numbers.per_second,
    "": numbers.number,
}
_ACRONYMS = frozenset({"dns", "tcp", "tls", "ttfb", "cpu"})
_PUBLISHED = "published_"
_WHERE = ("run", "cell")  # long, and shown only where they distinguish rows


@dataclass(frozen=True)
class Entry:
    """A place of a table in the page: our value with its interval, and the study's below it."""

    ours: str
    published: str = ""


@dataclass(frozen=True)
class FigureView:
    """A figure as the page shows it: a picture, or a table of ``heads`` and ``rows``; files that it has."""

    figure: StudyFigure
    files: tuple[tuple[str, str], ...]
    """(SVG or CSV, where it lies)."""
    heads: tuple[str, ...] = ()
    rows: tuple[tuple[Entry, ...], ...] = ()


def drawn(result: Result, kept: Kept | None = None) -> dict[str, list[StudyFigure]]:
    """By study its figures. ``kept`` has those of results that are the same still; the others are added to it."""
    kept = {} if kept is None else kept
    study_figures = {}
    for study in result.studies:
        name = study.published.id
        before = kept.get(name)
        if before is None or before[0] is not study:
            kept[name] = study, table.figures(result.folder, study)
        study_figures[name] = kept[name][1]
    return study_figures


def write(folder: Path, figures: Mapping[str, Sequence[StudyFigure]]) -> None:
    """Write ``figures/ID.svg`` and ``figures/ID.csv`` of every figure that there is, anew."""
    there = [one for every in figures.values() for one in every if one.rows]
    target = folder / FOLDER
    with files.disk_errors(target):
        if there:
            target.mkdir(parents=True, exist_ok=True)
        for one in there:
            if one.svg:
                files.write_text(target / f"{one.id}.svg", picture_files.document(one.svg))
            files.write_text(target / f"{one.id}.csv", as_csv(one))


def as_csv(figure: StudyFigure) -> str:
    """The rows of a figure; what is not known is empty."""
    out = io.StringIO()
    written = csv.writer(out, lineterminator="\n")
    written.writerow(figure.columns)
    written.writerows(["" if value is None else value for value in row] for row in figure.rows)
    return out.getvalue()


def figure_views(figures: Sequence[StudyFigure]) -> list[FigureView]:
    """The figures as the page has them."""
    return [_figure_view(one) for one in figures]


def _figure_view(figure: StudyFigure) -> FigureView:
    kinds = (("SVG", bool(figure.svg)), ("CSV", bool(figure.rows)))
    links = tuple((kind, f"{FOLDER}/{figure.id}.{kind.lower()}") for kind, there in kinds if there)
    if not figure.table or not figure.rows:
        return FigureView(figure, links)
    rows = [dict(zip(figure.columns, row, strict=True)) for row in figure.rows]
    alike = [name for name in _WHERE if len({row.get(name) for row in rows}) == 1]
    empty = [
        name
        for name in figure.columns
        if all(row[name] in (None, "") and row.get(f"{_PUBLISHED}{name}") is None for row in rows)
    ]
    heads = [
        name for name in figure.columns if name not in (*alike, *empty) and not _is_within_another(name, figure.columns)
    ]
    entries = tuple(tuple(_entry(name, row) for name in heads) for row in rows)
    return FigureView(figure, links, tuple(_column_title(name) for name in heads), entries)


def _unit(name: str) -> str:
    return next(unit for unit in _UNITS if name.endswith(unit))


def _is_within_another(name: str, columns: Sequence[str]) -> bool:
    """Whether a column is told within another: the study's value, or an end of an interval."""
    unit = _unit(name)
    base = name.removesuffix(unit)
    ends = any(base.endswith(end) and f"{base.removesuffix(end)}{unit}" in columns for end in ("_low", "_high"))
    return ends or (name.startswith(_PUBLISHED) and name.removeprefix(_PUBLISHED) in columns)


def _entry(name: str, row: Mapping[str, Value]) -> Entry:
    unit = _unit(name)
    base, write = name.removesuffix(unit), _UNITS[unit]
    ends = [row.get(f"{base}{end}{unit}") for end in ("_low", "_high")]
    text = _value_text(row[name], write)
    if None not in ends:
        text += f" [{', '.join(_value_text(end, write) for end in ends)}]"
    published = row.get(f"{_PUBLISHED}{name}")
    return Entry(text, "" if published is None else _value_text(published, write))


def _value_text(value: Value, write: Callable[[float | None], str]) -> str:
    if isinstance(value, str):
        return value
    return numbers.NO_VALUE if value is None or math.isnan(value) else write(value)


def _column_title(name: str) -> str:
    words = name.removesuffix(_unit(name)).split("_")
    return " ".join(word.upper() if word in _ACRONYMS else word for word in words)
