"""Figures 14 to 21 of bourbon2020: elapsed times, success, CPU and memory, across its scenarios and tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trifecta.analysis.statements import Published
from trifecta.conclude.reproduction import own_bourbon2020 as own
from trifecta.conclude.reproduction import own_bourbon2020_published as said
from trifecta.conclude.reproduction.own_bourbon2020 import Cell, Scenario, ServiceUsage
from trifecta.conclude.reproduction.own_bourbon2020_published import PublishedRange
from trifecta.conclude.reproduction.result import StudyResult
from trifecta.report.figures import style, svg
from trifecta.report.figures.small_multiples import draw
from trifecta.report.reproduction.own import bourbon2020_panels as drawn
from trifecta.report.reproduction.own.study_figure import StudyFigure

Value = str | float | int | None
Values = tuple[Value, ...]


@dataclass(frozen=True)
class _Figure:
    """A figure of the study: its number, suite and words, its panels, and its columns and values in the table."""

    number: int
    suite: str
    title: str
    section: str
    caption: str
    rows: drawn.Rows
    columns: tuple[str, ...]
    values: Callable[[Cell, Published], list[Values]]
    height: float = 118.0
    """Of a panel, in CSS pixels."""
    scenarios: tuple[Scenario, ...] = own.SCENARIOS
    clients: tuple[int, ...] = (1, *own.CLIENTS)


def figures(folder: Path, study: StudyResult) -> list[StudyFigure]:
    """The study's figures; one of which no place was run has its reason in place of a picture."""
    cells = own.read(folder, study)
    with svg.drawing():
        return [_elapsed_figure(one, cells, study.published) for one in _FIGURES]


def _elapsed_figure(figure: _Figure, every: Sequence[Cell], about: Published) -> StudyFigure:
    identity, source = f"bourbon2020-figure-{figure.number}", f"figure {figure.number}, {figure.section}"
    cells = [
        cell
        for cell in every
        if cell.suite == figure.suite and cell.scenario in figure.scenarios and cell.clients in figure.clients
    ]
    if all(cell.missing for cell in cells):
        why = "; ".join(dict.fromkeys(cell.missing for cell in cells))
        return StudyFigure(identity, figure.title, source, why, "", (), ())
    sentence = f"{figure.title}, bourbon2020, {source}, as measured here. The CSV of this name has the values."
    picture = draw(figure.rows(cells, about), figure.height, sentence).svg(identity)
    rows = tuple((*_head(cell), *values, cell.missing) for cell in cells for values in figure.values(cell, about))
    return StudyFigure(
        identity, figure.title, source, figure.caption, picture, (*_HEAD, *figure.columns, "missing"), rows
    )


_HEAD = ("scenario", "containers", "hosts", "network", "test", "protocol", "payload_bytes", "clients")


def _head(cell: Cell) -> Values:
    scenario = cell.scenario
    containers, hosts = "yes" if scenario.containers else "no", scenario.hosts(cell.suite)
    where = (scenario.name, containers, hosts, scenario.path)
    return (*where, cell.test, style.name(cell.arm), cell.payload_bytes, cell.clients)


_COUNTS = ("requests", "failed")
_RATES = ("success_rate", "success_rate_low", "success_rate_high")
_SAID = ("published_said", "published_source")


def _shares(part: str = "") -> tuple[str, ...]:
    names = ("median" if share == 0.5 else f"p{share * 100:.0f}" for share in own.SHARES)
    return tuple(f"{part}{name}_ns" for name in names)


def _counts(cell: Cell) -> Values:
    times = cell.elapsed.get("whole")
    return (times.requests, times.failed) if times else (None, None)


def _times(cell: Cell, part: str = "whole") -> Values:
    times = cell.elapsed.get(part)
    return tuple(_ns(value) for value in times.shares) if times else (None,) * len(own.SHARES)


def _with_mean(cell: Cell, part: str = "whole") -> Values:
    times = cell.elapsed.get(part)
    return (*_times(cell, part), _ns(times.mean) if times else None)


def _ns(value: float | None) -> Value:
    return None if value is None else "inf" if math.isinf(value) else round(value)


def _rates(cell: Cell) -> Values:
    return (cell.success.rate, cell.success.low, cell.success.high) if cell.success else (None, None, None)


def _words(theirs: PublishedRange | None) -> Values:
    return (theirs.words, theirs.source) if theirs else (None, None)


def _ends(theirs: PublishedRange | None) -> Values:
    return tuple(None if end is None else round(end) for end in (theirs.low, theirs.high)) if theirs else (None, None)


def _elapsed_rows(cell: Cell, about: Published) -> list[Values]:
    theirs = said.elapsed(cell, about)
    return [(*_counts(cell), *_times(cell), *_ends(theirs), *_words(theirs))]


def _success_rows(cell: Cell, about: Published) -> list[Values]:
    theirs = said.success(cell, about)
    return [(*_counts(cell), *_rates(cell), theirs.low if theirs else None, *_words(theirs))]


def _part_rows(cell: Cell, _: Published) -> list[Values]:
    return [(*_counts(cell), *(value for part in drawn.PARTS for value in _with_mean(cell, part)))]


