"""The tables of baccichet2021: httpstat's phases, the light and the heavy page, and the video."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trifecta.conclude.reproduction import own_baccichet2021 as own
from trifecta.conclude.reproduction.own_baccichet2021 import Line, Table
from trifecta.conclude.reproduction.result import StudyResult
from trifecta.design import numbers
from trifecta.report.figures import part_bars, style, svg
from trifecta.report.figures.part_bars import Bar, PartLook
from trifecta.report.figures.picture_files import with_legend
from trifecta.report.reproduction.own.study_figure import StudyFigure

Value = str | float | int | None
_MEANS = "The median of a trial, the mean of trials over blocks with its interval; the study has one number each."
_PAGE = (
    "TTFB is taken to be what DevTools call waiting, from the request to the first octet. Our page weight is all that "
    "was sent, header fields included; theirs is that of the page's assets."
)
_PHASES = {
    "dns_ns": PartLook("DNS lookup", style.DNS),
    "tcp_ns": PartLook("TCP connection", style.TCP, "//", "tcp"),
    "tls_p50_ns": PartLook("TLS (QUIC) handshake", style.TLS, "\\\\", "tls"),
    "wait_p50_ns": PartLook("server processing", style.WAIT),
    "transfer_p50_ns": PartLook("content transfer", style.TRANSFER),
}
"""httpstat's picture: phases one after the other."""


@dataclass(frozen=True)
class _Table:
    """A table of the study: its title, what a reader must know, and its columns as (name, unit, metric)."""

    title: str
    caption: str
    columns: tuple[tuple[str, str, str], ...]
    run: str
    """Which run of the campaign it is about."""
    spoken: bool = False
    """Whether a row of the study spoke another protocol than it says."""


_OF_PAGE = (
    ("page_weight", "_bytes", own.WEIGHT),
    ("ttfb", "_ns", "request_ns"),
    ("load", "_ns", "load_ns"),
    ("requests", "", "requests"),
    ("tcp_connections", "", "tcp_connections"),
)
_TABLES = {
    "httpstat": _Table(
        "One request for index.html, by phases (httpstat)",
        f"{_MEANS} A bar is the sum of its phases. Trifecta's client stands in for httpstat and needs no DNS "
        "look-up. HTTP/3 has one handshake, QUIC's, shown under TLS. The study's row of HTTP/3 was "
        "answered over HTTP/2, as its authors note.",
        (
            ("dns_lookup", "_ns", "dns_ns"),
            ("tcp_connection", "_ns", "tcp_ns"),
            ("tls_handshake", "_ns", "tls_p50_ns"),
            ("server_processing", "_ns", "wait_p50_ns"),
            ("content_transfer", "_ns", "transfer_p50_ns"),
            ("total", "_ns", "latency_p50_ns"),
        ),
        "bare-index",
        spoken=True,
    ),
    "light": _Table("The light page", f"{_MEANS} {_PAGE}", _OF_PAGE, "bare-page"),
    "heavy": _Table(
        "The heavy page",
        f"{_MEANS} {_PAGE} The study's three loads were not the same work: 120, 123 and 134 requests, 7.3 MB each.",
        _OF_PAGE,
        "bare-page",
    ),
    "video": _Table(
        "The video",
        f"{_MEANS} Latency is that of a segment's first octet, bitrate the rate of its download, as hls.js's page has "
        "them; the study writes MB/s, its player Mbit/s. Its startup time is another player's, THEOplayer's. Frames "
        "are dropped by a decoder in software, for want of CPU: measured here, of the study a conjecture.",
        (
            ("startup", "_ns", "startup_ns"),
            ("average_latency", "_ns", "segment_ttfb_ns"),
            ("average_bitrate", "_bits_per_s", "throughput_bits_per_s"),
            ("dropped_frames", "", "frames_dropped"),
        ),
        "bare-video",
    ),
}


def figures(folder: Path, study: StudyResult) -> list[StudyFigure]:
    """The study's tables, ours beside theirs; one of which nothing was run has its reason in place of rows."""
    metrics = {name: [metric for _, _, metric in one.columns] for name, one in _TABLES.items()}
    return [_figure(own_figure, _TABLES[own_figure.id], study) for own_figure in own.read(study, metrics)]


def _figure(table: Table, about: _Table, study: StudyResult) -> StudyFigure:
    identity = f"baccichet2021-table-{table.id}"
    if not table.lines:
        reasons = ((name, why) for name, why in study.missing.items() if f"{name},".startswith(f"{about.run},"))
        why = "; ".join(f"{name}: {why}" for name, why in reasons) or f"{about.run}: not run"
        return StudyFigure(identity, about.title, table.source, why, "", (), (), table=True)
    columns = tuple(_columns(about))
    rows = tuple(tuple(_values(line, about)) for line in table.lines)
    picture = _phases(table, identity) if table.id == "httpstat" else ""
    return StudyFigure(identity, about.title, table.source, about.caption, picture, columns, rows, table=True)


def _phases(table: Table, identity: str) -> str:
    """Each protocol's phases, ours and the study's."""
    bars = []
    for line in table.lines:
        name, spoken = style.name(line.arm), style.name(line.spoken)
        ours = {metric: line.values[metric].ours.value for metric in _PHASES}
        theirs = {metric: line.values[metric].published for metric in _PHASES}
        over = "" if line.spoken == line.arm else f", answered over {spoken}"
        for title, parts in ((f"{name}, here", ours), (f"{name}, published{over}", theirs)):
            known = {metric: value for metric, value in parts.items() if value is not None}
            bars.append(Bar(title if known else f"{title}: {line.missing}", known))
    with svg.drawing():
        drawn = part_bars.part_bars(bars, _PHASES, "time of a request", numbers.duration)
        return with_legend(drawn, part_bars.legend(bars, _PHASES)).svg(identity)


def _columns(about: _Table) -> Iterator[str]:
    yield "protocol"
    for name, unit, _ in about.columns:
        yield from (f"{name}{unit}", f"{name}_low{unit}", f"{name}_high{unit}", f"published_{name}{unit}")
    yield from ("blocks", *(("published_over",) if about.spoken else ()), "run", "cell", "missing")


def _values(line: Line, about: _Table) -> Iterator[Value]:
    yield style.name(line.arm)
    for _, unit, metric in about.columns:
        value = line.values[metric]
        written = (value.ours.value, value.ours.low, value.ours.high, value.published)
        yield from (_rounded(one, unit) for one in written)
    blocks = max(value.ours.blocks for value in line.values.values())
    yield from (blocks, *((style.name(line.spoken),) if about.spoken else ()), line.run, line.cell, line.missing)


def _rounded(value: float | None, unit: str) -> Value:
    """Whole nanoseconds and octets; of others no more digits than a mean by logarithms has."""
    if value is None:
        return None
    return round(value) if unit in ("_ns", "_bytes") else round(value, 9)
