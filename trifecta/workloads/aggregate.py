"""From the samples of a trial to its row and to what the checks look at.

Percentiles are over the requests after the warm-up, with failures censored: a failed request counts as one that took
for ever. A percentile that lies among failures is None, instead of looking better the more requests fail. The views in
``trifecta.store.views`` give the same numbers by SQL.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from trifecta.contract.trial import TrialRow
from trifecta.design import percentiles

Numbers = NDArray[np.float64]
_WORDS = ("protocol", "tls_version", "cipher", "error")
_FLAGS = ("resumed", "zero_rtt")
_NUMBERS = (
    "warmup", "intended_ns", "started_ns", "connect_start_ns", "tcp_connected_ns", "secured_ns", "request_sent_ns",
    "first_byte_ns", "done_ns", "status", "bytes_out", "bytes_in",
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
    first_half_p50_ns: float | None
    second_half_p50_ns: float | None


def aggregate(samples_file: Path) -> Aggregate:
    """Read a samples file of one trial."""
    table = pq.ParquetFile(samples_file, read_dictionary=list(_WORDS)).read(columns=[*_NUMBERS, *_WORDS, *_FLAGS])
    measured = table.filter(pc.invert(table["warmup"]))
    error_column = measured["error"]
    success: NDArray[np.bool_] = np.asarray(error_column.is_null())
    base = int(pc.min(measured["started_ns"]).as_py() or 0)

    def numbers(name: str) -> Numbers:
        """A column of times as floats since the first start, which keeps them exact; NaN for null."""
        column: Numbers = pc.subtract(measured[name], base).cast(pa.float64()).to_numpy()
        return column

    started, intended = numbers("started_ns"), numbers("intended_ns")
    origin = np.where(np.isnan(intended), started, intended)
    done = numbers("done_ns")
    latency = np.where(success, done - origin, np.inf)
    first_byte = numbers("first_byte_ns")
    connect_start = numbers("connect_start_ns")
    tcp_connected = numbers("tcp_connected_ns")
    secured = numbers("secured_ns")
    handshake_start = np.where(np.isnan(tcp_connected), connect_start, tcp_connected)
    good = latency[success]
    total = len(latency)
    window_ns = float(np.nanmax(done) - np.nanmin(started)) if success.any() else 0.0
    errors = _counts(error_column)
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
        "wait_p50_ns": percentile((first_byte - numbers("request_sent_ns"))[success], 0.5),
        "transfer_p50_ns": percentile((done - first_byte)[success], 0.5),
        "bytes_in": int(pc.sum(measured["bytes_in"]).as_py() or 0),
        "bytes_out": int(pc.sum(measured["bytes_out"]).as_py() or 0),
    }
    first, second = _halves(latency[success], done[success])
    return Aggregate(
        columns=cast(TrialRow, columns),
        protocols=_counts(measured.filter(pa.array(success))["protocol"]),
        tls_versions=_counts(measured["tls_version"]),
        ciphers=_counts(measured["cipher"]),
        statuses=_counts(measured["status"]),
        bytes_in={int(size): count for size, count in _counts(measured.filter(pa.array(success))["bytes_in"]).items()},
        errors=errors,
        handshakes=_handshakes(measured.filter(pa.array(success))),
        samples=total,
        warmup_samples=table.num_rows - total,
        first_half_p50_ns=first,
        second_half_p50_ns=second,
    )


def _handshakes(successful: pa.Table) -> dict[str, int]:
    """Requests that opened a connection: in ``full`` handshakes, ``resumed`` ones, and those with ``early`` data."""
    opened = successful.filter(pc.is_valid(successful["connect_start_ns"]))
    resumed, early = (int(pc.sum(opened[name]).as_py() or 0) for name in _FLAGS)
    counts = {"full": opened.num_rows - resumed, "resumed": resumed - early, "early": early}
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


def _counts(column: Any) -> dict[str, int]:
    counted = pc.value_counts(column).to_pylist()
    return {str(entry["values"]): int(entry["counts"]) for entry in counted if entry["values"] is not None}


def _halves(latency: Numbers, done: Numbers) -> tuple[float | None, float | None]:
    """Median latency of the requests that ended in the first and in the second half."""
    if latency.size < 4:
        return None, None
    order = np.argsort(done, kind="stable")
    half = latency.size // 2
    return float(np.median(latency[order[:half]])), float(np.median(latency[order[half:]]))
