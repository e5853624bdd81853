"""The figures of ding2022: the time of its tests, the length of packets over time, and what they carried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from trifecta.conclude.reproduction import own_ding2022 as own
from trifecta.conclude.reproduction.own_ding2022 import (
    ARMS,
    DIRECTIONS,
    TESTS,
    Duration,
    PacketTotals,
    Sums,
    Test,
    Trace,
)
from trifecta.conclude.reproduction.result import StudyResult
from trifecta.report.figures import style, svg
from trifecta.report.reproduction.own import ding2022_panels as drawn
from trifecta.report.reproduction.own.marks import NO_VALID, NOT_RUN
from trifecta.report.reproduction.own.study_figure import StudyFigure

Row = tuple[str | float | int | None, ...]
_SUMS = ("client_frames", "server_frames", "client_octets", "server_octets")
_ANSWERS = {True: "yes", False: "no", None: None}
_NONE: Row = (None,) * len(_SUMS)
_PROGRAMS = "The study's programs: curl and Caddy; HTTP/1.1, which it did not draw, is in the reports of the runs."
_WAITED = (
    "Of the study's times over HTTP/2, in their order, 667, 225, 644 and 210 ms are waits of its client between TCP's "
    "handshake and TLS's (wait-before-tls; ours, from its captures); closed, it started a curl for each request."
)
_WIRE = (
    "Here packets are as on a wire of 1500 B; the study captured on loopback, where TCP has frames of up to 64 KB, so "
    "that its numbers of frames are none of a network (loopback-offload)."
)


def figures(folder: Path, study: StudyResult) -> list[StudyFigure]:
    """What can be drawn of the study from the runs in the reproduction's folder."""
    durations, traces = own.durations(study), own.traces(folder, study)
    study_figures = []
    with svg.drawing():
        if durations:
            study_figures.append(_durations(study, durations))
        by_test = [(test, {one.arm: one for one in traces if one.test is test}) for test in TESTS]
        study_figures += [_sizes(study, test, values) for test, values in by_test if values]
        study_figures += [_sums(study, test, values) for test, values in by_test if values]
    return study_figures


def _durations(study: StudyResult, every: Sequence[Duration]) -> StudyFigure:
    columns = ("test", "protocol", "trials", "duration_ns", "min_ns", "max_ns", "missing", "published_duration_ns",
               "published_source")  # fmt: skip
    absent = {test.id: _empty(study, test) for test in TESTS}
    rows: list[Row] = [
        (
            *(one.test.words, style.name(one.arm), one.trials, one.median_ns, one.smallest_ns, one.largest_ns),
            *("" if one.trials else absent[one.test.id], one.published_ns, "figure 1"),
        )
        for one in every
    ]
    return StudyFigure(
        id="ding2022-figure-1",
        title="Time of the tests: hello and small, closed and sim",
        source="4.1, figure 1",
        caption="Three requests one after the other, from the start of the first to the end of the last: with a new "
        "connection for each (closed) or on one (sim), a short string (hello) or 1 MB (small). Per cent: of the bar of "
        f"HTTP/2. The times are those of other machines and paths. {_WAITED} {_PROGRAMS}",
        svg=drawn.durations(every, absent, "ding2022-figure-1"),
        columns=columns,
        rows=tuple(rows),
    )


def _empty(study: StudyResult, test: Test) -> str:
    return NO_VALID if test.cells(study) else NOT_RUN


def _figures(numbers_by_arm: Mapping[str, int]) -> str:
    first, last = sorted(numbers_by_arm.values())
    return f"{first}-{last}"


def _trials_in_words(traces: dict[str, Trace]) -> str:
    """Which trials are drawn."""
    sentences = [
        f"{style.name(arm)} {one.run.rpartition('/')[2]} {one.trial}"
        + (f", of {one.trials} captured trials that with the median duration" if one.trials > 1 else "")
        for arm in ARMS
        if (one := traces.get(arm)) is not None
    ]
    return "; ".join(sentences)


