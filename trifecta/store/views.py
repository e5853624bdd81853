"""SQL views over a run directory, read in place by DuckDB.

Views: ``trials``, ``samples``, ``request_sums`` (`trifecta.store.request_sums`), ``checks``, ``verdicts``,
``intervals`` (what verdicts said after each block: `trifecta.store.intervals`), ``conformance`` (one row an
implementation, protocol and object), ``link`` (one row per trial, wire and direction; ``wire`` is null in a lab of two
hosts), ``link_packets`` (when the link's log was kept: of captured trials; ``wire`` as
in ``link``), ``resources``, ``spans`` (one row per hop of a cycle; runs without services have none), ``visits``,
``fetches`` and ``playback`` (of browsers; other runs have none), and what the last report worked out of them
(``derived.DERIVED``); ``packets``, ``frames``, ``messages`` and ``connections`` of captured trials, once `trifecta
trace` has dissected the run (``trifecta.store.trace_schema``).
Only committed trials are seen. With no trial yet, they are empty.
"""
# Statements are put together from constants of this package and quoted paths of one run's own folder.
# ruff: noqa: S608

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import duckdb

from trifecta.design import metrics, percentiles
from trifecta.design.metrics import METRICS
from trifecta.design.model import AA_SUFFIX
from trifecta.design.tables import Schema
from trifecta.store import damage, intervals, manifest, parquet, request_sums, results_manifest, schema
from trifecta.store import trace_schema as trace
from trifecta.store.configured_links import asked_select
from trifecta.store.derived import DERIVED
from trifecta.store.run import RunDirectory
from trifecta.store.visits import BROWSER_TABLES

# A phase that a protocol does not have is null. Over HTTP/3 there is no TCP connect, and ``tls_ns`` is the whole QUIC
# handshake, of which TLS is a part. ``latency_censored_ns`` is infinite for a failed request: a percentile over it is
# infinite when it lies among failures, instead of looking better the more requests fail.
SAMPLES_VIEW = """
SELECT *,
  coalesce(intended_ns, started_ns) AS origin_ns,
  error IS NULL AS success,
  CASE WHEN error IS NULL THEN done_ns - coalesce(intended_ns, started_ns) END AS latency_ns,
  CASE WHEN error IS NULL THEN (done_ns - coalesce(intended_ns, started_ns))::DOUBLE ELSE 'infinity'::DOUBLE END
    AS latency_censored_ns,
  first_byte_ns - coalesce(intended_ns, started_ns) AS ttfb_ns,
  tcp_connected_ns - connect_start_ns AS connect_ns,
  secured_ns - coalesce(tcp_connected_ns, connect_start_ns) AS tls_ns,
  first_byte_ns - request_sent_ns AS wait_ns,
  done_ns - first_byte_ns AS transfer_ns
FROM {source}
"""

# The way there begins with the call, so it holds the handshake of a new connection. Between hosts of a study's own
# clocks differ, and a difference of two of them is no time.
_SPANS_VIEW = """
SELECT *,
  CASE WHEN caller_host IS NOT DISTINCT FROM callee_host THEN arrived_ns - started_ns END AS there_ns,
  replied_ns - arrived_ns AS at_callee_ns,
  CASE WHEN caller_host IS NOT DISTINCT FROM callee_host THEN returned_ns - replied_ns END AS back_ns,
  (returned_ns - started_ns) - (replied_ns - arrived_ns) AS ways_ns,
  returned_ns - started_ns AS elapsed_ns
FROM {source}
"""

