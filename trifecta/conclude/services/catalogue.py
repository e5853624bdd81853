"""The SQL behind what the report shows of services. As in `conclude.catalogue`; hops come from the view ``spans``."""

from __future__ import annotations

from trifecta.conclude.query import Query, by_arm
from trifecta.design.percentiles import held_sql, needed

# A real cycle, because the hops of a cycle add up and medians of hops do not. The one at a quantile may be odd in its
# parts, so of those within a twentieth of the tail around it (at least two on each side) the one is taken whose times
# are nearest to their means. A failed cycle is longer than every other; where the quantile lies among them, no row.
# Between hosts of a study's own calls are on several clocks: they cannot be drawn on one axis, so there is none either.
WATERFALL = Query(
    "waterfall",
    """
WITH cycle AS (
  SELECT t.cell, t.arm, s.trial, s.request, s.started_ns AS began_ns, s.error IS NULL AS done, s.elapsed_ns,
         row_number() OVER (PARTITION BY t.cell, t.arm ORDER BY
           CASE WHEN s.error IS NULL THEN s.elapsed_ns ELSE 'infinity'::DOUBLE END, s.trial, s.request) AS place,
         count(*) OVER (PARTITION BY t.cell, t.arm) AS cycles
  FROM spans AS s JOIN trials AS t USING (trial)
  WHERE s.ordinal = 0 AND t.valid AND NOT t.is_aa AND NOT s.warmup{and_cell}
    AND s.trial NOT IN (SELECT trial FROM spans WHERE caller_host IS DISTINCT FROM callee_host)),
wanted AS (
  SELECT c.*, q.quantile, q.share
  FROM cycle AS c, (VALUES ('median', 0.5), ('p99', 0.99)) AS q(quantile, share)
  WHERE c.done AND c.place = ceil(q.share * c.cycles) AND c.cycles >= CASE q.share WHEN 0.5 THEN 1 ELSE {p99} END),
near AS (
  SELECT c.cell, c.arm, w.quantile, c.trial, c.request, c.began_ns, c.elapsed_ns AS total_ns,
         w.elapsed_ns AS wanted_ns, c.cycles
  FROM cycle AS c JOIN wanted AS w USING (cell, arm)
  WHERE c.done AND abs(c.place - w.place) <= greatest(2, floor(0.05 * c.cycles * least(w.share, 1 - w.share)))),
hop AS (
  SELECT n.*, s.ordinal, s.depth, s.caller, s.callee, s.method, s.path, s.started_ns - n.began_ns AS start_ns,
         s.secured_ns - s.started_ns AS handshake_ns, s.arrived_ns - coalesce(s.secured_ns, s.started_ns) AS way_ns,
         s.at_callee_ns, s.back_ns, s.elapsed_ns
  FROM near AS n JOIN spans AS s USING (trial, request)),
odd AS (
  SELECT cell, arm, quantile, trial, request, sum(far) AS far
  FROM (SELECT *, abs(start_ns - avg(start_ns) OVER hops) + abs(way_ns - avg(way_ns) OVER hops)
                  + coalesce(abs(handshake_ns - avg(handshake_ns) OVER hops), 0)
                  + abs(back_ns - avg(back_ns) OVER hops) AS far
        FROM hop WINDOW hops AS (PARTITION BY cell, arm, quantile, ordinal))
  GROUP BY cell, arm, quantile, trial, request),
chosen AS (
  SELECT cell, arm, quantile, trial, request
  FROM odd QUALIFY row_number() OVER (PARTITION BY cell, arm, quantile ORDER BY far, trial, request) = 1)
SELECT h.cell, h.arm, h.quantile, h.ordinal, h.depth, h.caller, h.callee, h.method, h.path, h.start_ns,
       h.handshake_ns, h.way_ns, h.at_callee_ns, h.back_ns, h.elapsed_ns, h.total_ns, h.wanted_ns, h.trial, h.request,
       h.cycles
FROM hop AS h JOIN chosen AS c USING (cell, arm, quantile, trial, request)
ORDER BY h.cell, h.quantile, h.arm, h.ordinal
""".replace("{p99}", str(needed(0.99))),
    ("cell", "quantile", "arm", "ordinal"),
)

