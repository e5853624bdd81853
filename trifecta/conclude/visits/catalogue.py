"""The SQL behind what the report shows of browsers: views ``visits``, ``fetches`` and ``playback``."""

from __future__ import annotations

from trifecta.conclude.query import Query, by_arm
from trifecta.design.percentiles import held_sql

# A real visit, because the requests of a visit belong together: the one at the median of all measured visits of valid
# trials. A failed visit is longer than every other; where the median lies among them, there is no row.
_CHOSEN = """
visit AS (
  SELECT t.cell, t.arm, t.trial, v.visit, v.started_ns AS began_ns, v.error IS NULL AND v.{length} IS NOT NULL AS done,
         row_number() OVER (PARTITION BY t.cell, t.arm ORDER BY
           CASE WHEN v.error IS NULL THEN coalesce(v.{length}, 'infinity'::DOUBLE) ELSE 'infinity'::DOUBLE END,
           t.trial, v.visit) AS place,
         count(*) OVER (PARTITION BY t.cell, t.arm) AS visits
  FROM visits AS v JOIN trials AS t USING (trial)
  WHERE v.kind = '{kind}' AND t.valid AND NOT t.is_aa AND NOT v.warmup{and_cell}),
chosen AS (
  SELECT cell, arm, trial, visit, began_ns, visits FROM visit WHERE done AND place = ceil(visits * 0.5))"""
_PAGE = _CHOSEN.replace("{length}", "load_ns").replace("{kind}", "page")
_VIDEO = _CHOSEN.replace("{length}", "startup_ns").replace("{kind}", "video")

LOADS = Query(
    "loads",
    "WITH "
    + _PAGE.strip()
    + """
SELECT c.cell, c.arm, c.trial, c.visit, c.visits, v.ttfb_ns, v.fcp_ns, v.dom_content_loaded_ns, v.lcp_ns,
       v.speed_index_ns, v.visually_complete_ns, v.load_ns, v.requests, v.connections, v.resumed_connections,
       v.zero_rtt_connections, v.wire_bytes
FROM chosen AS c JOIN visits AS v USING (trial, visit)
ORDER BY c.cell, c.arm
""",
    ("cell", "arm"),
)

# Pictures are taken of visits that are not measured, because a camera slows a page down: the median one of these.
FILMED = Query(
    "filmed",
    """
SELECT cell, arm, trial, visit, warmup, visits, fcp_ns, dom_content_loaded_ns, lcp_ns, speed_index_ns,
       visually_complete_ns, load_ns
FROM (SELECT t.cell, t.arm, t.trial, v.visit, v.warmup, v.fcp_ns, v.dom_content_loaded_ns, v.lcp_ns, v.speed_index_ns,
             v.visually_complete_ns, v.load_ns, count(*) OVER (PARTITION BY t.cell, t.arm) AS visits,
             row_number() OVER (PARTITION BY t.cell, t.arm ORDER BY v.load_ns, t.trial, v.visit) AS place
      FROM visits AS v JOIN trials AS t USING (trial)
      WHERE v.kind = 'page' AND t.valid AND NOT t.is_aa AND v.error IS NULL AND v.load_ns IS NOT NULL
        AND v.visually_complete_ns IS NOT NULL{and_cell})
WHERE place = ceil(visits * 0.5)
ORDER BY cell, arm
""",
    ("cell", "arm"),
)

FETCHES = Query(
    "fetches",
    "WITH "
    + _PAGE.strip()
    + """
SELECT c.cell, c.arm, f.fetch, f.url, f.origin, f.kind, f.priority, f.connection, f.protocol, f.status,
       f.started_ns - c.began_ns AS start_ns, f.dns_start_ns - c.began_ns AS dns_start_ns,
       f.dns_end_ns - c.began_ns AS dns_end_ns, f.connect_start_ns - c.began_ns AS connect_start_ns,
       f.tcp_connected_ns - c.began_ns AS tcp_connected_ns, f.secured_ns - c.began_ns AS secured_ns,
       f.request_sent_ns - c.began_ns AS request_sent_ns, f.first_byte_ns - c.began_ns AS first_byte_ns,
       f.done_ns - c.began_ns AS done_ns, f.wire_bytes, f.resumed, f.zero_rtt, f.from_cache, f.missing, f.error
FROM chosen AS c JOIN fetches AS f USING (trial, visit)
ORDER BY c.cell, c.arm, f.fetch
""",
    ("cell", "arm", "fetch"),
)