_LINK_COUNTS = (
    "wire_packets",
    "wire_bytes",
    "delivered",
    "lost",
    "queue_dropped",
    "corrupted",
    "duplicated",
    "reordered",
)
_LINK_INTEGERS = (*_LINK_COUNTS, "device_drops", "send_errors", "queue_peak_bytes")
_LINK_DOUBLES = ("loss_given", "rate_given_bits_per_s")
# By the plan; null where the study cannot be read. A schedule's share and a trace's mean are the link's to count.
_LINK_ASKED = """asked.delay_ns AS delay_asked_ns,
  CASE WHEN asked.scheduled THEN TRY_CAST(json_extract_string(d, '$.loss_asked') AS DOUBLE) ELSE asked.loss END
    AS loss_asked,
  CASE WHEN asked.traced THEN TRY_CAST(json_extract_string(d, '$.rate_asked_bits_per_s') AS DOUBLE) ELSE asked.rate END
    AS rate_asked_bits_per_s"""
_LINK_QUANTILES = {"delay_given_ns": ("p50", "p99", "max"), "lateness_ns": ("p50", "p90", "p99", "max")}
_SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
_LINK_PACKETS = "TRY_CAST(json_extract_string(d, '$.wire_packets') AS BIGINT)"

# A percentile that the requests of a trial do not hold is none, also of runs from before that was so.
_TAILS = {one.name: one.quantile for one in metrics.TRIALS if one.quantile is not None and 0.5 < one.quantile < 1}
_HELD = (
    "REPLACE ("
    + ", ".join(f"{percentiles.held_sql(name, quantile, 'samples')} AS {name}" for name, quantile in _TAILS.items())
    + ")"
)

# Both runs of the baseline are of one level of what is compared.
_LEVEL = f"regexp_replace(arm, '{AA_SUFFIX}$', '') AS level"

_CHECK_STRUCT = (
    '[{"check":"VARCHAR","scope":"VARCHAR","status":"VARCHAR","evidence":"VARCHAR",'
    '"value":"DOUBLE","limit":"DOUBLE","remedy":"VARCHAR"}]'
)


def connect(run_path: Path, *, threads: int | None = None, writes: Path | None = None) -> duckdb.DuckDBPyConnection:
    """Open the views of a run. The connection can read the run's folder and nothing else.

    ``writes``: an empty folder for what is exported, to which it may COPY and spill what memory does not hold.

    UserError where its files are not those that the run wrote (`manifest.check`), or ``trace/`` not what was dissected.
    """
    run = RunDirectory.open(run_path)
    folder = run.path
    manifest.check(folder)
    manifest.check_study(folder)
    results_manifest.check(
        folder, [f"trace/{name}.parquet" for name in trace.SCHEMAS], f"`trifecta trace {run_path}` writes it again"
    )
    damage.refuse_links(folder)
    if not run.manifest.exists():
        damage.refuse_foreign(folder)
    connection = duckdb.connect(":memory:")
    parquet.without_progress(connection)
    if threads:
        connection.execute(f"SET threads = {int(threads)}")
    names = run.trial_names()
    has_trials = bool(names)
    trials = _trials([folder / "trials" / f"{name}.parquet" for name in names])
    samples = _existing(folder / "samples", names)
    spans = _existing(folder / "spans", names)
    logs = _by_wire(folder / "link", names)
    resources = _existing(folder / "resources", names)
    # DuckDB asks for permission with the pattern first, then with the names it stands for.
    allowed = [str(folder), parquet.no_glob(str(folder))]
    if writes is not None:
        allowed.append(str(writes))
        connection.execute(f"SET temp_directory = {parquet.quoted(str(writes / '.spilled'))}")
    connection.execute(f"SET allowed_directories = [{', '.join(parquet.quoted(each) for each in allowed)}]")
    connection.execute("SET enable_external_access = false")
    connection.execute(f"CREATE VIEW trials AS SELECT * {_HELD}, {_LEVEL} FROM {trials}")
    connection.execute("CREATE VIEW samples AS " + SAMPLES_VIEW.format(source=_samples(samples)))
    connection.execute(f"CREATE VIEW request_sums AS {request_sums.SQL}")
    connection.execute("CREATE VIEW spans AS " + _SPANS_VIEW.format(source=_spans(spans)))
    for name, columns in BROWSER_TABLES.items():
        paths = _existing(folder / name, names)
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM {_widened(paths, columns)}")
    connection.execute(f"CREATE VIEW resources AS SELECT * FROM {_widened(resources, schema.RESOURCES)}")
    changed = manifest.results_changed(folder)  # nobody reads those: `conclude.results` puts others in their place
    connection.execute(f"CREATE VIEW checks AS {_checks_select(folder, changed)}")
    for name, columns in (("verdicts", schema.VERDICTS), ("conformance", schema.CONFORMANCE)):
        connection.execute(
            f"CREATE VIEW {name} AS SELECT * FROM {_run_table(folder / f'{name}.parquet', columns, changed)}"
        )
    connection.execute(f"CREATE VIEW intervals AS {intervals.select(folder)}")
    for name, columns in DERIVED.items():
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM {_run_table(folder / f'{name}.parquet', columns)}")
    connection.execute(f"CREATE VIEW link AS {_link_select(run.study_text)}")
    if logs and has_trials:
        connection.execute(
            "CREATE VIEW link_packets AS SELECT regexp_extract(parse_filename(filename, true), '^t[0-9]+') AS trial, "
            "nullif(regexp_extract(parse_filename(filename, true), '^t[0-9]+-(.*)$', 1), '') AS wire, "
            f"* EXCLUDE (filename) FROM read_parquet({parquet.sql_list(logs)}, filename = true)"
        )
    for name, columns in trace.SCHEMAS.items():
        dissected = folder / "trace" / f"{name}.parquet"
        connection.execute(
            f"CREATE VIEW {name} AS SELECT * FROM {_scan([dissected] if dissected.exists() else [], columns)}"
        )
    return connection


