"""Schemas of the Parquet files that a browser's visits leave (docs/architecture.md, section 2.1)."""

from __future__ import annotations

import pyarrow as pa

from trifecta.store.schema import make_schema

# One row a visit of a browser, beside its row in ``samples`` (``visit`` = ``request``): a page load, or a watch of a
# video. Durations count from the start of the navigation (W3C Navigation Timing 2), of a video from play. A null: it
# did not happen, is not of this kind, or this browser does not report.
VISITS = make_schema(
    ("trial", pa.string()),
    ("visit", pa.uint32()),
    ("warmup", pa.bool_()),
    ("kind", pa.string()),  # page, video
    ("view", pa.string()),  # cold, warm, repeat
    ("browser", pa.string()),
    ("protocol", pa.string()),
    ("url", pa.string()),
    ("started_ns", pa.int64()),
    ("dns_ns", pa.int64()),
    ("connect_ns", pa.int64()),
    ("tls_ns", pa.int64()),
    ("request_ns", pa.int64()),
    ("ttfb_ns", pa.int64()),
    ("response_ns", pa.int64()),
    ("dom_content_loaded_ns", pa.int64()),
    ("load_ns", pa.int64()),
    ("fcp_ns", pa.int64()),
    ("lcp_ns", pa.int64()),
    ("speed_index_ns", pa.int64()),
    ("visually_complete_ns", pa.int64()),
    ("requests", pa.uint32()),
    ("failed_requests", pa.uint32()),
    ("missing_requests", pa.uint32()),  # answered x-trifecta-replay: missing
    ("connections", pa.uint32()),
    ("tcp_connections", pa.uint32()),
    ("quic_connections", pa.uint32()),
    ("resumed_connections", pa.uint32()),
    ("zero_rtt_connections", pa.uint32()),
    ("origins", pa.uint32()),
    ("wire_bytes", pa.int64()),  # heads and content as sent, of all responses
    ("header_bytes", pa.int64()),
    ("body_bytes", pa.int64()),  # content as sent (encoded)
    ("decoded_bytes", pa.int64()),
    ("work", pa.string()),  # digest of what was fetched: equal for equal work (docs/pages.md)
    ("browser_cpu_ns", pa.int64()),  # all its processes, until the load event; of a video, until the end of the watch
    ("startup_ns", pa.int64()),  # from play to the first frame shown
    ("live_latency_ns", pa.int64()),  # behind the live edge, median
    ("rebuffers", pa.uint32()),
    ("rebuffer_ns", pa.int64()),  # with a stall that was open at the end
    ("bitrate_bits_per_s", pa.float64()),  # of the rungs shown, weighted by time
    ("switches", pa.uint32()),
    ("frames_shown", pa.int64()),
    ("frames_dropped", pa.int64()),
    ("frames_dropped_floor", pa.int64()),  # the same video from local memory: what the machine drops on its own
    ("watched_ns", pa.int64()),  # wall time
    ("played_ns", pa.int64()),  # media time that passed meanwhile
    ("segments", pa.uint32()),
    ("error", pa.string()),
)

# One row a request that a browser made in a visit. Times are CLOCK_MONOTONIC.
FETCHES = make_schema(
    ("trial", pa.string()),
    ("visit", pa.uint32()),
    ("warmup", pa.bool_()),
    ("fetch", pa.uint32()),  # ordinal in the visit, by start
    ("url", pa.string()),
    ("origin", pa.string()),  # host:port
    ("method", pa.string()),
    ("kind", pa.string()),  # document, stylesheet, script, image, font, media, xhr, fetch, manifest, other
    ("initiator", pa.string()),
    ("priority", pa.string()),
    ("render_blocking", pa.bool_()),
    ("connection", pa.uint32()),  # ordinal in the visit
    ("connection_reused", pa.bool_()),
    ("protocol", pa.string()),  # h1, h2, h3
    ("status", pa.uint16()),
    ("mime", pa.string()),
    ("started_ns", pa.int64()),  # handed to the network stack: what it waits for a connection counts
    ("dns_start_ns", pa.int64()),
    ("dns_end_ns", pa.int64()),
    ("connect_start_ns", pa.int64()),
    ("tcp_connected_ns", pa.int64()),
    ("secured_ns", pa.int64()),
    ("request_sent_ns", pa.int64()),
    ("first_byte_ns", pa.int64()),
    ("done_ns", pa.int64()),
    ("request_header_bytes", pa.int64()),
    ("header_bytes", pa.int64()),
    ("wire_bytes", pa.int64()),
    ("body_bytes", pa.int64()),
    ("decoded_bytes", pa.int64()),
    ("from_cache", pa.bool_()),
    ("resumed", pa.bool_()),
    ("zero_rtt", pa.bool_()),
    ("tls_version", pa.string()),
    ("cipher", pa.string()),
    ("missing", pa.bool_()),  # the recording has no answer to it
    ("rung", pa.int32()),  # of a video's segment: its place in the ladder, 0 the lowest
    ("segment", pa.int64()),
    ("media_ns", pa.int64()),  # how long the segment plays
    ("error", pa.string()),
)

# What a player did: samples four times a second and events as they happen.
PLAYBACK = make_schema(
    ("trial", pa.string()),
    ("visit", pa.uint32()),
    ("warmup", pa.bool_()),
    ("time_ns", pa.int64()),
    ("event", pa.string()),  # play, first_frame, sample, stall, resume, switch, ended, error
    ("position_ns", pa.int64()),
    ("buffer_ns", pa.int64()),  # media time ahead of the position
    ("rung", pa.int32()),
    ("bitrate_bits_per_s", pa.int64()),
    ("frames_shown", pa.int64()),
    ("frames_dropped", pa.int64()),
    ("live_latency_ns", pa.int64()),
)

BROWSER_TABLES = {"visits": VISITS, "fetches": FETCHES, "playback": PLAYBACK}
"""Files and views of a browser's visits."""