# What every request and connection of the measured visits was: nothing else than the asked protocol may stand here, but
# with third parties, where it is HTTP/2.
SPOKEN = Query(
    "spoken",
    """
SELECT t.cell, t.arm, CASE WHEN f.third_party THEN 'third parties' ELSE 'the page' END AS whose,
       coalesce(f.protocol, 'none') AS protocol, count(*) AS requests,
       count(*) FILTER (WHERE f.segment IS NOT NULL) AS segments, count(*) FILTER (WHERE f.from_cache) AS from_cache,
       count(DISTINCT (f.trial, f.visit, f.connection)) FILTER (WHERE f.secured_ns IS NOT NULL) AS opened,
       count(DISTINCT (f.trial, f.visit, f.connection)) FILTER (WHERE f.resumed) AS resumed,
       count(DISTINCT (f.trial, f.visit, f.connection)) FILTER (WHERE f.zero_rtt) AS zero_rtt,
       string_agg(DISTINCT f.tls_version, ', ') AS tls_version, string_agg(DISTINCT f.cipher, ', ') AS cipher,
       count(*) FILTER (WHERE f.error IS NOT NULL) AS failed, count(*) FILTER (WHERE f.missing) AS missing
FROM fetches AS f JOIN trials AS t USING (trial)
WHERE t.valid AND NOT t.is_aa AND NOT f.warmup{and_cell}
GROUP BY t.cell, t.arm, whose, f.protocol
ORDER BY t.cell, t.arm, whose, requests DESC
""",
    ("cell", "arm", "whose", "protocol"),
)

# The same work in every arm: one digest, and the same counts.
WORK = Query(
    "work",
    """
SELECT t.cell, t.arm, count(*) AS visits, count(*) FILTER (WHERE v.error IS NULL) AS done,
       nullif(count(DISTINCT v.work), 0) AS works, min(v.requests) AS fewest, max(v.requests) AS most,
       min(v.decoded_bytes) AS least_bytes, max(v.decoded_bytes) AS most_bytes,
       sum(v.missing_requests) AS missing, sum(v.failed_requests) AS failed
FROM visits AS v JOIN trials AS t USING (trial)
WHERE t.valid AND NOT t.is_aa AND NOT v.warmup{and_cell}
GROUP BY t.cell, t.arm
ORDER BY t.cell, t.arm
""",
    ("cell", "arm"),
)

FAILED_VISITS = Query(
    "failed_visits",
    """
SELECT t.cell, t.arm, v.error, count(*) AS visits, count(*) FILTER (WHERE NOT t.valid) AS excluded
FROM visits AS v JOIN trials AS t USING (trial)
WHERE NOT t.is_aa AND NOT v.warmup AND v.error IS NOT NULL{and_cell}
GROUP BY t.cell, t.arm, v.error
ORDER BY t.cell, t.arm, visits DESC, v.error
""",
    ("cell", "arm", "error"),
)

# What a recording could not replay, and what failed, by address.
LEFT_OUT = Query(
    "left_out",
    """
SELECT t.cell, f.url, CASE WHEN f.missing THEN 'not in the recording' ELSE f.error END AS why,
       count(*) AS requests, string_agg(DISTINCT t.arm, ', ' ORDER BY t.arm) AS arms
FROM fetches AS f JOIN trials AS t USING (trial)
WHERE NOT t.is_aa AND NOT f.warmup AND (f.missing OR f.error IS NOT NULL){and_cell}
GROUP BY t.cell, f.url, why
ORDER BY t.cell, requests DESC, f.url, why
""",
    ("cell", "url", "why"),
)

_VALUES = ("value", "low", "high")
_RATIOS = ("ratio", "ratio_low", "ratio_high", "difference", "difference_low", "difference_high")


def _metrics(name: str, columns: tuple[str, ...]) -> Query:
    return Query(
        name,
        f"""
SELECT t.cell, t.metric, any_value(t.label) AS label, any_value(t.unit) AS unit, min(t.place) AS place,
       {by_arm(*columns)},
       min(t.noise) AS noise, max(t.blocks) AS blocks
FROM visit_metrics AS t
WHERE true{{and_cell}}
GROUP BY t.cell, t.metric
ORDER BY t.cell, place
""",  # noqa: S608 - columns of this module
        ("cell", "metric"),
    )


METRICS = _metrics("visit_metrics", _VALUES)
METRIC_RATIOS = _metrics("visit_metric_ratios", _RATIOS)

PUBLISHED = Query(
    "published",
    """
SELECT t.cell, t.study, t.subject, t.metric, t.label, t.unit, t.arm, t.published, t.published_ratio, t.value, t.ratio,
       t.ratio_low, t.ratio_high, t.relation
FROM published AS t
WHERE true{and_cell}
ORDER BY t.cell, t.study, t.subject, t.place, t.arm
""",
    ("cell", "study", "subject", "metric", "arm"),
)

