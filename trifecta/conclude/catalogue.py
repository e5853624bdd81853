"""The SQL behind every number of the report, one query a table or figure.

Each query reads only the views that ``trifecta sql RUN`` offers (trials, samples, checks, verdicts), so that the text
shown beside a table gives the table's numbers again. ``{and_cell}`` becomes a filter on one cell, or nothing.
Written without ``$``, ``!`` and double quotes: the text can be pasted into a shell between double quotes.
"""

from __future__ import annotations

from dataclasses import replace

from trifecta.conclude.query import Query
from trifecta.design import percentiles
from trifecta.design.metrics import METRICS

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
