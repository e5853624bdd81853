"""The SQL behind every number of the report, one query a table or figure.

Each query reads only the views that ``trifecta sql RUN`` offers (trials, samples, checks, verdicts), so that the text
shown beside a table gives the table's numbers again. ``{and_cell}`` becomes a filter on one cell, or nothing.
Written without ``$``, ``!`` and double quotes: the text can be pasted into a shell between double quotes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from trifecta.design import naming, percentiles
from trifecta.design.metrics import METRICS

_BY_ARM = re.compile(r"\{by_arm:([\w,]+)\}")


@dataclass(frozen=True)
class Query:
    """A named query and the columns that distinguish its rows."""

    name: str
    sql: str
    key: tuple[str, ...]

    def text(self, cell: str | None = None) -> str:
        """The SQL, for one cell or for all of them."""
        condition = "" if cell is None else "\n  AND t.cell = '" + cell.replace("'", "''") + "'"
        text = _BY_ARM.sub(lambda found: naming.columns_sql(found[1].split(",")), self.sql)
        return text.replace("{and_cell}", condition).strip()


def by_arm(*columns: str) -> str:
    """Columns of each arm side by side, filled in when the arms of the run are known."""
    return "{by_arm:" + ",".join(columns) + "}"


TOTALS = Query(
    "totals",
    """
SELECT 'run' AS scope, count(*) AS trials, count(*) FILTER (WHERE t.valid) AS valid_trials,
       count(*) FILTER (WHERE NOT t.valid) AS excluded_trials, sum(t.samples) AS samples, sum(t.errors) AS errors,
       max(t.block) + 1 AS blocks, count(DISTINCT t.cell) AS cells,
       CASE WHEN count(DISTINCT coalesce(t.node, '')) = 1 THEN max(t.ended_ns) - min(t.started_ns) END AS elapsed_ns,
       sum(t.ended_ns - t.started_ns) AS in_trials_ns
FROM trials AS t
""",
    ("scope",),
)

VERDICTS = Query(
    "verdicts",
    """
SELECT t.cell, t.arm, t.reference,
       CASE t.reference WHEN 'h1' THEN 'HTTP/1.1' WHEN 'h2' THEN 'HTTP/2' WHEN 'h3' THEN 'HTTP/3' ELSE t.reference END
           AS against,
       t.metric, t.verdict, t.likely, t.ratio, t.low, t.high, t.family_low, t.family_high,
       CASE WHEN t.inverted THEN 1 / t.ratio ELSE t.ratio END AS factor,
       CASE WHEN t.inverted THEN 1 / t.high ELSE t.low END AS factor_low,
       CASE WHEN t.inverted THEN 1 / t.low ELSE t.high END AS factor_high,
       t.blocks, t.blocks_needed, t.blocks_needed_low, t.blocks_needed_high, t.margin, t.noise_floor,
       t.weather_floor, t.e_value,
       t.mean_ratio, t.mean_low, t.mean_high, t.modes, t.invalid_trials,
       t.fixed_ratio, t.fixed_low, t.fixed_high, t.fixed_p, t.reason,
       t.nodes, t.node_sd, t.node_sd_low, t.node_sd_high, t.left_out_nodes_json
FROM (SELECT *, CASE WHEN metric IN ({more}) THEN coalesce(likely, verdict) = 'slower'
                     ELSE coalesce(likely, verdict) = 'faster' END AS inverted
      FROM verdicts) AS t
WHERE true{and_cell}
ORDER BY t.cell, t.metric, t.arm, t.reference
""".replace("{more}", ", ".join(f"'{one.name}'" for one in METRICS.values() if one.better == "more")),
    ("cell", "metric", "arm", "reference"),
)

PERCENTILES_SHARES = (0.5, 0.9, 0.95, 0.99, 0.999, 1.0)
# A failed request never finished: it counts as infinitely long, so that failing fast cannot look fast.
PERCENTILES = Query(
    "percentiles",
    """
SELECT cell, arm, succeeded, failed, q[1] AS p50_ns,
       {tails},
       q[6] AS max_ns
FROM (SELECT t.cell, t.arm, count(*) FILTER (WHERE s.success) AS succeeded,
             count(*) FILTER (WHERE NOT s.success) AS failed,
             quantile_disc(s.latency_censored_ns, [{shares}]) AS q
      FROM samples AS s JOIN trials AS t USING (trial)
      WHERE t.valid AND NOT t.is_aa AND NOT s.warmup{and_cell}
      GROUP BY t.cell, t.arm)
