"""Schemas of the Parquet files that a browser's visits leave (docs/architecture.md, section 2.1)."""

from __future__ import annotations

from trifecta.design.tables import BOOL, DOUBLE, INT32, INT64, TEXT, UINT16, UINT32, make_schema

# One row a visit of a browser, beside its row in ``samples`` (``visit`` = ``request``): a page load, or a watch of a
# video. Durations count from the start of the navigation (W3C Navigation Timing 2), of a video from play. A null: it
# did not happen, is not of this kind, or this browser does not report.
VISITS = make_schema(
    ("trial", TEXT),
    ("visit", UINT32),
    ("warmup", BOOL),
    ("kind", TEXT),  # page, video
    ("view", TEXT),  # cold, warm, repeat
    ("browser", TEXT),
    ("protocol", TEXT),
    ("url", TEXT),
    ("started_ns", INT64),
    ("dns_ns", INT64),
    ("connect_ns", INT64),
    ("tls_ns", INT64),
    ("request_ns", INT64),
    ("ttfb_ns", INT64),
    ("response_ns", INT64),
    ("dom_content_loaded_ns", INT64),
    ("load_ns", INT64),
    ("fcp_ns", INT64),
    ("lcp_ns", INT64),
    ("speed_index_ns", INT64),
    ("visually_complete_ns", INT64),
    ("requests", UINT32),
    ("failed_requests", UINT32),
    ("missing_requests", UINT32),  # answered x-trifecta-replay: missing
    ("connections", UINT32),
    ("tcp_connections", UINT32),
    ("quic_connections", UINT32),
    ("resumed_connections", UINT32),
    ("zero_rtt_connections", UINT32),
    ("third_party_requests", UINT32),  # among the requests
    ("third_party_connections", UINT32),  # not among the connections
    ("origins", UINT32),
    ("wire_bytes", INT64),  # heads and content as sent, of all responses
    ("header_bytes", INT64),
    ("body_bytes", INT64),  # content as sent (encoded)
    ("decoded_bytes", INT64),
    ("work", TEXT),  # digest of what was fetched: equal for equal work (docs/pages.md)
    ("browser_cpu_ns", INT64),  # all its processes, until the load event; of a video, until the end of the watch
    ("startup_ns", INT64),  # from play to the first frame shown
    ("live_latency_ns", INT64),  # behind the live edge, median
    ("rebuffers", UINT32),
    ("rebuffer_ns", INT64),  # with a stall that was open at the end
    ("bitrate_bits_per_s", DOUBLE),  # of the rungs shown, weighted by time
    ("switches", UINT32),
    ("frames_shown", INT64),
    ("frames_dropped", INT64),
    ("frames_dropped_floor", INT64),  # the same video from local memory: what the machine drops by itself
    ("watched_ns", INT64),  # wall time
    ("played_ns", INT64),  # media time that passed meanwhile
    ("segments", UINT32),
    ("error", TEXT),
)

# One row a request that a browser made in a visit. Times are CLOCK_MONOTONIC.
FETCHES = make_schema(
    ("trial", TEXT),
    ("visit", UINT32),
    ("warmup", BOOL),
    ("fetch", UINT32),  # ordinal in the visit, by start
    ("url", TEXT),
    ("origin", TEXT),  # host:port
    ("third_party", BOOL),  # not of the page's own: HTTP/2, whatever protocol is asked for
    ("method", TEXT),
    ("kind", TEXT),  # document, stylesheet, script, image, font, media, xhr, fetch, manifest, other
    ("initiator", TEXT),
    ("priority", TEXT),
    ("render_blocking", BOOL),
    ("connection", UINT32),  # ordinal in the visit
    ("connection_reused", BOOL),
    ("protocol", TEXT),  # h1, h2, h3
    ("status", UINT16),
    ("mime", TEXT),
    ("started_ns", INT64),  # handed to the network stack: what it waits for a connection counts
    ("dns_start_ns", INT64),
    ("dns_end_ns", INT64),
    ("connect_start_ns", INT64),
    ("tcp_connected_ns", INT64),
    ("secured_ns", INT64),
    ("request_sent_ns", INT64),
    ("first_byte_ns", INT64),
    ("done_ns", INT64),
    ("request_header_bytes", INT64),
    ("header_bytes", INT64),
    ("wire_bytes", INT64),
    ("body_bytes", INT64),
    ("decoded_bytes", INT64),
    ("from_cache", BOOL),
    ("resumed", BOOL),
    ("zero_rtt", BOOL),
    ("tls_version", TEXT),
    ("cipher", TEXT),
    ("missing", BOOL),  # the recording has no answer to it
    ("rung", INT32),  # of a video's segment: its place in the ladder, 0 the lowest
    ("segment", INT64),
    ("media_ns", INT64),  # how long the segment plays
    ("error", TEXT),
)

# What a player did: samples four times a second and events as they happen.
PLAYBACK = make_schema(
    ("trial", TEXT),
    ("visit", UINT32),
    ("warmup", BOOL),
    ("time_ns", INT64),
    ("event", TEXT),  # play, first_frame, sample, stall, resume, switch, ended, error
    ("position_ns", INT64),
    ("buffer_ns", INT64),  # media time ahead of the position
    ("rung", INT32),
    ("bitrate_bits_per_s", INT64),
    ("frames_shown", INT64),
    ("frames_dropped", INT64),
    ("live_latency_ns", INT64),
)

BROWSER_TABLES = {"visits": VISITS, "fetches": FETCHES, "playback": PLAYBACK}
"""Files and views of a browser's visits."""
