"""Schemas of the Parquet files in a run directory (docs/architecture.md, section 2.1)."""
# Statements are put together from constants of this module and from paths that the caller has quoted.
# ruff: noqa: S608

from __future__ import annotations

import pyarrow as pa


def make_schema(*fields: tuple[str, pa.DataType]) -> pa.Schema:
    """A schema of these columns: name and type."""
    return pa.schema(list(fields))


# One row a trial. A null means: not measured, or a phase that this protocol does not have, or a percentile that lies
# among failed requests (censored).
TRIALS = make_schema(
    ("trial", pa.string()),
    ("block", pa.int32()),
    ("cell", pa.string()),
    ("treatment", pa.string()),
    ("arm", pa.string()),
    ("is_aa", pa.bool_()),
    ("position", pa.int32()),
    ("seed", pa.int64()),
    ("protocol", pa.string()),
    ("path", pa.string()),
    ("connection", pa.string()),
    ("server", pa.string()),
    ("client", pa.string()),
    ("factors_json", pa.string()),
    ("started_ns", pa.int64()),
    ("ended_ns", pa.int64()),
    ("wall_started_utc", pa.string()),
    ("samples", pa.int64()),
    ("errors", pa.int64()),
    ("error_classes_json", pa.string()),
    ("latency_p50_ns", pa.int64()),
    ("latency_p95_ns", pa.int64()),
    ("latency_p99_ns", pa.int64()),
    ("latency_mean_ns", pa.float64()),
    ("requests_per_s", pa.float64()),
    ("success_rate", pa.float64()),
    ("client_cpu_ns_per_request", pa.float64()),
    ("server_cpu_ns_per_request", pa.float64()),
    ("ttfb_p50_ns", pa.int64()),
    ("connect_p50_ns", pa.int64()),
    ("tls_p50_ns", pa.int64()),
    ("wait_p50_ns", pa.int64()),
    ("transfer_p50_ns", pa.int64()),
    ("bytes_in", pa.int64()),
    ("bytes_out", pa.int64()),
    ("dom_content_loaded_p50_ns", pa.int64()),
    ("fcp_p50_ns", pa.int64()),
    ("lcp_p50_ns", pa.int64()),
    ("speed_index_p50_ns", pa.int64()),
    ("live_latency_p50_ns", pa.int64()),
    ("rebuffer_mean_ns", pa.float64()),
    ("bitrate_mean_bits_per_s", pa.float64()),
    ("frames_dropped_rate", pa.float64()),
    ("valid", pa.bool_()),
    ("load_json", pa.string()),
    ("link_json", pa.string()),
    ("server_json", pa.string()),
    ("probe_json", pa.string()),
    ("machine_json", pa.string()),
    ("checks_json", pa.string()),
    ("error", pa.string()),
)

# One row a request, written by the engine (engine/crates/record/src/schema.rs). Types as the views promise them.
SAMPLES = make_schema(
    ("trial", pa.string()),
    ("worker", pa.uint16()),
    ("connection", pa.uint32()),
    ("client", pa.uint32()),
    ("stream", pa.uint64()),
    ("request", pa.uint64()),
    ("warmup", pa.bool_()),
    ("intended_ns", pa.int64()),
    ("started_ns", pa.int64()),
    ("connect_start_ns", pa.int64()),
    ("tcp_connected_ns", pa.int64()),
    ("secured_ns", pa.int64()),
    ("request_sent_ns", pa.int64()),
    ("first_byte_ns", pa.int64()),
    ("done_ns", pa.int64()),
    ("protocol", pa.string()),
    ("tls_version", pa.string()),
    ("cipher", pa.string()),
    ("resumed", pa.bool_()),
    ("zero_rtt", pa.bool_()),
    ("status", pa.uint16()),
    ("bytes_out", pa.uint64()),
    ("bytes_in", pa.uint64()),
    ("header_bytes_in", pa.uint64()),
    ("error", pa.string()),
)

# One row a hop of a cycle, written by the engine (engine/crates/record/src/spans.rs): a call of one service to another.
# ``ordinal`` counts the calls of a cycle in order, 0 is that of the client. A null: it did not happen, or is not known.
SPANS = make_schema(
    ("trial", pa.string()),
    ("request", pa.uint64()),
    ("connection", pa.uint32()),
    ("client", pa.uint32()),
    ("warmup", pa.bool_()),
    ("ordinal", pa.uint16()),
    ("depth", pa.uint8()),
    ("caller", pa.string()),
    ("callee", pa.string()),
    ("method", pa.string()),
    ("path", pa.string()),
    ("started_ns", pa.int64()),
    ("secured_ns", pa.int64()),
    ("arrived_ns", pa.int64()),
    ("replied_ns", pa.int64()),
    ("returned_ns", pa.int64()),
    ("status", pa.uint16()),
    ("error", pa.string()),
)

