"""What milicevic2023 drew and gave in numbers, out of runs here: R_i near and far, and T_i by payload.

R_i is from the request of a connection to the response, T_i the requests answered so far by the time since the first
was sent (IV.C and IV.D). The numbers beside ours stand in its text; nothing is read off a picture.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from trifecta.analysis import sequential
from trifecta.analysis.published import Place
from trifecta.analysis.sequential import Histogram, Progress
from trifecta.conclude import queries
from trifecta.conclude.query import Query
from trifecta.conclude.reproduction.own_cells import counted_trials, of_trials, own_cells
from trifecta.conclude.reproduction.result import StudyResult
from trifecta.conclude.sequential.catalogue import PROGRESSIONS

Floats = NDArray[np.float64]
ARMS = ("h2", "h3")
"""The protocols that the study compared."""
PAYLOADS = (100, 600, 1000)
"""Octets of a request."""
_SHOWN = 240  # points of a progression, evenly on a linear axis as the study has it
_MS = 1_000_000

SAMPLES = Query(
    "own_round_trips",
    """
SELECT t.arm, s.trial, s.done_ns - s.started_ns AS trip_ns, s.done_ns,
       coalesce(s.request_sent_ns, s.started_ns) AS sent_ns
FROM samples AS s JOIN trials AS t USING (trial)
WHERE t.valid AND NOT t.is_aa AND NOT s.warmup AND s.success{and_cell}
ORDER BY s.trial, s.done_ns, s.request
""",
    ("trial",),
)


@dataclass(frozen=True)
class PublishedRoundTrips:
    """Round trips as the study gives them, in ns: their ends, and between which most of them lay."""

    smallest_ns: int
    mode_low_ns: int
    mode_high_ns: int
    largest_ns: int


@dataclass(frozen=True)
class PublishedRates:
    """A progression as the study gives it, in requests a second; None: it gives none."""

    smallest: float | None
    mean: float | None
    largest: float | None
    settled: float | None = None
    settled_after: int | None = None


PUBLISHED_ROUND_TRIPS: Mapping[tuple[str, str], PublishedRoundTrips] = {
    ("near", "h2"): PublishedRoundTrips(29 * _MS, 60 * _MS, 65 * _MS, 90 * _MS),
    ("near", "h3"): PublishedRoundTrips(22 * _MS, 24 * _MS, 36 * _MS, 65 * _MS),
    ("far", "h2"): PublishedRoundTrips(285 * _MS, 320 * _MS, 335 * _MS, 392 * _MS),
    ("far", "h3"): PublishedRoundTrips(156 * _MS, 156 * _MS, 165 * _MS, 282 * _MS),
}
"""By place and protocol: V.A, figures 8 and 9."""
PUBLISHED_DIFFERENCES_NS: Mapping[str, int] = {"near": 32 * _MS, "far": 167 * _MS}
"""By place how much longer the mean of HTTP/2 is: VI."""
PUBLISHED_RATES: Mapping[tuple[str, int], PublishedRates] = {
    **{("h2", payload): PublishedRates(None, None, None, 20.0, 3000) for payload in PAYLOADS},
    ("h3", 100): PublishedRates(85.0, 102.0, 141.0),
    ("h3", 600): PublishedRates(86.0, 107.0, 128.0),
    ("h3", 1000): PublishedRates(73.0, 118.0, 138.0),
}
"""By protocol and payload: V.B, figures 10 and 11."""


@dataclass(frozen=True)
class Spread:
    """The round trips of a protocol in ns; the mode is the fullest of bins as wide as a twentieth of the median."""

    requests: int
    smallest_ns: int
    mode_low_ns: int
    mode_high_ns: int
    median_ns: int
    mean_ns: int
    largest_ns: int


@dataclass(frozen=True)
class RoundTrips:
    """The round trips at a place, those of all payloads together, in one histogram for both protocols.

    ``histogram`` and ``spreads`` lack a protocol that has none.
    """

    place: str
    payloads: tuple[int, ...]
    histogram: Histogram
    spreads: Mapping[str, Spread]
    tls_1_3: bool
    """Whether HTTP/2 has TLS 1.3, where the study has 1.2 by its figure 3."""


@dataclass(frozen=True)
class Progression:
    """T_i of a protocol and payload, in requests a second: points of the mean over trials, and what trials reached.

    ``smallest`` and ``largest`` are over trials and over i from a hundredth of them on (ten at least), ``mean``,
    ``last`` and ``settled_after`` (from there on within 5 % of its end) medians of trials.
    """

    arm: str
    payload: int
    points: Sequence[Progress]
    requests: int
    smallest: float
    mean: float
    largest: float
    last: float
    settled_after: int


def round_trips(folder: Path, study: StudyResult) -> list[RoundTrips]:
    """The round trips near and far; a place without any is left out. ``folder`` is the reproduction's."""
    cells = own_cells(study, connection="new")
    samples_by_arm: dict[tuple[str, str], list[Floats]] = {}
    for connection, cell in _opened(folder, cells):
        columns = connection.execute(of_trials(SAMPLES, counted_trials([cell])).text(cell.cell)).fetchnumpy()
        for arm in ARMS:
            own = columns["trip_ns"][columns["arm"] == arm]
            if len(own):
                samples_by_arm.setdefault((cell.levels["path"], arm), []).append(own.astype(np.float64))
    places_with_round_trips = []
    for place in PUBLISHED_DIFFERENCES_NS:
        values = {arm: np.concatenate(samples_by_arm[place, arm]) for arm in ARMS if (place, arm) in samples_by_arm}
        if values:
            edges = np.unique(np.rint(sequential.bins(list(values.values()))))  # of whole ns, as they are told
            payloads = tuple(sorted({_payload(cell) for cell in cells if cell.levels["path"] == place}))
            spreads = {arm: _spread(own) for arm, own in values.items()}
            newer = all(cell.levels.get("tls_version") != "1.2/1.3" for cell in cells)
            places_with_round_trips.append(
                RoundTrips(place, payloads, sequential.histogram(values, edges), spreads, newer)
            )
    return places_with_round_trips