# The medians of every trial, which the intervals of the view hops rest on; the whole cycle counts failures as longest.
TRIAL_HOPS = Query(
    "trial_hops",
    """
SELECT t.cell, t.arm, t.block, t.trial, s.ordinal, any_value(s.depth) AS depth, any_value(s.caller) AS caller,
       any_value(s.callee) AS callee, any_value(s.method) AS method, any_value(s.path) AS path,
       median(s.secured_ns - s.started_ns) AS handshake_ns, median(s.there_ns) AS there_ns,
       median(s.back_ns) AS back_ns,
       quantile_disc(CASE WHEN s.error IS NULL THEN s.elapsed_ns ELSE 'infinity'::DOUBLE END, 0.5) AS whole_ns
FROM spans AS s JOIN trials AS t USING (trial)
WHERE t.valid AND NOT s.warmup AND (s.error IS NULL OR s.ordinal = 0)
GROUP BY t.cell, t.arm, t.block, t.trial, s.ordinal
ORDER BY t.cell, t.arm, t.block, t.trial, s.ordinal
""",
    ("trial", "ordinal"),
)

TRIAL_REQUESTS = Query(
    "trial_requests",
    """
SELECT t.trial, count(*) AS requests, count(*) FILTER (WHERE s.success) AS succeeded
FROM samples AS s JOIN trials AS t USING (trial)
WHERE NOT s.warmup
GROUP BY t.trial
ORDER BY t.trial
""",
    ("trial",),
)

# What each process used between its first and last reading: the growth of a counter, the most of a level. One reading
# tells no growth; the last of a process that has just ended has its CPU time alone. What is covered: analysis/costs.py.
TRIAL_USAGE = Query(
    "trial_usage",
    """
SELECT trial, process, CASE WHEN count(cpu_ns) > 1 THEN max(cpu_ns) - min(cpu_ns) END AS cpu_ns,
       max(rss_bytes) AS rss_bytes, max(cgroup_memory_bytes) AS cgroup_memory_bytes
FROM resources
GROUP BY trial, process
ORDER BY trial, process
""",
    ("trial", "process"),
)

# A failure travels up: a hop that timed out makes its caller answer 504. It began at the innermost hop that failed.
FAILURES = Query(
    "failures",
    """
SELECT t.cell, t.arm, f.hop, f.error, count(*) AS requests, count(DISTINCT t.trial) AS trials,
       count(*) FILTER (WHERE NOT t.valid) AS excluded
FROM (SELECT trial, request, arg_max(caller || ' → ' || callee, depth * 1000 + ordinal) AS hop,
             arg_max(error, depth * 1000 + ordinal) AS error
      FROM spans WHERE error IS NOT NULL AND NOT warmup
      GROUP BY trial, request) AS f JOIN trials AS t USING (trial)
WHERE NOT t.is_aa{and_cell}
GROUP BY t.cell, t.arm, f.hop, f.error
ORDER BY t.cell, t.arm, requests DESC, f.hop, f.error
""",
    ("cell", "arm", "hop", "error"),
)


HOPS = Query(
    "hops",
    f"""
SELECT t.cell, t.position, t.name,
       {by_arm("value_ns", "low_ns", "high_ns")},
       min(t.blocks) AS blocks
FROM hops AS t
WHERE true{{and_cell}}
GROUP BY t.cell, t.position, t.name
ORDER BY t.cell, t.position
""",  # noqa: S608 - columns of this module
    ("cell", "name"),
)

SUCCESS = Query(
    "success",
    """
SELECT t.cell, t.arm, t.rate, t.low, t.high, t.requests, t.failed, t.trials, t.design_effect,
       t.excluded_requests, t.excluded_failed
FROM success AS t
WHERE true{and_cell}
ORDER BY t.cell, t.arm
""",
    ("cell", "arm"),
)

