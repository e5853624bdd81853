"""Page loads request by request: every protocol beside the others, on one axis of time, a resource on one line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict, cast
from urllib.parse import urlsplit

from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.transforms import blended_transform_factory

from trifecta.design import numbers
from trifecta.report.figures import scales, style, svg
from trifecta.report.figures.latency import Phase

WIDE = 960.0
_LABELS, _GUTTER, _GAP, _RIGHT = 176.0, 26.0, 12.0, 6.0
_HEAD, _AXIS = 56.0, 40.0
_ROOMY, _TIGHT = 48, 160  # rows that get 12 and 9 px; of more, lines without names
_MOST_HEIGHT = 1_300.0


@dataclass(frozen=True)
class Span(Phase):
    """A phase between two instants of a request; ``column`` is the end, ``since`` what it is counted from."""

    since: tuple[str, ...] = ()


SPANS = (
    Span("free_ns", "queued: waits for a connection or its turn (thin)", style.QUEUED, "", "", ("start_ns",)),
    Span("dns_end_ns", "DNS", style.DNS, "", "", ("dns_start_ns",)),
    Span("tcp_connected_ns", "TCP connect", style.TCP, "//", "tcp", ("connect_start_ns",)),
    Span("tls_secured_ns", "TLS handshake", style.TLS, "\\\\", "tls", ("tcp_connected_ns",)),
    Span("quic_secured_ns", "QUIC handshake", style.QUIC, "xx", "quic", ("connect_start_ns",)),
    Span("first_byte_ns", "wait for the first byte", style.WAIT, "", "", ("request_sent_ns",)),
    Span("done_ns", "transfer", style.TRANSFER, "", "", ("first_byte_ns", "request_sent_ns", "start_ns")),
)
"""Instants are columns of the query, in ns since the navigation began."""

MARKS = (
    ("fcp_ns", "FCP", (1.0, 1.6)),
    ("lcp_ns", "LCP", (5.0, 2.0)),
    ("dom_content_loaded_ns", "DCL", (5.0, 1.6, 1.0, 1.6)),
    ("load_ns", "load", ()),
)
PRIORITIES = ("verylow", "low", "medium", "high", "veryhigh")


class Fetch(TypedDict):
    """A request of a page load; times in ns since the navigation began."""

    arm: str
    url: str
    origin: str | None
    priority: str | None
    connection: int | None
    start_ns: int
    dns_start_ns: int | None
    dns_end_ns: int | None
    connect_start_ns: int | None
    tcp_connected_ns: int | None
    secured_ns: int | None
    request_sent_ns: int | None
    first_byte_ns: int | None
    done_ns: int | None
    resumed: bool | None
    zero_rtt: bool | None
    from_cache: bool | None
    error: str | None


class Marks(TypedDict):
    """When a page showed what (columns of MARKS), in ns since the navigation began, and which visit that was."""

    arm: str
    trial: str
    visit: int
    fcp_ns: int | None
    lcp_ns: int | None
    dom_content_loaded_ns: int | None
    load_ns: int | None


class FilmedMarks(Marks):
    """Of a visit of which there are pictures; a warm-up is no measured one."""

    warmup: bool


@dataclass(frozen=True)
class Load:
    """One load of a page: its requests in order, and when what was seen (columns of MARKS)."""

    fetches: Sequence[Fetch]
    marks: Marks


def mark(marks: Marks, name: str) -> float | None:
    """When a page showed one of MARKS."""
    return cast(Mapping[str, float | None], marks)[name]


def instants(fetch: Fetch) -> dict[str, float | None]:
    """The instants of a request that the phases lie between; those of TLS and QUIC apart."""
    times = dict(cast(Mapping[str, float | None], fetch))
    is_tcp = fetch["tcp_connected_ns"] is not None
    times["tls_secured_ns"] = fetch["secured_ns"] if is_tcp else None
    times["quic_secured_ns"] = None if is_tcp else fetch["secured_ns"]
    later = ("dns_start_ns", "connect_start_ns", "request_sent_ns", "first_byte_ns", "done_ns")
    times["free_ns"] = next((times[name] for name in later if times[name] is not None), None)
    return times


def bars(fetch: Fetch) -> list[tuple[Span, float, float]]:
    """(phase, from, to) of a request, in ns since the navigation began."""
    at, spans = instants(fetch), []
    for span in SPANS:
        end = at[span.column]
        start = next((at[name] for name in span.since if at[name] is not None), None)
        if end is not None and start is not None and end > start:
            spans.append((span, start, end))
    return spans


def rows_of(loads: Mapping[str, Load], first: str) -> list[tuple[str, int]]:
    """(URL, how many times before) of every line: in the order of ``first``'s requests, then what only others had."""
    order = sorted(loads, key=lambda arm: arm != first)
    return list(dict.fromkeys(key for arm in order for key in keyed(loads[arm].fetches)))


