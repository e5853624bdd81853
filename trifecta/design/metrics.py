"""Every metric of the project: its column, label, unit, direction, and how many values become one.

Whoever writes, compares or words a metric asks here: verdicts, the SQL of the report, the terminal, maps, published
claims. `TRIALS` are the columns of ``trials`` that a study can be judged by; `PAGE` and `VIDEO` are of visits,
`PACKETS` of captured trials, `SERVICES` of all services together, `SAMPLES` of single requests and processes, as
published studies have them. `ABOUT` says of each what is measured; docs/metrics.md is made of it.
"""

from __future__ import annotations

import re
from dataclasses import replace

from trifecta.design.errors import UserError
from trifecta.design.metric import CPU, LESS, MORE, REQUESTS, Better, Metric, Unit
from trifecta.entries import Registry


def _trial(name: str, label: str, measure: str, *, phase: str = "", over_failures: bool = True) -> Metric:
    """The median of a time over a trial's requests or visits."""
    return Metric(name, label, "ns", quantile=0.50, over_failures=over_failures, asked=measure, phase=phase)


TRIALS = (
    _trial("latency_p50_ns", "median latency", "latency_p50"),
    Metric("latency_p95_ns", "95th percentile of latency", "ns", "less", "p95", 0.95, True, "latency_p95"),
    Metric("latency_p99_ns", "99th percentile of latency", "ns", "less", "p99", 0.99, True, "latency_p99"),
    Metric("latency_mean_ns", "mean latency", "ns", "less", "mean", 1.0, True, "latency_mean"),
    Metric(
        "requests_per_s", "requests per second", "1/s", "more", "rate", asked="requests_per_s", wording=REQUESTS
    ),
    Metric(
        "success_rate", "success rate", "share", "more", "mean", asked="success_rate", wording=MORE, by_difference=True
    ),
    Metric(
        "client_cpu_ns_per_request", "client CPU per request", "ns", "less", "mean", asked="client_cpu_per_request",
        wording=CPU,
    ),
    Metric(
        "server_cpu_ns_per_request", "server CPU per request", "ns", "less", "mean", asked="server_cpu_per_request",
        wording=CPU,
    ),
    _trial("ttfb_p50_ns", "median time to first byte", "ttfb_p50", over_failures=False),
    _trial("connect_p50_ns", "median connect time", "", phase="connecting", over_failures=False),
    _trial("tls_p50_ns", "median TLS handshake time", "", phase="the TLS handshake", over_failures=False),
    _trial("wait_p50_ns", "median wait", "", phase="the wait for the first octet", over_failures=False),
    _trial("transfer_p50_ns", "median transfer time", "", phase="the transfer", over_failures=False),
    _trial("dom_content_loaded_p50_ns", "median time to DOMContentLoaded", "dom_content_loaded_p50"),
    _trial("fcp_p50_ns", "median first contentful paint", "fcp_p50"),
    _trial("lcp_p50_ns", "median largest contentful paint", "lcp_p50"),
    Metric("speed_index_p50_ns", "median Speed Index", "ns", asked="speed_index_p50"),
    Metric(
        "live_latency_p50_ns", "median live latency", "ns", quantile=0.50, over_failures=True,
        asked="live_latency_p50", wording=LESS,
    ),
    Metric(
        "bitrate_mean_bits_per_s", "mean bitrate shown", "bit/s", "more", "mean", asked="bitrate_mean", wording=MORE
    ),
)  # fmt: skip


def _zero(name: str, label: str, unit: Unit = "count", better: Better = "less") -> Metric:
    return Metric(name, label, unit, better, "mean", by_difference=True, wording=LESS)


def _count(name: str, label: str, unit: Unit = "count", *, short: str = "", margin: float | None = None) -> Metric:
    return Metric(name, label, unit, "neither", wording=LESS, short=short, margin=margin)


