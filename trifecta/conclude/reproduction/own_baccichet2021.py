"""What the tables of baccichet2021's README show, from the runs of its campaign, with the numbers that it gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trifecta.analysis.places import Place, matching
from trifecta.analysis.statements import TableDocument, given
from trifecta.analysis.visits import Spread, summarise
from trifecta.conclude.reproduction.result import StudyResult
from trifecta.design.metrics import BY_DIFFERENCE

ARMS = ("h3", "h2", "h1")
"""In the order of the study's tables."""
WEIGHT = "wire_bytes"
_WEIGHTS = {"light": 3.5e6, "heavy": 7.3e6}
"""Page weight, README, Web page performance, both tables; no statement compares it: it is the same for all.

The study's is that of the page's assets, ours what was sent, fields and all."""
_MISMATCH = {"httpstat": "httpstat-mismatch"}
"""A table whose row of HTTP/3 the study's own output shows to be HTTP/2: its numbers are listed by themselves."""


@dataclass(frozen=True)
class Value:
    """Ours, over blocks, and the study's one number, both in the metric's unit."""

    ours: Spread
    published: float | None


@dataclass(frozen=True)
class Line:
    """A row of a table: a protocol in one cell; ``spoken`` is what the study's row of that name spoke.

    ``missing`` says why there is nothing of ours.
    """

    arm: str
    run: str
    cell: str
    values: Mapping[str, Value]
    spoken: str
    missing: str = ""


@dataclass(frozen=True)
class Table:
    """A table of the study: where it has it, and its rows; none where nothing was run."""

    id: str
    source: str
    lines: tuple[Line, ...]


def read(study: StudyResult, tables: Mapping[str, Sequence[str]]) -> list[Table]:
    """The tables of these ids with these metrics as columns."""
    known = {str(one["id"]): one for one in study.published.document.get("numbers") or ()}
    return [_table(study, known, name, metrics) for name, metrics in tables.items()]


def _table(study: StudyResult, known: Mapping[str, TableDocument], name: str, metrics: Sequence[str]) -> Table:
    begins = f"{study.published.id}.{name}."
    about = next(one for one in study.published.statements if one.id.startswith(begins))
    lines = []
    for place in matching(about, study.places):
        for arm in ARMS:
            alien = arm == "h3" and name in _MISMATCH
            subjects = [known[one] for one in ((_MISMATCH[name], name) if alien else (name,))]
            values = {metric: Value(_ours(place, metric, arm), _published(subjects, metric, arm)) for metric in metrics}
            missing = "" if any(row["arm"] == arm for row in place.rows) else "no trial that counts"
            lines.append(Line(arm, place.run, place.cell, values, "h2" if alien else arm, missing))
    return Table(name, str(known[name].get("source", "")), tuple(lines))


def _ours(place: Place, metric: str, arm: str) -> Spread:
    zero = metric in BY_DIFFERENCE
    return summarise(place.rows, metric, arm, place.baseline, confidence=place.confidence, zero=zero).value


def _published(subjects: Sequence[TableDocument], metric: str, arm: str) -> float | None:
    if metric == WEIGHT:
        return _WEIGHTS.get(str(subjects[0]["id"]))
    values = (given(one, arm) for subject in subjects for one in subject["metrics"] if one["metric"] == metric)
    return next((value for value in values if value is not None), None)