SERVICE_COSTS = Query(
    "service_costs",
    """
SELECT t.cell, t.service, t.arm, t.service || ', ' || t.arm AS who, t.host, t.cpu_ns_per_1000, t.cpu_ns_per_1000_low,
       t.cpu_ns_per_1000_high, t.cpu_ns_per_mb, t.cpu_ns_per_mb_low, t.cpu_ns_per_mb_high, t.rss_bytes,
       t.rss_bytes_low, t.rss_bytes_high, t.cgroup_memory_bytes, t.cgroup_memory_bytes_low,
       t.cgroup_memory_bytes_high, t.blocks
FROM service_costs AS t
WHERE true{and_cell}
ORDER BY t.cell, t.service, t.arm
""",
    ("cell", "service", "arm"),
)

# Every client by itself beside all of them together; a client with a failed request in the middle has no median.
CLIENTS = Query(
    "clients",
    """
WITH one AS (
  SELECT t.cell, t.arm, s.trial, s.client, count(*) AS requests, quantile_disc(s.latency_censored_ns, 0.5) AS p50_ns
  FROM samples AS s JOIN trials AS t USING (trial)
  WHERE t.valid AND NOT t.is_aa AND NOT s.warmup AND s.client IS NOT NULL{and_cell}
  GROUP BY t.cell, t.arm, s.trial, s.client),
trial AS (
  SELECT cell, arm, trial, count(*) AS clients, min(requests) AS fewest, max(requests) AS most,
         min(p50_ns) AS fastest_ns, median(p50_ns) AS middle_ns, max(p50_ns) AS slowest_ns
  FROM one GROUP BY cell, arm, trial),
pooled AS (
  SELECT t.cell, t.arm, quantile_disc(s.latency_censored_ns, 0.5) AS pooled_ns,
         {pooled_p99} AS pooled_p99_ns
  FROM samples AS s JOIN trials AS t USING (trial)
  WHERE t.valid AND NOT t.is_aa AND NOT s.warmup{and_cell}
  GROUP BY t.cell, t.arm)
SELECT t.cell, t.arm, max(t.clients) AS clients, min(t.fewest) AS fewest, max(t.most) AS most,
       any_value(p.pooled_ns) AS pooled_ns, any_value(p.pooled_p99_ns) AS pooled_p99_ns,
       median(t.fastest_ns) AS fastest_ns, median(t.middle_ns) AS middle_ns, median(t.slowest_ns) AS slowest_ns,
       count(*) AS trials
FROM trial AS t JOIN pooled AS p USING (cell, arm)
GROUP BY t.cell, t.arm HAVING max(t.clients) > 1
ORDER BY t.cell, t.arm
""".replace("{pooled_p99}", held_sql("quantile_disc(s.latency_censored_ns, 0.99)", 0.99, "count(*)")),
    ("cell", "arm"),
)

CONTRASTS = Query(
    "contrasts",
    """
SELECT factor, level, against, place, metric, arm, reference, ratio, low, high, p_holm, outcome, blocks, against_blocks
FROM contrasts
ORDER BY factor, level, metric, place, arm, reference NULLS FIRST
""",
    ("factor", "level", "against", "place", "metric", "arm", "reference"),
)

CURVES = Query(
    "curves",
    """
SELECT factor, place, arm, level, text, value, low, high, blocks
FROM curves
ORDER BY factor, place, level, arm
""",
    ("factor", "place", "text", "arm"),
)

COMBINATIONS = Query(
    "combinations",
    """
SELECT t.place AS cell, t.edge, t.inside,
       CASE WHEN t.best = t.worst THEN '' || t.best ELSE t.best || '–' || t.worst END AS rank,
       t.value, t.low, t.high, t.ratio, t.ratio_low, t.ratio_high, t.p_holm, t.blocks
FROM combinations AS t
ORDER BY t.place, t.best, t.worst, t.value, t.edge, t.inside
""",
    ("cell", "edge", "inside"),
)

QUERIES = (
    WATERFALL,
    TRIAL_HOPS,
    TRIAL_REQUESTS,
    TRIAL_USAGE,
    FAILURES,
    HOPS,
    SUCCESS,
    SERVICE_COSTS,
    CLIENTS,
    CONTRASTS,
    CURVES,
    COMBINATIONS,
)
"""All of them."""