_CPU = Metric("browser_cpu_ns", "CPU of the browser", "ns", wording=CPU, short="CPU of the browser")
_REQUESTS = _count("requests", "requests")
_CONNECTIONS = _count("connections", "connections")
PAGE = (
    Metric("ttfb_ns", "time to first byte (TTFB)", "ns", short="TTFB"),
    Metric("dns_ns", "DNS", "ns"),
    Metric("connect_ns", "connect, with TLS", "ns"),
    Metric("tls_ns", "of it TLS; of QUIC all", "ns"),
    Metric("request_ns", "request and wait", "ns"),
    Metric("response_ns", "response of the document", "ns"),
    Metric("fcp_ns", "first contentful paint (FCP)", "ns", short="FCP"),
    Metric("dom_content_loaded_ns", "DOMContentLoaded", "ns", short="DOMContentLoaded"),
    Metric("lcp_ns", "largest contentful paint (LCP)", "ns", short="LCP"),
    Metric("speed_index_ns", "Speed Index, of filmed visits", "ns", short="Speed Index"),
    Metric("visually_complete_ns", "visually complete, of filmed visits", "ns"),
    Metric("load_ns", "load", "ns", short="load"),
    _count("wire_bytes", "page weight, as sent", "B", short="page weight", margin=0.01),
    _REQUESTS,
    _CONNECTIONS,
    _zero("tcp_connections", "of them TCP", better="neither"),
    _zero("resumed_connections", "of them resumed", better="neither"),
    _CPU,
)
VIDEO = (
    Metric("startup_ns", "startup: play to first frame", "ns", short="startup"),
    Metric("live_latency_ns", "live latency", "ns", wording=LESS, short="live latency"),
    _zero("rebuffers", "stalls"),
    _zero("rebuffer_ns", "time stalled", "ns"),
    Metric("bitrate_bits_per_s", "bitrate shown", "bit/s", "more", wording=MORE, short="bitrate shown"),
    _zero("switches", "switches of rung"),
    Metric("segment_ns", "download of a segment", "ns", short="download of a segment"),
    Metric("segment_ttfb_ns", "first octet of a segment", "ns"),
    Metric("throughput_bits_per_s", "throughput of a segment", "bit/s", "more", wording=MORE, short="throughput"),
    _count("segments", "segments"),
    Metric("frames_shown", "frames shown", "count", "more", wording=MORE),
    _zero("frames_dropped", "frames dropped"),
    _zero("frames_dropped_floor", "of them the machine's own", better="neither"),
    _REQUESTS,
    _CONNECTIONS,
    _CPU,
)
PACKETS = (
    Metric("duration_ns", "first packet to last packet", "ns", short="duration"),
    Metric("setup_ns", "connection's first packet to first request", "ns"),
    Metric("first_response_ns", "connection's first packet to first response octet", "ns", short="first response"),
    _count("setup_packets", "packets until the first response octet", short="packets until it", margin=0.01),
    _count("setup_bytes", "octets on the wire until it", "B"),
    _CONNECTIONS,
    _count("packets", "packets", margin=0.01),
    _count("packets_up", "of them from the client"),
    _count("wire_bytes", "octets on the wire", "B", short="octets on the wire", margin=0.01),
    _count("content_bytes", "octets of content", "B"),
    _count("largest_bytes", "largest packet", "B"),
    _count("request_packets", "packets up to the first request octet", short="packets up to the request"),
    _count("setup_round_trips", "round trips until the first response octet"),
    _count("setup_ratio", "time until it, by the least that the protocol needs", "ratio"),
    _count("again_kept", "later request: first window by the one before", "ratio", short="window kept"),
    _zero("again_ramp_ns", "later request: time until that window is back", "ns"),
    _zero("by_others_ns", "head-of-line blocking by other streams, a request", "ns"),
    _zero("by_others_share", "the same, by the time of the request", "share"),
    _zero("by_own_ns", "waiting for octets of its own, a request", "ns"),
    _zero("flow_control_ns", "flow control kept responses back", "ns"),
    _count("packets_per_ack", "packets with data for each acknowledgement"),
    _zero("lost", "packets lost on the path"),
    _zero("again", "TCP segments with octets sent before"),
    _zero("spurious", "packets with only octets that had arrived"),
    Metric("repair_ns", "from sending what was lost until its octets were there", "ns"),
    _zero("timeouts", "retransmission timeouts (RTO)"),
    _zero("probes", "probe timeouts (TLP, PTO)"),
)
SAMPLES = (
    Metric("latency_min_ns", "shortest latency", "ns", aggregate="minimum"),
    Metric("latency_max_ns", "longest latency", "ns", aggregate="maximum"),
    Metric("latency_mode_ns", "most frequent latency", "ns", aggregate="mode"),
    Metric("latency_spread_ns", "10th to 90th percentile of latency", "ns", aggregate="p90 - p10", wording=LESS),
    Metric("tcp_ns", "TCP handshake", "ns"),
    _count("later_to_first", "transfer of later answers by the first of a connection", "ratio"),
    Metric("progression_mean", "mean of the progression", "1/s", "more", aggregate="mean", wording=REQUESTS),
    _count("progression_range", "fastest by slowest progress", "ratio"),
    _count("progression_after_15_percent", "progress at the end by that at 15 %", "ratio"),
    Metric("cpu_share", "CPU", "share", aggregate="mean", wording=LESS),
    Metric("elapsed_ns", "elapsed time", "ns"),
    Metric("rss_bytes", "memory", "B", aggregate="maximum", wording=LESS),
)
SERVICES = (
    Metric("cpu_ns_per_request", "CPU of all services per request", "ns", aggregate="mean", wording=CPU),
    Metric("rss_bytes", "memory of all services", "B", aggregate="maximum", wording=LESS),
)
EVERY = (TRIALS, PAGE, VIDEO, PACKETS, SAMPLES, SERVICES)
_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")