# One row a reading of a process or a host (docs/resources.md). Runs of earlier versions end with ``rss_bytes``.
RESOURCES = make_schema(
    ("trial", pa.string()),
    ("time_ns", pa.int64()),
    ("process", pa.string()),
    ("cpu_ns", pa.int64()),
    ("rss_bytes", pa.int64()),
    ("threads", pa.int32()),
    ("voluntary_switches", pa.int64()),
    ("involuntary_switches", pa.int64()),
    ("run_delay_ns", pa.int64()),
    ("cgroup_memory_bytes", pa.int64()),
    ("cgroup_cpu_ns", pa.int64()),
    ("received_bytes", pa.int64()),
    ("received_packets", pa.int64()),
    ("sent_bytes", pa.int64()),
    ("sent_packets", pa.int64()),
)

CHECKS = make_schema(
    ("check", pa.string()),
    ("scope", pa.string()),
    ("status", pa.string()),
    ("evidence", pa.string()),
    ("value", pa.float64()),
    ("limit", pa.float64()),
    ("remedy", pa.string()),
)

VERDICTS = make_schema(
    ("cell", pa.string()),
    ("metric", pa.string()),
    ("arm", pa.string()),
    ("reference", pa.string()),
    ("verdict", pa.string()),
    ("ratio", pa.float64()),
    ("low", pa.float64()),
    ("high", pa.float64()),
    ("family_low", pa.float64()),
    ("family_high", pa.float64()),
    ("likely", pa.string()),
    ("blocks", pa.int32()),
    ("margin", pa.float64()),
    ("noise_floor", pa.float64()),
    ("weather_floor", pa.float64()),
    ("e_value", pa.float64()),
    ("blocks_needed", pa.int32()),
    ("blocks_needed_low", pa.int32()),
    ("blocks_needed_high", pa.int32()),
    ("mean_ratio", pa.float64()),
    ("mean_low", pa.float64()),
    ("mean_high", pa.float64()),
    ("modes", pa.string()),
    ("fixed_ratio", pa.float64()),
    ("fixed_low", pa.float64()),
    ("fixed_high", pa.float64()),
    ("fixed_p", pa.float64()),
    ("invalid_trials", pa.int32()),
    ("reason", pa.string()),
)

# One row an implementation, protocol and object of the conformance probe (design/conformance.py).
CONFORMANCE = make_schema(
    ("depth", pa.string()),
    ("role", pa.string()),
    ("name", pa.string()),
    ("version", pa.string()),
    ("peer", pa.string()),
    ("proxy", pa.bool_()),
    ("protocol", pa.string()),
    ("object", pa.string()),
    ("label", pa.string()),
    ("method", pa.string()),
    ("octets", pa.int64()),
    ("path", pa.string()),
    ("outcome", pa.string()),
    ("error", pa.string()),
    ("reason", pa.string()),
    ("duration_ns", pa.int64()),
    ("evidence", pa.string()),
    ("capture", pa.string()),
)

_DUCKDB_TYPES: dict[pa.DataType, str] = {
    pa.string(): "VARCHAR",
    pa.bool_(): "BOOLEAN",
    pa.uint8(): "UTINYINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.uint16(): "USMALLINT",
    pa.uint32(): "UINTEGER",
    pa.uint64(): "UBIGINT",
    pa.float64(): "DOUBLE",
}


# Columns that runs of earlier versions lack, with what is true of them.
_ADDED: dict[str, str | None] = {
    "client": "load",
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
    "samples": frozenset({"client"}),
    "resources": frozenset(RESOURCES.names[5:]),
}
"""By table the columns that a run of an earlier version need not have."""


def of_this_version(trials: pa.Table) -> pa.Table:
    """Rows of ``trials`` that this or an earlier version wrote, with all columns of this one."""
    for name, value in _ADDED.items():
        if name not in trials.column_names:
            field = TRIALS.field(name)
            trials = trials.append_column(field, pa.array([value] * trials.num_rows, field.type))
    return trials.select(TRIALS.names).cast(TRIALS)


def trials_select(source: str) -> str:
    """A SELECT over files of ``trials`` of this or an earlier version; ``source`` is their list in SQL."""
    replaced = ", ".join(
        f"coalesce({name}, '{value}') AS {name}" for name, value in _ADDED.items() if value is not None
    )
    every = f"{empty_select(TRIALS)} UNION ALL BY NAME SELECT * FROM read_parquet({source}, union_by_name = true)"
    return f"SELECT * REPLACE ({replaced}) FROM ({every})"


def samples_select(source: str) -> str:
    """As ``trials_select`` for files of ``samples``: before the column ``client`` it was not known who asked."""
    return _widened(SAMPLES, source)


def resources_select(source: str) -> str:
    """As ``trials_select`` for files of ``resources``: what was not read then is null."""
    return _widened(RESOURCES, source)


def widened_select(schema: pa.Schema, source: str) -> str:
    """A SELECT over files of an earlier version whose missing columns are null."""
    return _widened(schema, source)


def _widened(schema: pa.Schema, source: str) -> str:
    return f"{empty_select(schema)} UNION ALL BY NAME SELECT * FROM read_parquet({source}, union_by_name = true)"


def empty_select(schema: pa.Schema) -> str:
    """A SELECT without rows whose columns have the names and types of ``schema``."""
    columns = ", ".join(f'NULL::{_DUCKDB_TYPES[field.type]} AS "{field.name}"' for field in schema)
    return f"SELECT {columns} WHERE false"
