"""Schemas of the Parquet files in a run directory (docs/architecture.md, section 2.1)."""
# Statements are put together from constants of this module and from paths that the caller has quoted.
# ruff: noqa: S608

from __future__ import annotations

from trifecta.contract.trial import TrialRow
from trifecta.design.metrics import METRICS
from trifecta.design.tables import BOOL, DOUBLE, INT32, INT64, TEXT, UINT8, UINT16, UINT32, UINT64, Schema, make_schema

# One row a trial. A null means: not measured, or a phase that this protocol does not have, or a percentile that lies
# among failed requests (censored).
TRIALS = make_schema(
    ("trial", TEXT),
    ("block", INT32),
    ("cell", TEXT),
    ("treatment", TEXT),
    ("arm", TEXT),
    ("is_aa", BOOL),
    ("position", INT32),
    ("seed", INT64),
    ("protocol", TEXT),
    ("path", TEXT),
    ("connection", TEXT),
    ("server", TEXT),
    ("client", TEXT),
    ("node", TEXT),
    ("factors_json", TEXT),
    ("started_ns", INT64),
    ("ended_ns", INT64),
    ("wall_started_utc", TEXT),
    ("samples", INT64),
    ("errors", INT64),
    ("error_classes_json", TEXT),
    ("latency_p50_ns", INT64),
    ("latency_p95_ns", INT64),
    ("latency_p99_ns", INT64),
    ("latency_mean_ns", DOUBLE),
    ("requests_per_s", DOUBLE),
    ("success_rate", DOUBLE),
    ("client_cpu_ns_per_request", DOUBLE),
    ("server_cpu_ns_per_request", DOUBLE),
    ("ttfb_p50_ns", INT64),
    ("connect_p50_ns", INT64),
    ("tls_p50_ns", INT64),
    ("wait_p50_ns", INT64),
    ("transfer_p50_ns", INT64),
    ("bytes_in", INT64),
    ("bytes_out", INT64),
    ("dom_content_loaded_p50_ns", INT64),
    ("fcp_p50_ns", INT64),
    ("lcp_p50_ns", INT64),
    ("speed_index_p50_ns", INT64),
    ("live_latency_p50_ns", INT64),
    ("rebuffer_mean_ns", DOUBLE),
    ("bitrate_mean_bits_per_s", DOUBLE),
    ("frames_dropped_rate", DOUBLE),
    ("valid", BOOL),
    ("load_json", TEXT),
    ("link_json", TEXT),
    ("server_json", TEXT),
    ("probe_json", TEXT),
    ("machine_json", TEXT),
    ("checks_json", TEXT),
    ("error", TEXT),
)


def trials_of(row: TrialRow) -> Schema:
    """TRIALS, and a column for each metric of another package that the row has."""
    more = [(name, DOUBLE) for name in row if name not in TRIALS.types and name in METRICS]
    return Schema((*TRIALS.columns, *more)) if more else TRIALS


# One row a request, written by the engine (engine/crates/record/src/schema.rs). Types as the views promise them.
SAMPLES = make_schema(
    ("trial", TEXT),
    ("worker", UINT16),
    ("connection", UINT32),
    ("client", UINT32),
    ("stream", UINT64),
    ("request", UINT64),
    ("warmup", BOOL),
    ("intended_ns", INT64),
    ("started_ns", INT64),
    ("connect_start_ns", INT64),
    ("tcp_connected_ns", INT64),
    ("secured_ns", INT64),
    ("request_sent_ns", INT64),
    ("first_byte_ns", INT64),
    ("done_ns", INT64),
    ("protocol", TEXT),
    ("tls_version", TEXT),
    ("cipher", TEXT),
    ("resumed", BOOL),
    ("zero_rtt", BOOL),
    ("status", UINT16),
    ("bytes_out", UINT64),
    ("bytes_in", UINT64),
    ("header_bytes_in", UINT64),
    ("error", TEXT),
)

# One row a hop of a cycle, written by the engine (engine/crates/record/src/spans.rs): a call of one service to another.
# ``ordinal`` counts the calls of a cycle in order, 0 is that of the client. A null: it did not happen, or is not known.
SPANS = make_schema(
    ("trial", TEXT),
    ("request", UINT64),
    ("connection", UINT32),
    ("client", UINT32),
    ("warmup", BOOL),
    ("ordinal", UINT16),
    ("depth", UINT8),
    ("caller", TEXT),
    ("callee", TEXT),
    ("method", TEXT),
    ("path", TEXT),
    ("started_ns", INT64),
    ("secured_ns", INT64),
    ("arrived_ns", INT64),
    ("replied_ns", INT64),
    ("returned_ns", INT64),
    ("status", UINT16),
    ("error", TEXT),
)

# Of a trial between hosts: whose clock the times of the caller are of, and whose those of the callee.
SPANS_OF_HOSTS = make_schema(*SPANS.columns, ("caller_host", TEXT), ("callee_host", TEXT))