def _adopt(name: str, metric: Metric, _package: str) -> Metric:
    """A metric of another package: it says what it is, and how it is worked out."""
    if metric.name != name or not _NAME.fullmatch(name):
        raise ValueError(f"calls itself {metric.name!r}; name and entry point must be one word of a-z, 0-9 and _")
    lacking = [part for part in ("asked", "about", "sql") if not getattr(metric, part)]
    if lacking:
        raise ValueError(f"has no {' and no '.join(lacking)}")
    if metric.asked in {one.asked for one in TRIALS}:
        raise ValueError(f"is asked for as {metric.asked!r}, which another metric is")
    return metric


METRICS: Registry[Metric] = Registry(
    "metric",
    {one.name: one for one in TRIALS},
    Metric,
    _adopt,
    error=UserError,
    taken={one.name for table in EVERY for one in table},
)
"""Every metric a verdict can be asked for, by column name of ``trials``; entry points of ``trifecta.metrics`` last."""

OF_SERVICES: dict[str, Metric] = {one.name: one for one in SERVICES}


def metric_named(name: str) -> Metric:
    """A metric of a trial, or of all its services together."""
    return METRICS[name] if name in METRICS else OF_SERVICES[name]


def asked_for(word: str) -> Metric | None:
    """The metric that a study file calls so; None where there is none."""
    own = next((one for one in TRIALS if one.asked == word), None)
    return own or next((one for one in METRICS.values() if one.asked and one.asked == word), None)


BY_DIFFERENCE = frozenset(one.name for table in EVERY for one in table if one.by_difference)
MARGINS = {one.name: one.margin for table in EVERY for one in table if one.margin is not None}


def of_all(name: str) -> str:
    """The metric that one of a part is of: ``cpu_share`` of ``cpu_share[B]``."""
    return name.partition("[")[0]


def find(name: str) -> Metric | None:
    """The metric of that column, wherever it is, also of a part (``cpu_share[B]``); None for one that is not of this
    project.
    """
    metric_name, _, part = name.removesuffix("]").partition("[")
    if part:
        known = find(metric_name)
        return None if known is None else replace(known, name=name, label=f"{known.label} of {part}")
    return next((one for table in EVERY for one in table if one.name == name), None) or METRICS.get(name)


def unit(name: str) -> str:
    """The unit of a metric; of one that nobody knows the one at its name's end, where that is ns."""
    known = find(name)
    return known.unit if known else "ns" if name.endswith("_ns") else ""


def label(name: str) -> str:
    """The metric in words; a column that nobody knows stays itself."""
    known = find(name)
    return known.label if known else name