def keyed(fetches: Sequence[Fetch]) -> dict[tuple[str, int], Fetch]:
    """Requests by URL and how many times it was asked for before."""
    counts: dict[str, int] = {}
    by_key = {}
    for fetch in fetches:
        repeats = counts.get(fetch["url"], 0)
        counts[fetch["url"]] = repeats + 1
        by_key[fetch["url"], repeats] = fetch
    return by_key


def waterfall(loads: Mapping[str, Load], first: str, identity: str) -> str:
    """Draw loads side by side; ``first`` is the arm whose order the lines follow."""
    lines = rows_of(loads, first)
    height = 12.0 if len(lines) <= _ROOMY else 9.0 if len(lines) <= _TIGHT else _MOST_HEIGHT / len(lines)
    named = len(lines) <= _TIGHT
    labels, gutter = (_LABELS, _GUTTER) if named else (_GAP, 0.0)
    figure = svg.figure(_HEAD + _AXIS + height * len(lines), WIDE)
    panel = (WIDE - labels - _RIGHT - _GAP * (len(loads) - 1)) / len(loads)
    high = end_of(loads.values())
    places = {key: (place + 0.5) * height for place, key in enumerate(lines)}
    start = urlsplit(lines[0][0]).netloc if lines else ""
    for place, (arm, load) in enumerate(loads.items()):
        left = labels + place * (panel + _GAP)
        target = svg.axes(figure, left + gutter, _HEAD, WIDE - left - panel, _AXIS)
        target.set_xlim(0, high)
        target.set_ylim(height * len(lines), 0)
        svg.ticks(target, "x", *scales.labelled(scales.linear_ticks(high, 4)))
        svg.ticks(target, "y", [], [])
        target.set_xlabel("time since the navigation began", color=style.INK, fontsize=svg.SMALL)
        _marks(target, load.marks, panel - gutter, high)
        target.text(
            0.0, 1.0 + (_HEAD - 12) / (height * max(len(lines), 1)), _title(arm, load), transform=target.transAxes,
            ha="left", va="center", color=style.INK, fontsize=svg.FONT,
        )  # fmt: skip
        here = keyed(load.fetches)
        _draw(target, [(here[key], places[key]) for key in lines if key in here], height)
        if named:
            _gutter(target, [(here[key], places[key]) for key in lines if key in here], (panel - gutter, height))
        if named and not place:
            mixed = blended_transform_factory(target.transAxes, target.transData)
            for key in lines:
                target.text(
                    -(gutter + 4) / (panel - gutter), places[key], _label(key[0], start), transform=mixed,
                    ha="right", va="center", color=style.MUTED, fontsize=min(svg.SMALL - 1, height - 1),
                )  # fmt: skip
    sentence = "; ".join(f"{_title(arm, load)}, {_load_words(load)}" for arm, load in loads.items())
    return svg.render(figure, identity, f"Waterfall of a page load with {len(lines)} resources. {sentence}")


def end_of(loads: Iterable[Load]) -> float:
    """The end of the axis: the last thing that happened in any load, in ns."""
    ends = [value for load in loads for value in (*(mark(load.marks, name) for name, _, _ in MARKS), *_ends(load))]
    return max((value for value in ends if value is not None), default=1e9) * 1.02