def _existing(folder: Path, names: list[str]) -> list[Path]:
    present = {entry.name for entry in folder.iterdir()} if folder.is_dir() else set()
    return [folder / f"{name}.parquet" for name in names if f"{name}.parquet" in present]


def _by_wire(folder: Path, names: list[str]) -> list[Path]:
    """``TRIAL.parquet`` or ``TRIAL-WIRE.parquet`` of these trials."""
    wanted = set(names)
    entries = sorted(folder.iterdir()) if folder.is_dir() else []
    return [each for each in entries if each.suffix == ".parquet" and each.stem.partition("-")[0] in wanted]


def _trials(paths: list[Path]) -> str:
    there = set(parquet.types_of(paths[0])) if paths else set(schema.TRIALS.names)
    source = _scan(paths, schema.TRIALS)
    if there != set(schema.TRIALS.names):  # of an earlier version, or with metrics of another package
        source = f"({schema.trials_select(parquet.sql_list(paths))})"
    missing = [f"NULL::DOUBLE AS {name}" for name in METRICS if name not in there | set(schema.TRIALS.names)]
    return f"(SELECT *, {', '.join(missing)} FROM {source})" if missing else source


def of_requests(*samples: Path) -> str:
    """The view ``samples`` of these trials' files, as a SELECT."""
    return SAMPLES_VIEW.format(source=_samples([*samples]))


def _samples(paths: list[Path]) -> str:
    if _is_of_this_version(paths, schema.SAMPLES):
        return _scan(paths, schema.SAMPLES)
    return f"({schema.samples_select(parquet.sql_list(paths))})"


def _spans(paths: list[Path]) -> str:
    """Hops of cycles; those of a lab, where there is one clock, have no hosts to name."""
    if paths and _is_of_this_version(paths, schema.SPANS_OF_HOSTS):
        return _scan(paths, schema.SPANS_OF_HOSTS)
    more = ", ".join(f"NULL::{kind} AS {name}" for name, kind in schema.SPANS_OF_HOSTS.columns[len(schema.SPANS) :])
    return f"(SELECT *, {more} FROM {_scan(paths, schema.SPANS)})"


