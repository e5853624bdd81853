"""The SQL behind the evidence of a report: checks, excluded trials, paths as delivered, parity, headroom, noise.

What holds for its text is said in `trifecta.conclude.catalogue`.
"""

from __future__ import annotations

from trifecta.conclude.query import Query
from trifecta.design import percentiles

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
