"""The figures and numbers of milicevic2023: R_i in histograms, T_i in progressions, minima, modes, means and maxima."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trifecta.conclude.reproduction import own_milicevic2023 as own
from trifecta.conclude.reproduction.own_milicevic2023 import ARMS, PAYLOADS, Progression, RoundTrips
from trifecta.conclude.reproduction.result import StudyResult
from trifecta.report.figures import style, svg
from trifecta.report.reproduction.own import milicevic2023_panels as drawn
from trifecta.report.reproduction.own.marks import why_empty
from trifecta.report.reproduction.own.study_figure import StudyFigure

Row = tuple[str | float | int | None, ...]
_PROGRAMS = "The study's programs: Hypercorn, Python client with aioquic."
_NEWER_TLS = "HTTP/2 has TLS 1.3 here, one round trip less than in the study's figure 3."
_PLACES = {
    "near": ("figure 8", "client and server in the same region", "here a round trip of 2 ms"),
    "far": ("figure 9", "client and server in different regions", "here a round trip of 70 ms"),
}
_ROUND_TRIP_COLUMNS = ("published_min_ns", "published_mode_low_ns", "published_mode_high_ns", "published_max_ns")
_RATE_COLUMNS = ("published_min_per_s", "published_mean_per_s", "published_max_per_s")


def figures(folder: Path, study: StudyResult) -> list[StudyFigure]:
    """What can be drawn of the study from the runs in the reproduction's folder."""
    round_trips, progressions = own.round_trips(folder, study), own.progressions(folder, study)
    study_figures = []
    with svg.drawing():
        study_figures += [_histogram(study, one) for one in round_trips]
        if round_trips:
            study_figures.append(_latency(study, round_trips))
        for arm in ARMS:
            by_payload = {one.payload: one for one in progressions if one.arm == arm}
            if by_payload:
                study_figures.append(_progression(study, arm, by_payload))
        if progressions:
            study_figures.append(_throughput(study, progressions))
    return study_figures


def _empty_place(study: StudyResult, place: str) -> str:
    return why_empty(study, connection="new", path=place)


def _empty_payload(study: StudyResult, payload: int) -> str:
    return why_empty(study, connection="reused", request_bytes=str(payload))


def _histogram(study: StudyResult, round_trips: RoundTrips) -> StudyFigure:
    figure, words, here = _PLACES[round_trips.place]
    name = f"milicevic2023-{figure.replace(' ', '-')}"
    columns = (
        "protocol",
        "bin_low_ns",
        "bin_high_ns",
        "requests",
        "share",
        "missing",
        *_ROUND_TRIP_COLUMNS,
        "published_source",
    )
    edges = [int(edge) for edge in round_trips.histogram.edges]
    absent = _empty_place(study, round_trips.place)
    rows: list[Row] = []
    for arm in ARMS:
        published = own.PUBLISHED_ROUND_TRIPS[round_trips.place, arm]
        published_cells = (
            published.smallest_ns,
            published.mode_low_ns,
            published.mode_high_ns,
            published.largest_ns,
            f"V.A, {figure}",
        )
        head, spread = style.name(arm), round_trips.spreads.get(arm)
        if spread is None:
            rows.append((head, None, None, None, None, absent, *published_cells))
            continue
        counts = [int(count) for count in round_trips.histogram.arms[arm].counts]
        bins = [*zip(edges[:-1], edges[1:], counts, strict=True), (edges[-1], None, spread.requests - sum(counts))]
        rows += [(head, low, high, count, count / spread.requests, "", *published_cells) for low, high, count in bins]
    return StudyFigure(
        id=name,
        title=f"Round trips with a new connection for every request, {words}",
        source=f"V.A, {figure}",
        caption=f"All requests of all valid trials, warm-up excluded, {_listed(round_trips.payloads)}; "
        "the longest 0.5 % may be in no bin, the last line of the CSV has them. The mark is on the fullest bin. "
        f"{_PROGRAMS} Times are those of another path and other machines, {here}: shapes are to be compared. "
        f"{_NEWER_TLS if round_trips.tls_1_3 else ''}",
        svg=drawn.histogram(round_trips, absent, name),
        columns=columns,
        rows=tuple(rows),
    )


