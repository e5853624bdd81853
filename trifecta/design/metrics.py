"""Every metric of the project: its column, label, unit, direction, and how many values become one.

Whoever writes, compares or words a metric asks here: verdicts, the SQL of the report, the terminal, maps, published
claims. `TRIALS` are the columns of ``trials`` that a study can be judged by; `PAGE` and `VIDEO` are of visits,
`PACKETS` of captured trials, `SERVICES` of all services together, `SAMPLES` of single requests and processes, as
published studies have them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Unit = Literal["ns", "B", "bit/s", "1/s", "count", "ratio", "share"]
Better = Literal["less", "more", "neither"]


@dataclass(frozen=True)
class Wording:
    """How a difference in a metric is said: ``1.5× faster``, ``HTTP/3 was faster than HTTP/2``.

    ``better`` and ``worse`` follow a factor. After ``was`` (``is``) comes what an arm is or has; empty: ``better`` and
    ``worse`` themselves. ``{label}`` is the label.
    """

    better: str
    worse: str
    was: str = "was"
    is_: str = "is"
    has_better: str = ""
    has_worse: str = ""
    as_much: str = "as much"
    """What a ratio says, after ``0.70 ×``."""


TIME = Wording("faster", "slower", as_much="as long")
LESS = Wording("lower", "higher", "had", "has", "a lower {label}", "a higher {label}")
MORE = Wording("higher", "lower", "had", "has", "a higher {label}", "a lower {label}")
CPU = Wording("lower", "higher", "took", "takes", "less {label}", "more {label}")
REQUESTS = Wording("more", "fewer", "did", "does", "more {label}", "fewer {label}")


@dataclass(frozen=True)
class Metric:
    """A column that arms can be compared by.

    ``aggregate`` is how the values of a trial (requests, visits, connections) become one. ``quantile`` is set for
    percentiles: the share of requests that must have succeeded for it to exist; ``over_failures`` where failed requests
    count in it as infinitely long. ``asked`` is its name in study files, empty where no study can be judged by it.
    ``by_difference``: it can be zero (or is a share), so published claims and visits compare differences, not ratios.
    ``short`` is its name in the figure of ratios; without it it is not there. ``margin``: differences below this
    (ratio - 1) do not matter, where it is not the study's. ``phase``: the part of a request that it is of.
    """

    name: str
    label: str
    unit: Unit
    better: Better = "less"
    aggregate: str = "median"
    quantile: float | None = None
    over_failures: bool = False
    asked: str = ""
    wording: Wording = field(default=TIME)
    by_difference: bool = False
    short: str = ""
    margin: float | None = None
    phase: str = ""

    @property
    def lower_is_better(self) -> bool:
        """Whether a smaller value is the better one, as it is of all that is neither."""
        return self.better != "more"

    def word(self, kind: str) -> str:
        """What follows the factor of a verdict: ``faster`` and ``slower`` are better and worse by the metric."""
        return {"faster": self.wording.better, "slower": self.wording.worse}.get(kind, kind)

    def has(self, kind: str) -> str:
        """What an arm is or has by a verdict: ``faster``, ``a higher mean bitrate``."""
        said = {"faster": self.wording.has_better, "slower": self.wording.has_worse}.get(kind, "")
        return said.format(label=self.label) or self.word(kind)


def _trial(name: str, label: str, asked: str, *, phase: str = "", over_failures: bool = True) -> Metric:
    """The median of a time over a trial's requests or visits."""
    return Metric(name, label, "ns", quantile=0.50, over_failures=over_failures, asked=asked, phase=phase)


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
METRICS: dict[str, Metric] = {one.name: one for one in TRIALS}
"""Every metric a verdict can be asked for, by column name of ``trials``."""


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
    _count("later_to_first", "later requests by the first of a connection", "ratio"),
    _count("progression_range", "fastest by slowest progress", "ratio"),
    _count("progression_after_15_percent", "progress at the end by that at 15 %", "ratio"),
    Metric("cpu_share", "CPU", "share", aggregate="mean", wording=LESS),
    Metric("rss_bytes", "memory", "B", aggregate="maximum", wording=LESS),
)
SERVICES = (
    Metric("cpu_ns_per_request", "CPU of all services per request", "ns", aggregate="mean", wording=CPU),
    Metric("rss_bytes", "memory of all services", "B", aggregate="maximum", wording=LESS),
)
_ALL = (TRIALS, PAGE, VIDEO, PACKETS, SAMPLES, SERVICES)
BY_DIFFERENCE = frozenset(one.name for table in _ALL for one in table if one.by_difference)
MARGINS = {one.name: one.margin for table in _ALL for one in table if one.margin is not None}
MORE_IS_BETTER = tuple(one.name for one in TRIALS if one.better == "more")
"""Of the metrics of verdicts."""


def find(name: str) -> Metric | None:
    """The metric of that column, wherever it is; None for one that is not of this project."""
    return next((one for table in _ALL for one in table if one.name == name), None)


def label(name: str) -> str:
    """The metric in words; a column that nobody knows stays itself."""
    known = find(name)
    return known.label if known else name