def _ends(load: Load) -> list[float | None]:
    return [fetch["done_ns"] for fetch in load.fetches]


def _title(arm: str, load: Load) -> str:
    return f"{style.name(arm)}, load {numbers.duration(load.marks['load_ns'])}"


def _load_words(load: Load) -> str:
    return ", ".join(f"{word} {numbers.duration(mark(load.marks, name))}" for name, word, _ in MARKS[:3])


def _label(url: str, start: str) -> str:
    """``app.js``, with the host where it is not that of the page: ``cdn.light.lab/app.js``."""
    parts = urlsplit(url)
    name = parts.path.rstrip("/").rsplit("/", 1)[-1] or "/"
    host = "" if parts.netloc == start else f"{parts.netloc.split('.')[0]}…/"
    sentence = f"{host}{name}"
    return sentence if len(sentence) <= 30 else f"{sentence[:18]}…{sentence[-11:]}"


def _marks(target: Axes, marks: Marks, width: float, high: float) -> None:
    """Lines with their names above; names that would touch go a line higher."""
    taken: list[list[float]] = [[], [], []]
    mixed = blended_transform_factory(target.transData, target.transAxes)
    tall = float(target.get_ylim()[0]) or 1.0
    for name, word, dashes in MARKS:
        at = mark(marks, name)
        if at is None:
            continue
        target.axvline(at, color=style.INK, linewidth=0.9, linestyle=(0, dashes) if dashes else "-", zorder=4)
        place = at / high * width
        level = next((n for n, used in enumerate(taken) if all(abs(place - other) > 24 for other in used)), 2)
        taken[level].append(place)
        align = "right" if place > width - 14 else "center"
        target.text(
            at, 1.0 + (3 + 10 * level) / tall, word, transform=mixed, ha=align, va="bottom", color=style.INK,
            fontsize=svg.SMALL - 1,
        )  # fmt: skip


def _draw(target: Axes, placed: Sequence[tuple[Fetch, float]], height: float) -> None:
    """One collection of boxes a phase."""
    boxes: dict[str, list[list[tuple[float, float]]]] = {}
    for fetch, at in placed:
        for span, left, right in bars(fetch):
            half = height * (0.12 if span.column == "free_ns" else 0.36 if height > 3 else 0.5)
            boxes.setdefault(span.column, []).append(
                [(left, at - half), (right, at - half), (right, at + half), (left, at + half)]
            )
    for span in SPANS:
        if span.column in boxes:
            collection = PolyCollection(
                boxes[span.column],
                facecolors=span.colour,
                edgecolors=style.PAPER if span.hatch else "none",
                linewidths=0.3,
                hatch=(span.hatch or None) if height > 3 else None,
            )
            target.add_collection(collection, autolim=False)
    failed = [(fetch["done_ns"] or fetch["start_ns"], at) for fetch, at in placed if fetch["error"]]
    if failed:
        target.plot(*zip(*failed, strict=True), "x", color=style.LATE, markersize=5, linestyle="none")


def _gutter(target: Axes, placed: Sequence[tuple[Fetch, float]], size: tuple[float, float]) -> None:
    """Left of the bars: the priority as a bar of one to five steps, and the number of the connection."""
    width, height = size
    mixed = blended_transform_factory(target.transAxes, target.transData)
    boxes = []
    for fetch, at in placed:
        steps = PRIORITIES.index(word) + 1 if (word := str(fetch["priority"] or "").lower()) in PRIORITIES else 0
        if steps:
            left, half = -12 / width, height * 0.2
            right = left + steps * 2 / width
            boxes.append([(left, at - half), (right, at - half), (right, at + half), (left, at + half)])
        if fetch["connection"] is not None:
            target.text(
                -14 / width, at, str(fetch["connection"]), transform=mixed, ha="right", va="center",
                color=style.MUTED, fontsize=min(svg.SMALL - 2, height - 1),
            )  # fmt: skip
    if boxes:
        collection = PolyCollection(boxes, facecolors=style.MUTED, linewidths=0, transform=mixed, clip_on=False)
        target.add_collection(collection, autolim=False)