def _latency(study: StudyResult, every: Sequence[RoundTrips]) -> StudyFigure:
    columns = (
        *("place", "protocol", "requests", "min_ns", "mode_low_ns", "mode_high_ns", "median_ns", "mean_ns", "max_ns"),
        *("mean_saved_ns", "missing", *_ROUND_TRIP_COLUMNS, "published_mean_saved_ns", "published_source"),
    )
    by_place = {one.place: one for one in every}
    rows: list[Row] = []
    for place, difference in own.PUBLISHED_DIFFERENCES_NS.items():
        spreads = by_place[place].spreads if place in by_place else {}
        for arm in ARMS:
            published, spread = own.PUBLISHED_ROUND_TRIPS[place, arm], spreads.get(arm)
            base = spreads.get("h2")
            ours: Row = (*(None,) * 8, _empty_place(study, place))
            if spread is not None:
                less = base.mean_ns - spread.mean_ns if base is not None and arm != "h2" else None
                ours = (
                    *(spread.requests, spread.smallest_ns, spread.mode_low_ns, spread.mode_high_ns, spread.median_ns),
                    *(spread.mean_ns, spread.largest_ns, less, ""),
                )
            theirs = (published.smallest_ns, published.mode_low_ns, published.mode_high_ns, published.largest_ns)
            apart = difference if arm != "h2" else None
            where = f"V.A, {_PLACES[place][0]}" + ("; VI" if arm != "h2" else "")
            rows.append((place, style.name(arm), *ours, *theirs, apart, where))
    return StudyFigure(
        id="milicevic2023-latency",
        title="Round trips in numbers: minimum, mode, mean, maximum",
        source="V.A, figures 8 and 9; VI",
        caption="Of all payloads together. The mode is the fullest of bins as wide as 1/20 of the median; the study "
        "gives between which values the majority lay, and of means their difference only: saved is how much shorter "
        f"the mean is than that of HTTP/2. {_PROGRAMS}",
        svg="",
        columns=columns,
        rows=tuple(rows),
        table=True,
    )


def _progression(study: StudyResult, arm: str, progressions: dict[int, Progression]) -> StudyFigure:
    figure = {"h2": "figure 10", "h3": "figure 11"}[arm]
    name = f"milicevic2023-{figure.replace(' ', '-')}"
    columns = (
        *("protocol", "request_bytes", "i", "requests_per_s", "min_of_trials_per_s", "max_of_trials_per_s", "trials"),
        *("missing", *_RATE_COLUMNS, "published_settled_per_s", "published_settled_after_i", "published_source"),
    )
    absent = {payload: _empty_payload(study, payload) for payload in PAYLOADS}
    rows: list[Row] = []
    for payload in PAYLOADS:
        published, one = own.PUBLISHED_RATES[arm, payload], progressions.get(payload)
        theirs = (
            published.smallest,
            published.mean,
            published.largest,
            published.settled,
            published.settled_after,
            f"V.B, {figure}",
        )
        head = (style.name(arm), payload)
        if one is None:
            rows.append((*head, None, None, None, None, None, absent[payload], *theirs))
            continue
        rows += [(*head, at.place, at.value, at.smallest, at.largest, at.trials, "", *theirs) for at in one.points]
    most = max(one.requests for one in progressions.values())
    given = (
        "hollow: the rate at which the study's progression settles after 3,000 of 20,000 requests"
        if arm == "h2"
        else "from the smallest to the largest value of the study's progression, hollow its mean"
    )
    return StudyFigure(
        id=name,
        title=f"Progression of throughput on one connection, {style.name(arm)}",
        source=f"V.B, {figure}",
        caption="T(i) = i ÷ (response(i) − request(1)). A line is the mean over the trials of a payload, shaded from "
        "the smallest to the largest trial (the study: one run); the legend leaves out the first hundredth of a trial, "
        f"10 at least. A trial has {most:,} requests, the study's 20,000. Right: {given}. {_PROGRAMS}",
        svg=drawn.progression(arm, progressions, absent, name),
        columns=columns,
        rows=tuple(rows),
    )


def _throughput(study: StudyResult, progressions: Sequence[Progression]) -> StudyFigure:
    columns = (
        *("protocol", "request_bytes", "requests", "trials", "min_per_s", "mean_per_s", "max_per_s", "settled_per_s"),
        *("settled_after_i", "missing", *_RATE_COLUMNS, "published_settled_per_s", "published_settled_after_i"),
        "published_source",
    )
    by = {(one.arm, one.payload): one for one in progressions}
    rows: list[Row] = []
    for arm in ARMS:
        for payload in PAYLOADS:
            one, published = by.get((arm, payload)), own.PUBLISHED_RATES[arm, payload]
            ours: Row = (*(None,) * 7, _empty_payload(study, payload))
            if one is not None:
                rates = (one.smallest, one.mean, one.largest, one.last)
                ours = (one.requests, one.points[-1].trials, *rates, one.settled_after, "")
            theirs = (published.smallest, published.mean, published.largest, published.settled, published.settled_after)
            rows.append((style.name(arm), payload, *ours, *theirs, f"V.B, figure {10 if arm == 'h2' else 11}"))
    return StudyFigure(
        id="milicevic2023-throughput",
        title="Progressions in numbers: minimum, mean, maximum, and where they settle",
        source="V.B, figures 10 and 11",
        caption="Requests per second. Minimum and maximum over i and over trials, without the first hundredth of a "
        "trial (10 requests at least); mean, the rate at the end (settled) and from where on it stays within 5 % "
        f"of that are medians of trials. {_PROGRAMS}",
        svg="",
        columns=columns,
        rows=tuple(rows),
        table=True,
    )


def _listed(payloads: Sequence[int]) -> str:
    """Which requests are in a figure."""
    words = [drawn.payload_words(one) for one in payloads]
    if len(words) == 1:
        return f"of a payload of {words[0]}"
    return f"of payloads of {', '.join(words[:-1])} and {words[-1]} together"