ORDER BY cell, arm
""".replace("{shares}", ", ".join(f"{share}" for share in PERCENTILES_SHARES)),
    ("cell", "arm"),
)

_TAILS = {"p90_ns": ("q[2]", 0.9), "p95_ns": ("q[3]", 0.95), "p99_ns": ("q[4]", 0.99), "p999_ns": ("q[5]", 0.999)}
PERCENTILES = replace(
    PERCENTILES,
    sql=PERCENTILES.sql.replace(
        "{tails}",
        ",\n       ".join(
            f"{percentiles.held_sql(value, share, 'succeeded + failed')} AS {name}"
            for name, (value, share) in _TAILS.items()
        ),
    ),
)

ECDF_SHARES: tuple[float, ...] = (*(i / 100 for i in range(100)), 0.995, 0.999, 1.0)
ECDF = Query(
    "ecdf",
    """
SELECT t.cell, t.arm, quantile_disc(s.latency_censored_ns, [{shares}]) AS latency_ns
FROM samples AS s JOIN trials AS t USING (trial)
WHERE t.valid AND NOT t.is_aa AND NOT s.warmup{and_cell}
GROUP BY t.cell, t.arm
ORDER BY t.cell, t.arm
""".replace("{shares}", ", ".join(f"{share:g}" for share in ECDF_SHARES)),
    ("cell", "arm"),
)

# Quantiles read every sample, so a report asks for those of PERCENTILES and ECDF at once. A table of this name has
# them; each query then has from it the rows that its own text gives.
CURVES = Query(
    "latency_curves",
    """
SELECT t.cell, t.arm, count(*) FILTER (WHERE s.success) AS succeeded, count(*) FILTER (WHERE NOT s.success) AS failed,
       quantile_disc(s.latency_censored_ns, [{shares}]) AS latency_ns
FROM samples AS s JOIN trials AS t USING (trial)
WHERE t.valid AND NOT t.is_aa AND NOT s.warmup{and_cell}
GROUP BY t.cell, t.arm
""".replace("{shares}", ", ".join(f"{share:g}" for share in ECDF_SHARES)),
    ("cell", "arm"),
)
_OF_CURVES = """FROM (SELECT cell, arm, succeeded, failed, [{places}] AS q FROM latency_curves)
ORDER BY cell, arm
""".replace("{places}", ", ".join(f"latency_ns[{ECDF_SHARES.index(share) + 1}]" for share in PERCENTILES_SHARES))
FROM_CURVES = {
    PERCENTILES.name: replace(PERCENTILES, sql=PERCENTILES.sql.partition("FROM (")[0] + _OF_CURVES),
    ECDF.name: replace(ECDF, sql="SELECT cell, arm, latency_ns FROM latency_curves ORDER BY cell, arm"),
}
"""By name PERCENTILES and ECDF as they are asked of the table CURVES."""

# Means, because the means of the phases of a request add up to the mean of the request; medians do not.
PHASES = Query(
    "phases",
    """
SELECT t.cell, t.arm, sum(s.requests)::BIGINT AS requests, sum(s.late_ns) / sum(s.scheduled) AS late_start_ns,
       sum(s.tcp_connect_ns) / sum(s.requests) AS tcp_connect_ns,
       sum(s.tls_ns) / sum(s.requests) AS tls_ns,
       sum(s.quic_handshake_ns) / sum(s.requests) AS quic_handshake_ns,
       sum(s.send_ns) / sum(s.sent) AS send_ns,
       sum(s.wait_ns) / sum(s.sent) FILTER (WHERE s.answered) AS wait_ns,
       sum(s.transfer_ns) / sum(s.requests) FILTER (WHERE s.answered) AS transfer_ns,
       sum(s.total_ns) / sum(s.requests) AS total_ns
FROM request_sums AS s JOIN trials AS t USING (trial)
WHERE t.valid AND NOT t.is_aa AND NOT s.warmup AND s.success{and_cell}
GROUP BY t.cell, t.arm
ORDER BY t.cell, t.arm
""",
    ("cell", "arm"),
)

BUCKETS = 24
# Only the part of a trial that all trials of the cell have in common, in 24 equal buckets.
THROUGHPUT = Query(
    "throughput",
    """