# Every watch, once a second: what the player had then. Time counts from play.
PLAYBACK = Query(
    "playback",
    """
WITH watch AS (
  SELECT t.cell, t.arm, p.trial, p.visit,
         coalesce(min(p.time_ns) FILTER (WHERE p.event = 'play'), min(p.time_ns)) AS began_ns
  FROM playback AS p JOIN trials AS t USING (trial)
  WHERE t.valid AND NOT t.is_aa AND NOT p.warmup{and_cell}
  GROUP BY t.cell, t.arm, p.trial, p.visit)
SELECT w.cell, w.arm, w.trial, w.visit, (p.time_ns - w.began_ns) // 1000000000 AS second,
       arg_max(p.buffer_ns, p.time_ns) AS buffer_ns, arg_max(p.bitrate_bits_per_s, p.time_ns) AS bitrate_bits_per_s
FROM watch AS w JOIN playback AS p USING (trial, visit)
WHERE p.event = 'sample'
GROUP BY w.cell, w.arm, w.trial, w.visit, second
ORDER BY w.cell, w.arm, w.trial, w.visit, second
""",
    ("trial", "visit", "second"),
)

# What happened in every watch: the first frame, stalls (one still open at the end lasts until then) and its end.
STALLS = Query(
    "stalls",
    """
WITH event AS (
  SELECT t.cell, t.arm, p.trial, p.visit, p.event, p.time_ns,
         coalesce(min(p.time_ns) FILTER (WHERE p.event = 'play') OVER watch, min(p.time_ns) OVER watch) AS began_ns,
         max(p.time_ns) OVER watch AS ended_ns,
         lead(p.time_ns) OVER (PARTITION BY p.trial, p.visit, p.event IN ('stall', 'resume')
           ORDER BY p.time_ns) AS next_ns
  FROM playback AS p JOIN trials AS t USING (trial)
  WHERE t.valid AND NOT t.is_aa AND NOT p.warmup{and_cell}
  WINDOW watch AS (PARTITION BY p.trial, p.visit))
SELECT cell, arm, trial, visit, event, time_ns - began_ns AS at_ns,
       CASE WHEN event = 'stall' THEN coalesce(next_ns, ended_ns) - began_ns END AS until_ns,
       ended_ns - began_ns AS watched_ns
FROM event
WHERE event IN ('play', 'first_frame', 'stall')
ORDER BY cell, arm, trial, visit, time_ns, event
""",
    ("trial", "visit", "event", "at_ns"),
)

WATCHES = Query(
    "watches",
    "WITH "
    + _VIDEO.strip()
    + """
SELECT c.cell, c.arm, c.trial, c.visit, c.visits, v.startup_ns, v.rebuffers, v.rebuffer_ns, v.bitrate_bits_per_s,
       v.switches, v.frames_shown, v.frames_dropped, v.frames_dropped_floor, v.played_ns, v.watched_ns
FROM chosen AS c JOIN visits AS v USING (trial, visit)
ORDER BY c.cell, c.arm
""",
    ("cell", "arm"),
)

# Segments rung by rung: a higher rung has larger segments.
SEGMENTS = Query(
    "segments",
    """
SELECT t.cell, t.arm, f.rung, count(*) AS segments,
       string_agg(DISTINCT CASE f.protocol WHEN 'h1' THEN 'HTTP/1.1' WHEN 'h2' THEN 'HTTP/2' WHEN 'h3' THEN 'HTTP/3'
                                ELSE 'none' END, ', ') AS protocols,
       median(f.body_bytes) AS body_bytes, median(f.done_ns - f.started_ns) AS download_ns,
       {p95} AS download_p95_ns,
       median(f.body_bytes * 8e9 / nullif(f.done_ns - f.started_ns, 0)) AS throughput,
       max(f.media_ns) AS media_ns, count(*) FILTER (WHERE f.done_ns - f.started_ns > f.media_ns) AS slow,
       count(*) FILTER (WHERE f.error IS NOT NULL) AS failed
FROM fetches AS f JOIN trials AS t USING (trial)
WHERE t.valid AND NOT t.is_aa AND NOT f.warmup AND f.segment IS NOT NULL{and_cell}
GROUP BY t.cell, t.arm, f.rung
ORDER BY t.cell, t.arm, f.rung
""".replace("{p95}", held_sql("quantile_cont(f.done_ns - f.started_ns, 0.95)", 0.95, "count(f.done_ns)")),
    ("cell", "arm", "rung"),
)

QUERIES = (
    LOADS,
    FILMED,
    FETCHES,
    SPOKEN,
    WORK,
    FAILED_VISITS,
    LEFT_OUT,
    METRICS,
    METRIC_RATIOS,
    PUBLISHED,
    PLAYBACK,
    STALLS,
    WATCHES,
    SEGMENTS,
)
"""All of them."""