_ABOUT = """
latency_p50_ns: from the start of a request (in an open loop: when it was due) to its last octet; of a page to its load
latency_p95_ns: the same, exceeded by one request in twenty; needs 20 requests
latency_p99_ns: the same, exceeded by one request in a hundred; needs 100 requests
latency_mean_ns: the mean of the same; there is none where a request failed
requests_per_s: requests that succeeded, by the time from first start to last end, failures included
success_rate: requests that succeeded, by those that were made
client_cpu_ns_per_request: CPU time of the client, without its start where that is known, by requests
server_cpu_ns_per_request: CPU time of the server (of a proxy the proxy's alone), by requests
ttfb_p50_ns: from the start of a request to the first octet of its answer
connect_p50_ns: from the start of a connection until TCP is connected; null over QUIC
tls_p50_ns: from there, over QUIC from the start of the connection, until the handshake is done
wait_p50_ns: from the last octet of the request sent to the first octet of its answer
transfer_p50_ns: from the first octet of an answer to its last
dom_content_loaded_p50_ns: median of dom_content_loaded_ns over a trial's visits
fcp_p50_ns: median of fcp_ns over a trial's visits
lcp_p50_ns: median of lcp_ns over a trial's visits
speed_index_p50_ns: median of speed_index_ns over a trial's filmed visits
live_latency_p50_ns: median of live_latency_ns over a trial's visits
bitrate_mean_bits_per_s: mean of bitrate_bits_per_s over a trial's visits
ttfb_ns: start of the navigation to the first octet of the document's answer, connecting included (Navigation Timing 2)
dns_ns: name look-up of the document's host
connect_ns: connect of the document, its handshake included
tls_ns: of it the TLS handshake; over QUIC all of it
request_ns: from the request's first octet sent to the first octet of the answer, of the document
response_ns: from there to the last octet, of the document
fcp_ns: first text or image painted (Paint Timing)
dom_content_loaded_ns: the document is parsed and its deferred scripts ran (HTML Standard, domContentLoadedEventEnd)
lcp_ns: the largest text or image in the viewport, the last candidate within the visit (Largest Contentful Paint)
speed_index_ns: area above the curve of visual progress, from a film strip by colour histograms (WebPageTest)
visually_complete_ns: when 99.9 % of the visual progress is made
load_ns: end of the load event (HTML Standard, loadEventEnd)
wire_bytes: heads and content as sent; of packets, all octets of their frames
requests: requests of a visit
connections: connections that were opened
tcp_connections: those over TCP
resumed_connections: those that resumed a TLS session
browser_cpu_ns: CPU time of the browser, all its processes, until the load event; of a video until the end of the watch
startup_ns: play to the first frame shown (CTA-2066)
live_latency_ns: behind the moment a frame was packaged, by EXT-X-PROGRAM-DATE-TIME on one clock (RFC 8216, 4.3.2.6)
rebuffers: how often play stood still for want of data after it had begun (CTA-2066)
rebuffer_ns: how long it did; a stall that is open at the end counts as long as it was seen
bitrate_bits_per_s: of the rungs shown, weighted by the time each was (CTA-2066)
switches: changes of rung
segment_ns: from the request of a segment to its last octet
segment_ttfb_ns: from the request of a segment to its first octet
throughput_bits_per_s: octets of a segment by its download time
segments: media segments that were asked for
frames_shown: frames that the player showed
frames_dropped: frames that it decoded and did not show
frames_dropped_floor: those that this machine drops of the same video without a network
duration_ns: from the first packet of a capture to its last
setup_ns: from a connection's first packet (SYN, Initial) to the packet with the first octet of its first request
first_response_ns: from a connection's first packet to the one with the first octet of a response
setup_packets: packets that had passed the client by then, both directions
setup_bytes: octets of their frames
packets: packets seen at the client
packets_up: those that the client sent
content_bytes: content of messages (RFC 9110, 6.4)
largest_bytes: octets of the largest frame
request_packets: packets of a connection, both directions, up to the first octet of its first request
setup_round_trips: how often the client got something that carries the set-up on after it had sent something, plus one
setup_ratio: time to the first octet of the response by the minimum round trips of the protocol times the RTT
again_kept: window of the first round trip of a later response, by the largest of the last three of the one before
again_ramp_ns: from a later response's first octet until a round trip began with 75 % of the window before
by_others_ns: time of a request in which octets waited for octets of others (RFC 9293, 3.4); see packets.md
by_others_share: by_others_ns of the response by the time of the request
by_own_ns: time of a request in which octets waited for earlier ones of their own stream
flow_control_ns: silences of the sender in which a window of the receiver was full (RFC 9113, 6.9; RFC 9000, 4.1)
packets_per_ack: packets with data that arrived, by acknowledgements (RFC 5681, 4.2; RFC 9000, 13.2.2)
lost: packets that the link dropped or corrupted
again: TCP segments with an octet that was sent before
spurious: packets sent again whose repeated octets had all arrived
repair_ns: from sending a packet that was lost until all its octets had arrived
timeouts: expiries of the retransmission timer (RFC 6298)
probes: tail loss probes (RFC 8985, 7) and probe timeouts (RFC 9002, 6.2), those more than 1 ms apart
latency_min_ns: the shortest of a trial's requests
latency_max_ns: the longest of a trial's requests
latency_mode_ns: the most frequent latency, of a histogram
latency_spread_ns: 90th percentile less 10th
tcp_ns: from the start of a connection until TCP is connected
later_to_first: median time from first to last octet of later answers of a connection by that of its first
progression_mean: requests done by the time since the first was sent, after each request: the mean of these rates
progression_range: the highest such rate by the lowest
progression_after_15_percent: the same rate at the end by that when 15 % of the requests were done
cpu_share: CPU time of a process by time
elapsed_ns: from a service's call until the other has it, or from its answer until that is back
rss_bytes: resident memory, the most of a trial
cpu_ns_per_request: CPU time of all services by requests of the client
"""
ABOUT: dict[str, str] = dict(line.split(": ", 1) for line in _ABOUT.strip().splitlines())
"""What is measured, by the metric's name."""