WITH clock AS (
  SELECT t.trial, t.cell, t.arm, CAST(json_extract(t.load_json, 'started_ns') AS BIGINT) AS start_ns,
         CAST(json_extract(t.load_json, 'ended_ns') AS BIGINT) AS end_ns
  FROM trials AS t WHERE t.valid AND NOT t.is_aa{and_cell}),
bucket AS (
  SELECT cell, min(end_ns - start_ns) // 24 AS width_ns FROM clock GROUP BY cell),
arms AS (
  SELECT cell, arm, count(*) AS trials FROM clock GROUP BY cell, arm)
SELECT c.cell, c.arm, (s.done_ns - c.start_ns) // b.width_ns AS bucket, any_value(b.width_ns) AS width_ns,
       count(*) * 1e9 / any_value(b.width_ns) / any_value(a.trials) AS requests_per_s
FROM samples AS s JOIN clock AS c USING (trial) JOIN bucket AS b USING (cell) JOIN arms AS a USING (cell, arm)
WHERE s.success AND b.width_ns > 0 AND s.done_ns >= c.start_ns AND (s.done_ns - c.start_ns) // b.width_ns < 24
GROUP BY c.cell, c.arm, bucket
ORDER BY c.cell, c.arm, bucket
""",
    ("cell", "arm", "bucket"),
)

COST = Query(
    "cost",
    """
SELECT t.cell, t.arm, count(*) AS trials, median(t.requests_per_s) AS requests_per_s,
       sum(t.samples - t.errors) / sum(t.samples) AS success_rate,
       median(t.client_cpu_ns_per_request) AS client_cpu_ns,
       quantile_cont(t.client_cpu_ns_per_request, 0.25) AS client_low_ns,
       quantile_cont(t.client_cpu_ns_per_request, 0.75) AS client_high_ns,
       median(CAST(json_extract(t.load_json, 'start_cpu_ns') AS BIGINT)) AS client_start_ns,
       median(t.server_cpu_ns_per_request) AS server_cpu_ns,
       quantile_cont(t.server_cpu_ns_per_request, 0.25) AS server_low_ns,
       quantile_cont(t.server_cpu_ns_per_request, 0.75) AS server_high_ns,
       sum(CAST(json_extract(t.load_json, 'wire_bytes_in') AS BIGINT))
           / sum(CAST(json_extract(t.load_json, 'samples') AS BIGINT)) AS wire_in_per_request,
       sum(CAST(json_extract(t.load_json, 'wire_bytes_out') AS BIGINT))
           / sum(CAST(json_extract(t.load_json, 'samples') AS BIGINT)) AS wire_out_per_request
FROM trials AS t
WHERE t.valid AND NOT t.is_aa{and_cell}
GROUP BY t.cell, t.arm
ORDER BY t.cell, t.arm
""",
    ("cell", "arm"),
)

CHECK_MATRIX = Query(
    "check_matrix",
    """
SELECT t.check AS check_name, count(*) FILTER (WHERE t.status = 'pass') AS passed,
       count(*) FILTER (WHERE t.status = 'warn') AS warned, count(*) FILTER (WHERE t.status = 'fail') AS failed,
       count(*) FILTER (WHERE t.status = 'unknown') AS unknown,
       mode(t.remedy) FILTER (WHERE t.status = 'fail' AND t.remedy <> '') AS remedy
FROM checks AS t
GROUP BY t.check
ORDER BY failed DESC, warned DESC, unknown DESC, check_name
""",
    ("check_name",),
)

CHECK_FINDINGS = Query(
    "check_findings",
    """
SELECT t.check AS check_name, t.status, t.scope, coalesce(r.cell, t.scope) AS place, r.arm, t.evidence, t.remedy
FROM checks AS t LEFT JOIN trials AS r ON r.trial = t.scope
WHERE t.status IN ('fail', 'warn', 'unknown')
ORDER BY CASE t.status WHEN 'fail' THEN 0 WHEN 'warn' THEN 1 ELSE 2 END, check_name, t.scope
""",
    ("check_name", "scope", "evidence"),
)

# One row a check and cell; checks of the whole run have no cell.
CHECKS_BY_CELL = Query(
    "checks_by_cell",
    """
SELECT coalesce(r.cell, t.scope) AS cell, count(*) FILTER (WHERE t.status = 'pass') AS passed,
       count(*) FILTER (WHERE t.status = 'warn') AS warned, count(*) FILTER (WHERE t.status = 'fail') AS failed,
       count(*) FILTER (WHERE t.status = 'unknown') AS unknown,
       count(DISTINCT r.trial) FILTER (WHERE NOT r.valid) AS excluded
FROM checks AS t LEFT JOIN trials AS r ON r.trial = t.scope
GROUP BY 1
ORDER BY 1
""",
    ("cell",),
)

EXCLUDED = Query(
    "excluded",
    """
SELECT t.trial, t.block, t.cell, t.arm, t.error, string_agg(c.check || ': ' || c.evidence, '; ' ORDER BY c.check) AS why
FROM trials AS t LEFT JOIN checks AS c ON c.scope = t.trial AND c.status = 'fail'
WHERE NOT t.valid
GROUP BY t.trial, t.block, t.cell, t.arm, t.error
ORDER BY t.trial
""",
    ("trial",),
)

PATHS = Query(
    "paths",
    """
SELECT path, CASE direction WHEN 'a_to_b' THEN 'client to server' ELSE 'server to client' END AS direction,
       count(*) AS trials, sum(wire_packets) AS packets, max(delay_asked_ns) AS delay_asked_ns,
       median(delay_given_p50_ns) AS delay_p50_ns, median(delay_given_p99_ns) AS delay_p99_ns,
       max(loss_asked) AS loss_asked, sum(lost) / nullif(sum(wire_packets), 0) AS loss_given,
       sum(queue_dropped) AS queue_dropped, max(rate_asked_bits_per_s) AS rate_asked,
       median(rate_given_bits_per_s) AS rate_given, median(lateness_p99_ns) AS lateness_p99_ns,
       max(lateness_max_ns) AS lateness_max_ns, sum(device_drops) AS device_drops
FROM link
WHERE wire_packets IS NOT NULL
GROUP BY path, direction
ORDER BY path, direction
""",
    ("path", "direction"),
)

# Trials between two probes of a path carry the same probe: each counts once.
PROBES = Query(
    "probes",
    """
SELECT path, count(*) AS probes, sum(CAST(json_extract(probe, 'sent') AS BIGINT)) AS sent,
       min(CAST(json_extract(rtt, 'min') AS DOUBLE)) AS rtt_min_ns,
       median(CAST(json_extract(rtt, 'p50') AS DOUBLE)) AS rtt_p50_ns,
       median({rtt_p99}) AS rtt_p99_ns,
       max(CAST(json_extract(rtt, 'max') AS DOUBLE)) AS rtt_max_ns,
       avg(CAST(json_extract(probe, 'loss_forward') AS DOUBLE)) AS loss_forward,
       avg(CAST(json_extract(probe, 'loss_backward') AS DOUBLE)) AS loss_backward
FROM (SELECT DISTINCT path, probe_json AS probe, json_extract(probe_json, 'rtt_ns') AS rtt FROM trials)
WHERE json_type(rtt) = 'OBJECT'
GROUP BY path
ORDER BY path
""".replace(
        "{rtt_p99}",
        percentiles.held_sql(
            "CAST(json_extract(rtt, 'p99') AS DOUBLE)", 0.99, "CAST(json_extract(probe, 'received') AS BIGINT)"
        ),
    ),
    ("path",),
)

# What each arm really used, as read back; every distinct value is listed, so a mixture cannot hide.
PARITY = Query(
    "parity",
    """
SELECT level, protocol, server, count(*) AS trials,
       string_agg(DISTINCT key_exchange, ', ' ORDER BY key_exchange) AS key_exchange,
       string_agg(DISTINCT congestion, ', ' ORDER BY congestion) AS client_congestion,
       string_agg(DISTINCT server_congestion, ', ' ORDER BY server_congestion) AS server_congestion,
       string_agg(DISTINCT initial_window, ', ' ORDER BY initial_window) AS initial_window_bytes,
       string_agg(DISTINCT segment, ', ' ORDER BY segment) AS largest_segment_bytes,
       string_agg(DISTINCT nodelay, ', ' ORDER BY nodelay) AS tcp_nodelay,
       string_agg(DISTINCT certificates, ', ' ORDER BY certificates) AS certificates,
       string_agg(DISTINCT flights, ', ' ORDER BY flights) AS flights,
       string_agg(DISTINCT adaptations, '; ') AS adaptations,
       string_agg(DISTINCT server_version, ', ' ORDER BY server_version) AS server_version,
       string_agg(DISTINCT engine_version, ', ' ORDER BY engine_version) AS engine_version
FROM (SELECT level, protocol, server, json_extract_string(load_json, 'key_exchange') AS key_exchange,
             json_extract_string(transport, 'congestion_control') AS congestion,
             json_extract_string(json_extract(server_json, 'congestion_control'), layer) AS server_congestion,
             json_extract_string(transport, 'initial_window_bytes') AS initial_window,
             coalesce(json_extract_string(transport, 'mss_bytes'),
                      json_extract_string(transport, 'mtu_bytes')) AS segment,
             json_extract_string(transport, 'nodelay') AS nodelay,
             json_extract_string(json_extract(json_extract(handshakes, 'chains'), 0), 'certificates') || ' of '
                 || json_extract_string(json_extract(json_extract(handshakes, 'chains'), 0), 'octets')
                 || ' B' AS certificates,
             nullif(array_to_string(json_keys(json_extract(handshakes, 'flights')), ', '), '') AS flights,
             CASE CAST(json_extract(transport, 'adaptations') AS VARCHAR) WHEN '[]' THEN 'nothing'
                  ELSE replace(translate(CAST(json_extract(transport, 'adaptations') AS VARCHAR), chr(34) || '[]', ''),
                               ',', ', ') END AS adaptations,
             json_extract_string(server_json, 'version') AS server_version,
             json_extract_string(json_extract(load_json, 'versions'), 'engine') AS engine_version
      FROM (SELECT *, json_extract(load_json, layer) AS transport, json_extract(load_json, 'handshakes') AS handshakes
            FROM (SELECT *, CASE WHEN protocol = 'h3' THEN 'quic' ELSE 'tcp' END AS layer FROM trials)))
GROUP BY level, protocol, server
ORDER BY server, protocol, level
""",
    ("level", "protocol", "server"),
)

TLS = Query(
    "tls",
    """
SELECT t.level, t.protocol, t.server, string_agg(DISTINCT s.protocol, ', ' ORDER BY s.protocol) AS negotiated,
       string_agg(DISTINCT s.tls_version, ', ' ORDER BY s.tls_version) AS tls_version,
       string_agg(DISTINCT s.cipher, ', ' ORDER BY s.cipher) AS cipher,
       sum(s.requests)::BIGINT AS samples,
       coalesce(sum(s.requests) FILTER (WHERE s.resumed), 0)::BIGINT AS resumed,
       coalesce(sum(s.requests) FILTER (WHERE s.zero_rtt), 0)::BIGINT AS zero_rtt
FROM request_sums AS s JOIN trials AS t USING (trial)
GROUP BY t.level, t.protocol, t.server
ORDER BY t.server, t.protocol, t.level
""",
    ("level", "protocol", "server"),
)

# How busy a client was: as `analysis/checks/cpu_utilization.py`, without its start where that is known.
HEADROOM = Query(
    "headroom",
    """
SELECT level, protocol, count(*) AS trials, median(busy) AS busy_median, max(busy) AS busy_max,
       max(link_cpu) AS link_cpu_max, max(schedule_lag) AS schedule_lag_p99_ns,
       sum(missed) AS missed_slots, sum(udp_errors) AS udp_receive_errors
FROM (SELECT level, protocol, CASE WHEN start_cpu IS NULL OR cpu IS NULL OR NOT span > 0 THEN busy_ratio
                            ELSE greatest(0, (cpu - start_cpu) / span) END AS busy,
             CAST(json_extract(load_json, 'udp_receive_errors') AS BIGINT) AS udp_errors,
             CAST(json_extract(load_json, 'missed_slots') AS BIGINT) AS missed,
             {lag_p99} AS schedule_lag,
             (SELECT max(cpu_ns / nullif(wall_ns, 0)) FROM link WHERE link.trial = t.trial) AS link_cpu
      FROM (SELECT *, CAST(json_extract(load_json, 'busy_ratio') AS DOUBLE) AS busy_ratio,
                   CAST(json_extract(load_json, 'start_cpu_ns') AS DOUBLE) AS start_cpu,
                   CAST(json_extract(load_json, 'cpu_user_ns') AS DOUBLE)
                   + CAST(json_extract(load_json, 'cpu_system_ns') AS DOUBLE) AS cpu,
                   CAST(json_extract(load_json, 'ended_ns') AS DOUBLE)
                   - CAST(json_extract(load_json, 'started_ns') AS DOUBLE) AS span FROM trials) AS t)
GROUP BY level, protocol
ORDER BY protocol, level
""".replace(
        "{lag_p99}",
        percentiles.held_sql(
            "CAST(json_extract(json_extract(load_json, 'schedule_lag_ns'), 'p99') AS DOUBLE)",
            0.99,
            "CAST(json_extract(load_json, 'samples') AS BIGINT)",
        ),
    ),
    ("level", "protocol"),
)

# The baseline runs twice in a block: another arm is compared with the geometric mean of both runs.
BLOCK_RATIOS = Query(
    "block_ratios",
    """
SELECT t.cell, t.arm, r.level AS reference, t.block, any_value(t.{metric}) / exp(avg(ln(r.{metric}))) AS ratio,
       any_value(t.{metric}) AS arm_value, exp(avg(ln(r.{metric}))) AS reference_value
FROM trials AS t JOIN trials AS r ON r.cell = t.cell AND r.block = t.block
  AND CASE WHEN t.is_aa THEN r.arm = t.level ELSE r.level <> t.level END
WHERE t.valid AND r.valid AND t.{metric} > 0 AND r.{metric} > 0{and_cell}
GROUP BY t.cell, t.arm, r.level, t.block
ORDER BY t.cell, t.arm, r.level, t.block
""",
    ("cell", "arm", "reference", "block"),
)


DECOMPOSITION = Query(
    "decomposition",
    """
SELECT place, arm, part, share, low, high, without_low, without_high, population_low, population_high
FROM decomposition
WHERE part IS NOT NULL
ORDER BY place, arm, part
""",
    ("place", "arm", "part"),
)

EFFECTS = Query(
    "effects",
    """
SELECT place, arm, any_value(ratio) AS ratio, any_value(elsewhere_low) AS elsewhere_low,
       any_value(elsewhere_high) AS elsewhere_high, any_value(cells) AS programs, any_value(blocks) AS blocks,
       any_value(left_out) AS left_out
FROM decomposition
WHERE NOT pooled
GROUP BY place, arm
ORDER BY place, arm
""",
    ("place", "arm"),
)

# A proxy passes requests on to a file server: its place among file servers is that of two programs and a hop.
LEAGUE = Query(
    "league",
    """
SELECT t.cell, t.arm, t.server, t.client,
       CASE t.client WHEN 'load' THEN t.server ELSE t.server || ' with ' || t.client END AS program,
       CASE WHEN t.best = t.worst THEN '' || t.best ELSE t.best || '–' || t.worst END AS place,
       t.value, t.low, t.high, t.blocks, t.censored, t.starts,
       CASE WHEN t.proxy THEN 'proxy: adds a hop' ELSE 'file server' END AS kind
FROM (SELECT * EXCLUDE (place), place AS cell FROM league) AS t
WHERE true{and_cell}
ORDER BY t.cell, t.arm, t.best, t.worst, t.value, t.server, t.client
""",
    ("cell", "arm", "server", "client"),
)


def for_metric(query: Query, metric: str) -> Query:
    """A query with ``{metric}`` filled in, which must be a column of ``trials`` that verdicts know."""
    if metric not in METRICS:
        raise ValueError(f"unknown metric {metric!r}")
    return replace(query, sql=query.sql.replace("{metric}", metric))


ERRORS = Query(
    "errors",
    """
SELECT t.cell, t.arm, s.error, sum(s.requests)::BIGINT AS requests
FROM request_sums AS s JOIN trials AS t USING (trial)
WHERE s.error IS NOT NULL
GROUP BY t.cell, t.arm, s.error
ORDER BY t.cell, t.arm, requests DESC
""",
    ("cell", "arm", "error"),
)

NOISE = Query(
    "noise",
    """
SELECT r.cell, count(*) AS blocks, median(t.{metric} / r.{metric}) AS ratio,
       min(t.{metric} / r.{metric}) AS smallest, max(t.{metric} / r.{metric}) AS largest,
       any_value(v.floor) AS floor, any_value(v.weather_floor) AS weather_floor
FROM trials AS t JOIN trials AS r ON r.cell = t.cell AND r.block = t.block AND r.arm = t.level
  LEFT JOIN (SELECT cell, 1 + max(noise_floor) AS floor, 1 + max(weather_floor) AS weather_floor FROM verdicts
             WHERE metric = '{metric}' GROUP BY cell) AS v ON v.cell = r.cell
WHERE t.is_aa AND t.valid AND r.valid AND t.{metric} > 0 AND r.{metric} > 0
GROUP BY r.cell
ORDER BY r.cell
""",
    ("cell",),
)
