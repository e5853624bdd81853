"""The view ``request_sums``: the requests of each trial counted and their phases added up, kind by kind.

A kind of request: warm-up or not, what it ended with, what was negotiated, whether it was answered and whether it
opened its connection. Sums of sums are exact, so that whatever counts requests or averages phases reads this instead
of every sample.

A connection that was opened before the request began is no part of it. With 0-RTT the request leaves before the
handshake ends, so the handshake counts until then. A sum is null where no request of the kind has the phase.
"""

SQL = """
SELECT trial, warmup, error, error IS NULL AS success, protocol, tls_version, cipher, resumed, zero_rtt,
  first_byte_ns IS NOT NULL AS answered,
  connect_start_ns >= started_ns AND secured_ns IS NOT NULL AS opened,
  count(*) AS requests,
  count(intended_ns) AS scheduled,
  count(request_sent_ns) AS sent,
  sum(started_ns - intended_ns) AS late_ns,
  sum(tcp_connected_ns - opening_ns) FILTER (WHERE opening_ns IS NOT NULL) AS tcp_connect_ns,
  sum(opened_ns - tcp_connected_ns) AS tls_ns,
  sum(opened_ns - opening_ns) FILTER (WHERE tcp_connected_ns IS NULL) AS quic_handshake_ns,
  sum(opened_ns - opening_ns) AS setup_ns,
  sum(request_sent_ns - coalesce(opened_ns, started_ns)) AS send_ns,
  sum(first_byte_ns - request_sent_ns) AS wait_ns,
  sum(first_byte_ns - coalesce(opened_ns, started_ns)) AS ask_ns,
  sum(done_ns - first_byte_ns) AS transfer_ns,
  sum(done_ns - coalesce(intended_ns, started_ns)) AS total_ns
FROM (SELECT *, CASE WHEN connect_start_ns >= started_ns THEN connect_start_ns END AS opening_ns,
             CASE WHEN connect_start_ns >= started_ns AND secured_ns IS NOT NULL
                  THEN least(secured_ns, request_sent_ns) END AS opened_ns
      FROM samples)
GROUP BY ALL
"""
