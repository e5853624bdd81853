"""From the samples of a trial to its row and to what the checks look at.

Percentiles are over the requests after the warm-up, with failures censored: a failed request counts as one that took
for ever. A percentile that lies among failures is None, instead of looking better the more requests fail. The views in
``trifecta.store.views`` give the same numbers by SQL.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import duckdb
import numpy as np
from numpy.typing import NDArray

from trifecta.contract.trial import TrialRow
from trifecta.design import percentiles
from trifecta.design.errors import UserError
from trifecta.design.metrics import METRICS
from trifecta.store import parquet, schema, views

Numbers = NDArray[np.float64]
Column = NDArray[Any]
_TIMES = (
    "intended_ns", "started_ns", "connect_start_ns", "tcp_connected_ns", "secured_ns", "request_sent_ns",
    "first_byte_ns", "done_ns",
)  # fmt: skip
_OTHERS = (
    "warmup", "protocol", "tls_version", "cipher", "resumed", "zero_rtt", "status", "bytes_out", "bytes_in", "error",
)  # fmt: skip


@dataclass(frozen=True)
class Aggregate:
    """Columns of the row ``trials`` that come from the samples, and counts for the checks."""

    columns: TrialRow
    protocols: dict[str, int]
    tls_versions: dict[str, int]
    ciphers: dict[str, int]
    statuses: dict[str, int]
    bytes_in: dict[int, int]
    errors: dict[str, int]
    handshakes: dict[str, int]
    samples: int
    warmup_samples: int
    warmup_errors: dict[str, int]
    first_half_p50_ns: float | None
    second_half_p50_ns: float | None
    in_flight_when_due: float | None


def aggregate(samples_file: Path, lasted_ns: int = 0) -> Aggregate:
    """Read a samples file of one trial.

    ``lasted_ns``: for how long requests were made, and those that failed were waited for. One that is given up has no
    end of its own: a server that falls silent would have the rate of the time when it answered.
    """
    every = parquet.read_arrays(samples_file, [*_TIMES, *_OTHERS])
    measured = ~np.asarray(every["warmup"], dtype=np.bool_)
    measured_columns = {name: column[measured] for name, column in every.items()}
    success = ~_has_value(measured_columns["error"])
    base = measured_columns["started_ns"].min() if measured.any() else 0
    numbers = {name: _since(base, measured_columns[name]) for name in _TIMES}
    good_ones = {name: column[success] for name, column in measured_columns.items()}
    started, intended = numbers["started_ns"], numbers["intended_ns"]
    origin = np.where(np.isnan(intended), started, intended)
    done = numbers["done_ns"]
    latency = np.where(success, done - origin, np.inf)
    first_byte = numbers["first_byte_ns"]
    connect_start = numbers["connect_start_ns"]
    tcp_connected = numbers["tcp_connected_ns"]
    secured = numbers["secured_ns"]
    handshake_start = np.where(np.isnan(tcp_connected), connect_start, tcp_connected)
    good = latency[success]
    total = len(latency)
    window_ns = float(np.nanmax(done) - np.nanmin(started)) if success.any() else 0.0
    if success.any() and not success.all():
        window_ns = max(window_ns, float(lasted_ns))
    errors = _counts(measured_columns["error"])
    columns: dict[str, Any] = {
        "samples": total,
        "errors": int(total - success.sum()),
        "error_classes_json": json.dumps(errors, sort_keys=True),
        "latency_p50_ns": percentile(latency, 0.50),
        "latency_p95_ns": percentile(latency, 0.95),
        "latency_p99_ns": percentile(latency, 0.99),
        "latency_mean_ns": float(good.mean()) if total and success.all() else None,
        "requests_per_s": float(success.sum()) / window_ns * 1e9 if window_ns > 0 else 0.0 if total else None,
        "success_rate": float(success.mean()) if total else None,
        "ttfb_p50_ns": percentile((first_byte - origin)[success], 0.5),
        "connect_p50_ns": percentile((tcp_connected - connect_start)[success], 0.5),
        "tls_p50_ns": percentile((secured - handshake_start)[success], 0.5),
        "wait_p50_ns": percentile((first_byte - numbers["request_sent_ns"])[success], 0.5),
        "transfer_p50_ns": percentile((done - first_byte)[success], 0.5),
        "bytes_in": _sum(measured_columns["bytes_in"]),
        "bytes_out": _sum(measured_columns["bytes_out"]),
        **_of_packages(views.of_requests(samples_file)),
    }
    first, second = _halves(latency[success], origin[success])
    return Aggregate(
        columns=cast(TrialRow, columns),
        protocols=_counts(good_ones["protocol"]),
        tls_versions=_counts(measured_columns["tls_version"]),
        ciphers=_counts(measured_columns["cipher"]),
        statuses=_counts(measured_columns["status"]),
        bytes_in={int(size): count for size, count in _counts(good_ones["bytes_in"]).items()},
        errors=errors,
        handshakes=_handshakes(good_ones),
        samples=total,
        warmup_samples=len(measured) - total,
        warmup_errors=_counts(every["error"][~measured]),
        first_half_p50_ns=first,
        second_half_p50_ns=second,
        in_flight_when_due=_in_flight_when_due(every),
    )


def load() -> None:
    """Load the metrics of other packages: UserError where one cannot be worked out, before anything is run."""
    _of_packages(views.SAMPLES_VIEW.format(source=f"({schema.empty_select(schema.SAMPLES)})"))


def _of_packages(requests: str) -> dict[str, float | None]:
    """The metrics of other packages, over these requests; null where one is infinite, as a censored percentile is."""
    metrics: dict[str, float | None] = {}
    for name, metric in METRICS.items():
        if metric.sql:
            try:
                query = f"SELECT ({metric.sql})::DOUBLE AS value FROM ({requests}) WHERE NOT warmup"  # noqa: S608
                (row,) = parquet.select(query)
            except duckdb.Error as error:
                sentence = " ".join(str(error).split())
                raise UserError(f"metric {name!r} cannot be computed ({sentence}); report it to its author") from error
            value = row["value"]
            metrics[name] = value if value is not None and math.isfinite(value) else None
    return metrics


def _has_value(column: Column) -> NDArray[np.bool_]:
    """Where a column has a value."""
    return ~np.ma.getmaskarray(column)


def _since(base: int, column: Column) -> Numbers:
    """Times as floats since the first start, which keeps them exact; NaN for null."""
    since: Numbers = np.ma.filled((column - base).astype(np.float64), np.nan)
    return since


def _sum(column: Column) -> int:
    """Of the values that there are."""
    return int(np.ma.filled(column, 0).sum(dtype=np.int64))  # a masked sum of nothing is no number


def _handshakes(successful: Mapping[str, Column]) -> dict[str, int]:
    """Requests that opened a connection: in ``full`` handshakes, ``resumed`` ones, and those with ``early`` data."""
    opened = _has_value(successful["connect_start_ns"])
    resumed, early = (_sum(successful[name][opened]) for name in ("resumed", "zero_rtt"))
    counts = {"full": int(opened.sum()) - resumed, "resumed": resumed - early, "early": early}
    return {kind: count for kind, count in counts.items() if count > 0}


def percentile(values: Numbers, quantile: float) -> int | None:
    """A linearly interpolated percentile, as SQL's quantile_cont; None where too few hold it or it is infinite.

    Values that are not a number (a phase that did not happen) do not count.
    """
    present = values[~np.isnan(values)]
    if not percentiles.holds(quantile, present.size):
        return None
    ordered = np.sort(present)
    place = quantile * (ordered.size - 1)
    low, high = ordered[int(np.floor(place))], ordered[int(np.ceil(place))]
    if np.isinf(high):
        return None
    return int(np.rint(low + (high - low) * (place - np.floor(place))))


def cpu_per_request(cpu_ns: int | None, requests: int) -> float | None:
    """CPU time a request in ns; None when it is not known."""
    return cpu_ns / requests if cpu_ns is not None and requests else None


def error_summary(errors: Mapping[str, int]) -> str:
    """Error classes in words: ``timeout 3, reset 1``."""
    ranked = sorted(errors.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {count}" for name, count in ranked)


def _counts(column: Column) -> dict[str, int]:
    """How many requests have each value."""
    return {str(value): count for value, count in Counter(np.asarray(column[_has_value(column)]).tolist()).items()}


def _halves(latency: Numbers, started: Numbers) -> tuple[float | None, float | None]:
    """Median latency of the requests that started in the first and in the second half.

    By when they end, the slow ones are last, however steady a trial of a few requests per connection is.
    """
    if latency.size < 4:
        return None, None
    order = np.argsort(started, kind="stable")
    half = latency.size // 2
    return float(np.median(latency[order[:half]])), float(np.median(latency[order[half:]]))


def _in_flight_when_due(every: Mapping[str, Column]) -> float | None:
    """Of the hundredth of an open loop's requests that started latest: how many were in flight when they were due.

    The median. A request without an end of its own is not counted among those in flight.
    """
    due = _has_value(every["intended_ns"]) & ~np.asarray(every["warmup"], dtype=np.bool_)
    if not due.any():
        return None
    intended, started = (np.asarray(every[name][due], dtype=np.int64) for name in ("intended_ns", "started_ns"))
    latest = intended[np.argsort(started - intended)[-math.ceil(intended.size / 100) :]]
    ended = _has_value(every["done_ns"])
    starts, ends = (np.sort(np.asarray(every[name][ended], dtype=np.int64)) for name in ("started_ns", "done_ns"))
    return float(np.median(np.searchsorted(starts, latest, "left") - np.searchsorted(ends, latest, "right")))
