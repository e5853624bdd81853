"""From the visits and requests of a browser in one trial to columns of its row, and to what the checks look at."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.checks.visits import FetchResult, Visit, Visits
from trifecta.contract.trial import TrialRow
from trifecta.store import parquet
from trifecta.store.schema import YOUNGER
from trifecta.workloads.aggregate import Aggregate, percentile
from trifecta.workloads.visits.configs import Drafts

Row = dict[str, Any]
_MEDIANS = {
    "dom_content_loaded_p50_ns": "dom_content_loaded_ns",
    "fcp_p50_ns": "fcp_ns",
    "lcp_p50_ns": "lcp_ns",
    "live_latency_p50_ns": "live_latency_ns",
}
_MEANS = {"rebuffer_mean_ns": "rebuffer_ns", "bitrate_mean_bits_per_s": "bitrate_bits_per_s"}
_KEPT = (
    "load_ns", "connections", "resumed_connections", "startup_ns", "watched_ns", "played_ns", "rebuffer_ns",
    "frames_shown", "frames_dropped", "frames_dropped_floor",
)  # fmt: skip
_OF_VISITS = (
    "visit",
    "warmup",
    "error",
    "browser_cpu_ns",
    *_KEPT,
    *_MEDIANS.values(),
    "speed_index_ns",
    "bitrate_bits_per_s",
)
_OF_FETCHES = (
    "visit", "fetch", "method", "url", "protocol", "status", "decoded_bytes", "from_cache", "missing", "done_ns",
    "rung", "segment", "third_party", "error",
)  # fmt: skip
_EXAMPLES = 3  # URLs kept of each protocol
_REFUSED, _SERVER_ERROR = 400, 500  # RFC 9110, sections 15.5 and 15.6


@dataclass(frozen=True)
class VisitAggregate:
    """Columns of the row ``trials`` that come from the visits (those of samples come from these), and the evidence."""

    columns: TrialRow
    visits: Visits


def aggregate_visits(
    visits_file: Path, fetches_file: Path, playback_file: Path | None = None, *, third_parties: tuple[str, ...] = ()
) -> VisitAggregate:
    """Read the files of one trial; warm-up visits count for nothing but their number.

    ``third_parties``: the hosts of the page that are not its own.
    """
    every = parquet.read(visits_file, _OF_VISITS)
    measured = sorted((row for row in every if not row["warmup"]), key=itemgetter("visit"))
    good = {row["visit"] for row in measured if row["error"] is None}
    lacking = YOUNGER["fetches"] - set(parquet.types_of(fetches_file))  # of a run that is gone on with
    fetches = parquet.read(fetches_file, [name for name in (*_OF_FETCHES, "warmup") if name not in lacking])
    rows = [row for row in fetches if not row["warmup"] and row["visit"] in good]
    rows.sort(key=itemgetter("visit", "fetch"))
    stalled = set() if playback_file is None or not playback_file.exists() else _stalled(playback_file)
    return VisitAggregate(
        cast(TrialRow, _columns(measured) | _speed_index(every)),
        _evidence(measured, rows, stalled, len(every) - len(measured), third_parties),
    )


def _columns(measured: Sequence[Row]) -> dict[str, Any]:
    """Medians with failed visits censored at infinity, as those of samples; means over visits without an error."""
    columns: dict[str, Any] = {name: percentile(_numbers(measured, field), 0.5) for name, field in _MEDIANS.items()}
    good = [row for row in measured if row["error"] is None]
    for name, field in _MEANS.items():
        values = [float(row[field]) for row in good if row[field] is not None]
        columns[name] = float(np.mean(values)) if values else None
    counted = [row for row in good if row["frames_dropped"] is not None and row["frames_shown"] is not None]
    dropped = sum(row["frames_dropped"] for row in counted)
    frames = dropped + sum(row["frames_shown"] for row in counted)
    columns["frames_dropped_rate"] = dropped / frames if frames else None
    return columns


def _speed_index(visits: Sequence[Row]) -> dict[str, Any]:
    """The median over the visits that were filmed. A camera slows a page down, so that may be one of warm-up."""
    good = [row for row in visits if row["error"] is None and row["speed_index_ns"] is not None]
    filmed = [row for row in good if not row["warmup"]] or good
    values = np.array([row["speed_index_ns"] for row in filmed], dtype=np.float64)
    return {"speed_index_p50_ns": percentile(values, 0.5)}


def _numbers(rows: Sequence[Row], field: str) -> NDArray[np.float64]:
    """A column with failures at infinity; NaN where there is no such value. All NaN when no visit has one at all."""
    if all(row[field] is None for row in rows if row["error"] is None):
        return np.full(len(rows), np.nan)
    values = [np.inf if row["error"] is not None else np.nan if row[field] is None else row[field] for row in rows]
    return np.array(values, dtype=np.float64)


def _evidence(
    measured: Sequence[Row],
    fetches: Sequence[Row],
    stalled: set[int],
    warmup: int,
    third_parties: tuple[str, ...],
) -> Visits:
    by_visit: dict[int, list[Row]] = {}
    for fetch in fetches:
        by_visit.setdefault(fetch["visit"], []).append(fetch)
    network = [fetch for fetch in fetches if _has_response(fetch) and not fetch["from_cache"]]
    failed = [fetch for fetch in fetches if _failed(fetch)]
    refused = [fetch for fetch in network if (fetch["status"] or 0) >= _REFUSED and not fetch["missing"]]
    own = [fetch for fetch in network if not fetch.get("third_party")]
    theirs = [fetch for fetch in network if fetch.get("third_party")]
    examples: dict[str, tuple[str, ...]] = {}
    for fetch in own:
        known = examples.setdefault(str(fetch["protocol"]), ())
        if len(known) < _EXAMPLES and fetch["url"] not in known:
            examples[str(fetch["protocol"])] = (*known, fetch["url"])
    segments = [fetch for fetch in network if fetch["rung"] is not None and fetch["segment"] is not None]
    return Visits(
        visits=tuple(_visit(row, by_visit.get(row["visit"], []), row["visit"] in stalled) for row in measured),
        warmup_visits=warmup,
        fetches=len(network),
        from_cache=sum(bool(fetch["from_cache"]) for fetch in fetches),
        protocols=_counts(fetch["protocol"] for fetch in own),
        examples=examples,
        untold=sum(fetch["protocol"] is None for fetch in own),
        third_parties=third_parties,
        third_party_protocols=_counts(fetch["protocol"] or "none" for fetch in theirs),
        failed=_counts(fetch["url"] for fetch in failed),
        failed_classes=_counts(fetch["error"] or "status" for fetch in failed),
        refused=_counts(fetch["url"] for fetch in refused),
        missing=_counts(fetch["url"] for fetch in fetches if fetch["missing"]),
        unfinished=sum(fetch["error"] is None and fetch["done_ns"] is None for fetch in fetches),
        segments={
            (fetch["rung"], fetch["segment"]): fetch["decoded_bytes"]
            for fetch in segments
            if fetch["decoded_bytes"] is not None
        },
    )


def _visit(row: Row, fetches: Sequence[Row], stalled: bool) -> Visit:
    answered = [fetch for fetch in fetches if _has_response(fetch) and not fetch["missing"]]
    first = next((fetch["protocol"] for fetch in fetches if _has_response(fetch) and not fetch["from_cache"]), None)
    return Visit(
        number=row["visit"],
        error=row["error"],
        cpu_ns=row["browser_cpu_ns"],
        fetched=_fetch_results(answered),
        first_protocol=first,
        stalled_at_end=stalled,
        **{name: row[name] for name in _KEPT},
    )


def _has_response(fetch: Row) -> bool:
    return not _failed(fetch) and fetch["done_ns"] is not None


def _failed(fetch: Row) -> bool:
    """Whether nothing came, or the server said that it could not. A 404 is an answer: recorded pages have them."""
    status = fetch["status"]
    if fetch["error"] in (None, "status") and status is not None:  # only Chromium's rows call a 404 an error
        return bool(status >= _SERVER_ERROR)
    return fetch["error"] is not None


def _fetch_results(fetches: Iterable[Row]) -> dict[str, FetchResult]:
    fetch_results: dict[str, FetchResult] = {}
    for fetch in fetches:
        key = f"{fetch['method']} {fetch['url']}"
        octets = None if fetch["from_cache"] else fetch["decoded_bytes"]
        before = fetch_results.get(key)
        if before is None:
            fetch_results[key] = FetchResult(1, fetch["status"], octets)
        else:
            sum_of = None if before.octets is None or octets is None else before.octets + octets
            fetch_results[key] = FetchResult(before.times + 1, before.status, sum_of)
    return fetch_results


def _counts(values: Iterable[Any]) -> dict[str, int]:
    return dict(Counter(str(value) for value in values if value is not None))


def _stalled(playback_file: Path) -> set[int]:
    """Visits whose last stall did not end."""
    rows = parquet.read(playback_file, ["visit", "time_ns", "event"])
    events = sorted((row for row in rows if row["event"] in ("stall", "resume")), key=itemgetter("time_ns"))
    last = {row["visit"]: row["event"] for row in events}
    return {visit for visit, event in last.items() if event == "stall"}


def read_visits(
    drafts: Drafts, aggregate: Aggregate | None, errors: list[str], third_parties: tuple[str, ...]
) -> VisitAggregate | None:
    """What the visits of a trial say; None when they are not whole. Of a driver that died, everything it wrote goes."""
    if aggregate is None:
        for path in drafts.files:
            path.unlink(missing_ok=True)
        for folder in drafts.folders:
            shutil.rmtree(folder, ignore_errors=True)
        return None
    missing = [path for path in drafts.files if not path.exists()]
    if missing:
        errors.append("the client wrote no " + ", ".join(path.parent.name for path in missing))
        return None
    return aggregate_visits(drafts.visits, drafts.fetches, drafts.playback, third_parties=third_parties)
