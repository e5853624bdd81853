"""One row of a run's ``trials``: what is known of a trial (docs/architecture.md, 2.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict, cast


class TrialRow(TypedDict, total=False):
    """The columns of ``store.schema.TRIALS``; what was not measured is None or, in runs of earlier versions, left out.

    A percentile that lies among failed requests is None too. Columns that end in ``_json`` are documents as text.
    """

    trial: str
    block: int
    cell: str
    treatment: str
    arm: str
    is_aa: bool
    position: int
    seed: int
    protocol: str
    path: str
    connection: str
    server: str
    client: str
    node: str | None
    """Which node of a cluster ran it; None on one machine. A block is of one node."""
    factors_json: str
    started_ns: int
    ended_ns: int
    wall_started_utc: str
    samples: int
    errors: int
    error_classes_json: str
    latency_p50_ns: int | None
    latency_p95_ns: int | None
    latency_p99_ns: int | None
    latency_mean_ns: float | None
    requests_per_s: float | None
    success_rate: float | None
    client_cpu_ns_per_request: float | None
    server_cpu_ns_per_request: float | None
    ttfb_p50_ns: int | None
    connect_p50_ns: int | None
    tls_p50_ns: int | None
    wait_p50_ns: int | None
    transfer_p50_ns: int | None
    bytes_in: int | None
    bytes_out: int | None
    dom_content_loaded_p50_ns: int | None
    fcp_p50_ns: int | None
    lcp_p50_ns: int | None
    speed_index_p50_ns: int | None
    live_latency_p50_ns: int | None
    rebuffer_mean_ns: float | None
    bitrate_mean_bits_per_s: float | None
    frames_dropped_rate: float | None
    valid: bool
    load_json: str | None
    link_json: str | None
    server_json: str | None
    probe_json: str | None
    machine_json: str | None
    checks_json: str | None
    error: str | None


class TrialValues(TypedDict, total=False):
    """A trial that counts: which it is, and beside that a column for each metric of `value_of`."""

    cell: str
    trial: str
    arm: str
    block: int
    requests: int | None
    succeeded: int | None


def value_of(row: TrialValues, metric: str) -> float | None:
    """A metric of a trial; None where it was not measured, infinite where it is worse than every other."""
    return cast(Mapping[str, float | None], row).get(metric)