def _distributed_rows(cell: Cell, about: Published) -> list[Values]:
    theirs = said.to_normal(cell, about)
    ratios = (cell.to_normal, theirs.low if theirs else None)
    return [(*_counts(cell), *_with_mean(cell), *_rates(cell), *ratios, *_words(theirs))]


def _usage(usages: Mapping[str, ServiceUsage], service: str) -> Values:
    use = usages.get(service)
    return (f"ms{service}", use.middle, use.least, use.most, use.trials) if use else (f"ms{service}", *[None] * 4)


def _cpu_rows(cell: Cell, _: Published) -> list[Values]:
    return [_usage(cell.cpu, service) for service in own.SERVICES[cell.suite]]


def _memory_rows(cell: Cell, about: Published) -> list[Values]:
    theirs = said.memory(cell, about)
    return [(*_usage(cell.memory, service), *_ends(theirs), *_words(theirs)) for service in own.SERVICES[cell.suite]]


_BOXES = (
    "A box is the middle half of all requests with the median in it, a whisker reaches from the 10th to the 90th "
    "percentile (of ten requests and more). A failed request is longer than every other (∞); the study left it out. "
    "Each row has an axis of its own."
)
_MEAN = (
    "The study's time here is an average over clients (6.2.1): beside the median that is drawn the CSV has the mean "
    "of the requests that succeeded."
)
_BARS = "A bar is the median trial, its whisker the range over trials."
_THEIRS = (
    "Shaded between dashes: what the study's text gives, from other machines and programs: only its order is compared."
)
_RATE = "A line is the interval of the rate over trials; where nothing failed it is that of so many whole trials."
_CPU = (
    f"Share of one core between the first and the last reading of a trial. {_BARS} Requests follow each other at once "
    "here, so that on a normal network every protocol fills what it can."
)
_MEMORY = f"Peak memory of a service's process in a trial, in containers too. {_BARS} {_THEIRS}"
_CLIENTS = "msA is all clients together, one process or, as published, one for each."
_OF_CPU = ("service", "cpu_cores", "cpu_cores_least", "cpu_cores_most", "trials")
_OF_MEMORY = (
    *("service", "memory_bytes", "memory_least_bytes", "memory_most_bytes", "trials"),
    *("published_low_bytes", "published_high_bytes", *_SAID),
)
_SMALL = 62.0
_FIGURES = (
    _Figure(
        number=14, suite="A", section="6.1.1", title="Elapsed time of the chain (elapsedABCDA)",
        caption=f"{_BOXES} {_THEIRS}", rows=drawn.elapsed, values=_elapsed_rows,
        columns=(*_COUNTS, *_shares(), "published_low_ns", "published_high_ns", *_SAID),
    ),
    _Figure(
        number=15, suite="A", section="6.1.1", title="Request success rate of the chain", height=78.0,
        caption=f"{_RATE} Dashed: 100 %, where the study has it; it retried failed requests, here nothing is.",
        rows=drawn.success, values=_success_rows, columns=(*_COUNTS, *_RATES, "published_success_rate", *_SAID),
    ),
    _Figure(
        number=16, suite="A", section="6.1.2", title="CPU of the chain's services", height=_SMALL, caption=_CPU,
        rows=drawn.cpu, values=_cpu_rows, columns=_OF_CPU,
    ),
    _Figure(
        number=17, suite="A", section="6.1.2", title="Memory of the chain's services", height=_SMALL,
        caption=f"{_MEMORY} For HTTP/3 that is 15 to 20 MB everywhere.",
        rows=drawn.memory, values=_memory_rows, columns=_OF_MEMORY,
    ),
    _Figure(
        number=18, suite="B", section="6.2.1", title="Elapsed time of the fan-in of 4 clients, whole and in parts",
        caption=f"{_BOXES} {_MEAN} A → B has the handshake in it.",
        rows=drawn.parts, values=_part_rows, clients=own.CLIENTS[:1],
        columns=(*_COUNTS, *(name for part in drawn.PARTS for name in (*_shares(f"{part}_"), f"{part}_mean_ns"))),
    ),
    _Figure(
        number=19, suite="B", section="6.2.1", title="Elapsed time and success of the fan-in, distributed",
        caption=f"{_BOXES} {_RATE} {_MEAN} It has that by the normal network's, too, beside the study's about "
        "20 times (4 clients) and about 1.5 times (50) with lag.",
        rows=drawn.distributed, values=_distributed_rows, scenarios=own.SCENARIOS[2:],
        columns=(*_COUNTS, *_shares(), "mean_ns", *_RATES, "mean_to_normal", "published_mean_to_normal", *_SAID),
    ),
    _Figure(
        number=20, suite="B", section="6.2.2", title="CPU of the fan-in's services", height=_SMALL,
        caption=f"{_CPU} {_CLIENTS}", rows=drawn.cpu, values=_cpu_rows, columns=_OF_CPU,
    ),
    _Figure(
        number=21, suite="B", section="6.2.2", title="Memory of the fan-in's services", height=_SMALL,
        caption=f"{_MEMORY} With 4 clients that is at most 200 MB natively, and 250 MB in single_01. {_CLIENTS}",
        rows=drawn.memory, values=_memory_rows, columns=_OF_MEMORY,
    ),
)  # fmt: skip