def _sizes(study: StudyResult, test: Test, traces: dict[str, Trace]) -> StudyFigure:
    which = _figures(test.sizes)
    name = f"ding2022-figures-{which}"
    columns = ("figure", "protocol", "run", "trial", "packet", "time_ns", "direction", "length_bytes",
               "application_data", "octets_of_http", "missing")  # fmt: skip
    absent = _empty(study, test)
    rows: list[Row] = []
    for arm in ARMS:
        head, one = (test.sizes[arm], style.name(arm)), traces.get(arm)
        if one is None:
            rows.append((*head, *(None,) * 8, absent))
            continue
        rows += [
            (*head, one.run, one.trial, at.number, at.time_ns, drawn.WORDS[at.direction], at.octets,
             _ANSWERS[at.application], _ANSWERS[at.http], "")
            for at in one.packets
        ]  # fmt: skip
    return StudyFigure(
        id=name,
        title=f"Length of packets over time: {test.words}",
        source=f"figures {which.replace('-', ' and ')}",
        caption="A mark is a packet with its link-layer header, when its sender sent it; above zero those of the "
        "server. The study's axis has a place for each packet, so that pauses do not show; here it is time. "
        f"{_trials_in_words(traces)}. {_WIRE}",
        svg=drawn.sizes(test, traces, absent, name),
        columns=columns,
        rows=tuple(rows),
    )


def _sums(study: StudyResult, test: Test, traces: dict[str, Trace]) -> StudyFigure:
    which = _figures(test.sums)
    columns = (
        "figure",
        "protocol",
        "what",
        *_SUMS,
        "missing",
        *(f"published_{name}" for name in _SUMS),
        "run",
        "trial",
    )
    rows: list[Row] = []
    for arm in ARMS:
        one, head = traces.get(arm), (test.sums[arm], style.name(arm))
        theirs = _table(test.said[arm])
        ours = dict.fromkeys(theirs, _NONE) if one is None else _table(one.sums())
        missing, tail = ("", (one.run, one.trial)) if one is not None else (_empty(study, test), (None, None))
        rows += [(*head, name, *ours[name], missing, *theirs[name], *tail) for name in theirs]
        http = None if one is None else one.of_http()
        if http is not None:
            rows.append((*head, "with octets of HTTP", *_line(http["up"], http["down"]), missing, *_NONE, *tail))
        elif one is not None:
            rows.append((*head, "with octets of HTTP", *_NONE, "not known without keys", *_NONE, *tail))
    return StudyFigure(
        id=f"ding2022-figures-{which}",
        title=f"Frames and octets by direction, with application data and without: {test.words}",
        source=f"figures {which.replace('-', ' and ')}",
        caption="As the study counts: no application data are TCP's opening and closing, and QUIC packets with a long "
        "header. So TLS's handshake over TCP counts as application data and QUIC's does not: the shares of the two "
        "protocols are not of one kind. What carries octets of HTTP stands apart. The study's numbers are as printed. "
        f"{_trials_in_words(traces)}. {_WIRE}",
        svg="",
        columns=columns,
        rows=tuple(rows),
        table=True,
    )


def _table(sums: Sums) -> dict[str, Row]:
    """The lines of the study's table: frames of client and server, octets of both."""
    without, with_data = ([sums[way, kind] for way in DIRECTIONS] for kind in (False, True))
    every = [
        PacketTotals(one.frames + two.frames, one.octets + two.octets)
        for one, two in zip(without, with_data, strict=True)
    ]
    overall = _line(*every)
    shares = tuple(
        round(part / overall_value, 4) if overall_value else None
        for part, overall_value in zip(_line(*with_data), overall, strict=True)
    )
    return {
        "not application data": _line(*without),
        "application data": _line(*with_data),
        "overall": overall,
        "share of application data": shares,
    }


def _line(client: PacketTotals, server: PacketTotals) -> tuple[int, int, int, int]:
    return client.frames, server.frames, client.octets, server.octets