def _widened(paths: list[Path], table_schema: Schema) -> str:
    """Files of trials; those of an earlier version get the columns that they lack, as nulls."""
    if _is_of_this_version(paths, table_schema):
        return _scan(paths, table_schema)
    return f"({schema.widened_select(table_schema, parquet.sql_list(paths))})"


def _is_of_this_version(paths: list[Path], table_schema: Schema) -> bool:
    """What a run of an earlier version lacks is found in its first file: a run only ever grows."""
    return not paths or set(table_schema.names) <= set(parquet.types_of(paths[0]))


def _scan(paths: list[Path], table_schema: Schema) -> str:
    return f"read_parquet({parquet.sql_list(paths)})" if paths else f"({schema.empty_select(table_schema)})"


def _run_table(path: Path, table_schema: Schema, left_out: Collection[str] = ()) -> str:
    """A file of the whole run; one of an earlier version gets the columns that it lacks, as nulls."""
    if not path.exists() or path.name in left_out:
        return _scan([], table_schema)
    if _is_of_this_version([path], table_schema):
        return _scan([path], table_schema)
    return f"({schema.widened_select(table_schema, parquet.sql_list([path]))})"


def _checks_select(folder: Path, left_out: Collection[str]) -> str:
    """Checks of trials come with their rows; those of cells and of the run from ``checks.parquet``."""
    checks = folder / "checks.parquet"
    checks_scan = _run_table(checks, schema.CHECKS, left_out)
    return f"""
SELECT unnest(from_json(checks_json, '{_CHECK_STRUCT}'), recursive := true) FROM trials WHERE checks_json IS NOT NULL
UNION ALL
SELECT * FROM {checks_scan} WHERE scope NOT IN (SELECT trial FROM trials)
"""


def _link_select(study_text: str) -> str:
    columns = [f"TRY_CAST(json_extract_string(d, '$.{name}') AS BIGINT) AS {name}" for name in _LINK_INTEGERS]
    columns += [f"TRY_CAST(json_extract_string(d, '$.{name}') AS DOUBLE) AS {name}" for name in _LINK_DOUBLES]
    for name, quantiles in _LINK_QUANTILES.items():
        stem = name.removesuffix("_ns")
        columns += [
            percentiles.held_sql(
                f"TRY_CAST(json_extract_string(d, '$.{name}.{quantile}') AS BIGINT)", _SHARES[quantile], _LINK_PACKETS
            )
            + f" AS {stem}_{quantile}_ns"
            for quantile in quantiles
        ]
    return f"""
SELECT trial, cell, lines.path, arm, block, lines.wire, lines.direction, {", ".join(columns)},
  {_LINK_ASKED},
  TRY_CAST(json_extract_string(link, '$.realtime') AS BOOLEAN) AS realtime,
  TRY_CAST(json_extract_string(link, '$.cpu_user_ns') AS BIGINT)
    + TRY_CAST(json_extract_string(link, '$.cpu_system_ns') AS BIGINT) AS cpu_ns,
  TRY_CAST(json_extract_string(link, '$.wall_ns') AS BIGINT) AS wall_ns
FROM (
  SELECT *, json_extract(link, '$.' || direction) AS d
  FROM (
    SELECT trial, cell, path, arm, block, NULL AS wire, link_json AS link FROM trials
    WHERE link_json IS NOT NULL AND json_extract(link_json, '$.links') IS NULL
    UNION ALL
    SELECT trial, cell, path, arm, block, wire, json_extract(link_json, '$.links."' || wire || '"') AS link
    FROM (SELECT *, unnest(json_keys(link_json, '$.links')) AS wire FROM trials WHERE link_json IS NOT NULL)
  ), (VALUES ('a_to_b'), ('b_to_a')) AS directions(direction)
) AS lines LEFT JOIN ({asked_select(study_text)}) AS asked
  ON asked.path = lines.path AND asked.wire IS NOT DISTINCT FROM lines.wire AND asked.direction = lines.direction
"""