def progressions(folder: Path, study: StudyResult) -> list[Progression]:
    """The progressions of the payloads that were run, HTTP/2 first. ``folder`` is the reproduction's."""
    by_key: dict[tuple[str, int], Progression] = {}
    for connection, cell in _opened(folder, own_cells(study, connection="reused")):
        columns = connection.execute(of_trials(SAMPLES, counted_trials([cell])).text(cell.cell)).fetchnumpy()
        rows_by_arm = {
            row["arm"]: row
            for row in queries.ask(connection, of_trials(PROGRESSIONS, counted_trials([cell])), cell.cell)
        }
        for arm in ARMS:
            if arm not in rows_by_arm:
                continue
            trials = []
            for trial in np.unique(columns["trial"][columns["arm"] == arm]):
                here = columns["trial"] == trial
                trials.append(sequential.progression(int(columns["sent_ns"][here].min()), columns["done_ns"][here]))
            shortest = min(len(one) for one in trials)
            shown = sorted({round(i) for i in np.linspace(1, shortest, min(shortest, _SHOWN))})
            row, payload = rows_by_arm[arm], _payload(cell)
            by_key[arm, payload] = Progression(
                arm,
                payload,
                sequential.band(arm, trials, cell.confidence, shown),
                int(row["requests"]),
                row["smallest"],
                row["mean"],
                row["largest"],
                row["last"],
                int(row["settled"]),
            )
    return [by_key[key] for key in sorted(by_key)]


def _opened(folder: Path, cells: Sequence[Place]) -> Iterator[tuple[duckdb.DuckDBPyConnection, Place]]:
    """Each cell with a connection to its run, which is opened once for all of its cells."""
    for run in dict.fromkeys(cell.run for cell in cells):
        with queries.connect(folder / run) as connection:
            for cell in cells:
                if cell.run == run:
                    yield connection, cell


def _payload(cell: Place) -> int:
    return int(cell.levels["request_bytes"])


def _spread(values: Floats) -> Spread:
    width = float(np.median(values)) / 20
    places, counts = np.unique(np.floor(values / width), return_counts=True)
    low = float(places[counts.argmax()]) * width
    smallest, largest = float(values.min()), float(values.max())
    statistics = (smallest, max(low, smallest), min(low + width, largest), np.median(values), values.mean(), largest)
    return Spread(len(values), *(round(float(one)) for one in statistics))