# One row a reading of a process or a host (docs/resources.md). Runs of earlier versions end with ``rss_bytes``.
RESOURCES = make_schema(
    ("trial", TEXT),
    ("time_ns", INT64),
    ("process", TEXT),
    ("cpu_ns", INT64),
    ("rss_bytes", INT64),
    ("threads", INT32),
    ("voluntary_switches", INT64),
    ("involuntary_switches", INT64),
    ("run_delay_ns", INT64),
    ("cgroup_memory_bytes", INT64),
    ("cgroup_cpu_ns", INT64),
    ("received_bytes", INT64),
    ("received_packets", INT64),
    ("sent_bytes", INT64),
    ("sent_packets", INT64),
)

CHECKS = make_schema(
    ("check", TEXT),
    ("scope", TEXT),
    ("status", TEXT),
    ("evidence", TEXT),
    ("value", DOUBLE),
    ("limit", DOUBLE),
    ("remedy", TEXT),
)

VERDICTS = make_schema(
    ("cell", TEXT),
    ("metric", TEXT),
    ("arm", TEXT),
    ("reference", TEXT),
    ("verdict", TEXT),
    ("ratio", DOUBLE),
    ("low", DOUBLE),
    ("high", DOUBLE),
    ("family_low", DOUBLE),
    ("family_high", DOUBLE),
    ("likely", TEXT),
    ("blocks", INT32),
    ("margin", DOUBLE),
    ("noise_floor", DOUBLE),
    ("weather_floor", DOUBLE),
    ("e_value", DOUBLE),
    ("blocks_needed", INT32),
    ("blocks_needed_low", INT32),
    ("blocks_needed_high", INT32),
    ("mean_ratio", DOUBLE),
    ("mean_low", DOUBLE),
    ("mean_high", DOUBLE),
    ("modes", TEXT),
    ("fixed_ratio", DOUBLE),
    ("fixed_low", DOUBLE),
    ("fixed_high", DOUBLE),
    ("fixed_p", DOUBLE),
    ("invalid_trials", INT32),
    ("reason", TEXT),
    ("nodes", INT32),
    ("node_sd", DOUBLE),
    ("node_sd_low", DOUBLE),
    ("node_sd_high", DOUBLE),
    ("left_out_nodes_json", TEXT),
)

# One row an implementation, protocol and object of the conformance probe (design/conformance.py).
CONFORMANCE = make_schema(
    ("depth", TEXT),
    ("role", TEXT),
    ("name", TEXT),
    ("version", TEXT),
    ("peer", TEXT),
    ("proxy", BOOL),
    ("protocol", TEXT),
    ("object", TEXT),
    ("label", TEXT),
    ("method", TEXT),
    ("octets", INT64),
    ("path", TEXT),
    ("outcome", TEXT),
    ("error", TEXT),
    ("reason", TEXT),
    ("duration_ns", INT64),
    ("evidence", TEXT),
    ("capture", TEXT),
)

# Columns that runs of earlier versions lack, with what is true of them.
_ADDED: dict[str, str | None] = {
    "client": "load",
    "node": None,
    "dom_content_loaded_p50_ns": None,
    "fcp_p50_ns": None,
    "lcp_p50_ns": None,
    "speed_index_p50_ns": None,
    "live_latency_p50_ns": None,
    "rebuffer_mean_ns": None,
    "bitrate_mean_bits_per_s": None,
    "frames_dropped_rate": None,
}


YOUNGER: dict[str, frozenset[str]] = {
    "trials": frozenset(_ADDED),
    "verdicts": frozenset({"nodes", "node_sd", "node_sd_low", "node_sd_high", "left_out_nodes_json"}),
    "samples": frozenset({"client"}),
    "resources": frozenset(RESOURCES.names[5:]),
    "visits": frozenset({"third_party_requests", "third_party_connections"}),
    "fetches": frozenset({"third_party"}),
}
"""By table the columns that a run of an earlier version need not have."""


def trials_select(source: str) -> str:
    """A SELECT over files of ``trials`` of this or an earlier version; ``source`` is their list in SQL.

    It has the columns of this version, and the order of the files and of their rows.
    """
    replaced = ", ".join(
        f"coalesce({name}, '{value}') AS {name}" for name, value in _ADDED.items() if value is not None
    )
    every = f"{empty_select(TRIALS)} UNION ALL BY NAME SELECT * FROM read_parquet({source}, union_by_name = true)"
    return f"SELECT * REPLACE ({replaced}) FROM ({every})"


def samples_select(source: str) -> str:
    """As ``trials_select`` for files of ``samples``: before the column ``client`` it was not known who asked."""
    return _widened(SAMPLES, source)


def widened_select(schema: Schema, source: str) -> str:
    """A SELECT over files of an earlier version whose missing columns are null."""
    return _widened(schema, source)


def _widened(schema: Schema, source: str) -> str:
    return f"{empty_select(schema)} UNION ALL BY NAME SELECT * FROM read_parquet({source}, union_by_name = true)"


def empty_select(schema: Schema) -> str:
    """A SELECT without rows whose columns have the names and types of ``schema``."""
    columns = ", ".join(f'NULL::{kind} AS "{name}"' for name, kind in schema.columns)
    return f"SELECT {columns} WHERE false"
