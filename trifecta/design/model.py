"""Plain records that every package shares.

Times are integers in nanoseconds (``_ns``), rates in bits per second, sizes in octets, probabilities in 0..1.
Words follow ``docs/architecture.md``: study, factor, treatment, cell, block, trial, check, verdict.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Protocol = Literal["h1", "h2", "h3"]
PROTOCOLS: tuple[Protocol, ...] = ("h1", "h2", "h3")
PROTOCOL_NAMES: dict[str, str] = {"h1": "HTTP/1.1", "h2": "HTTP/2", "h3": "HTTP/3"}
AA_SUFFIX = "#aa"  # arm name of the baseline's second run in a block: "h2#aa"
PROTOCOL_FACTOR = "protocol"  # what a study compares unless it says otherwise
CLIENT_FACTOR = "client"  # in a study, and in the keys of its cells, only when it is named
DEFAULT_CLIENT = "load"  # the engine's own

CheckStatus = Literal["pass", "warn", "fail", "unknown"]
VerdictKind = Literal["faster", "slower", "same", "undecided"]


@dataclass(frozen=True)
class TrialLength:
    """How long one trial is: it measures ``requests`` or ``duration_ns`` (0: no limit), whichever is first.

    The warm-up comes before that: its rows are kept and marked, but count for nothing.
    """

    requests: int = 0
    duration_ns: int = 0
    warmup_requests: int = 0
    warmup_ns: int = 0


@dataclass(frozen=True)
class PathSpec:
    """An impaired path between client and server.

    ``forward`` and ``backward`` are impairment documents of the engine's link, client to server and back, in order:
    they are what is carried out. The scalars say the same for reports and checks: ``rtt_ns`` is the constant delay of
    both directions together, ``rate_bits_per_s`` and ``queue_bytes`` are those of the slower direction, ``loss`` is
    the larger independent loss of the two. ``trial``, if given, replaces the workload's length on this path: for every
    connection mode, or for the modes it names. ``frames``: what hosts receive: super-packets, as from a device that
    merges frames (the impairments act on wire packets all the same), or every frame at a wire's size.
    """

    name: str
    rtt_ns: int = 0
    rate_bits_per_s: int | None = None
    queue_bytes: int | None = None
    loss: float = 0.0
    forward: tuple[dict[str, Any], ...] = ()
    backward: tuple[dict[str, Any], ...] = ()
    trial: TrialLength | Mapping[str, TrialLength] | None = None
    frames: Literal["merged", "wire"] = "merged"

    def length(self, connection: str) -> TrialLength | None:
        """How long a trial is here with this connection mode; None: as the workload says."""
        return self.trial.get(connection) if isinstance(self.trial, Mapping) else self.trial

    @property
    def impaired(self) -> bool:
        """Whether anything but the bare link is asked for."""
        return bool(self.forward or self.backward)

    @property
    def linked(self) -> bool:
        """Whether it takes a link to carry out; a lab of two hosts has one always."""
        return self.impaired or self.frames == "wire"


@dataclass(frozen=True)
class RequestsWorkload:
    """The workload ``requests``: what one trial asks of a server.

    ``in_flight`` requests are outstanding: on HTTP/1.1 as that many connections, on HTTP/2 and HTTP/3 as that many
    streams of one connection, unless ``connections`` and ``streams`` say otherwise; with a new connection per request,
    that many connections on every protocol. ``congestion_control`` and ``tls_version`` are one value for both
    transports, or ``TCP/QUIC`` (``trifecta.design.transports``). ``read_timeout_ns`` and ``write_timeout_ns`` are those
    of the server, None where it waits as long as it takes. ``client_cpu`` and ``server_cpu`` are the share of one
    core that the program may use, None where it is not limited. ``quinn`` says how the engine's QUIC library is adapted
    (``trifecta.design.quinn``).
    """

    method: str = "GET"
    response_bytes: int = 1000
    request_bytes: int = 0
    in_flight: int = 10
    connections: int | None = None
    streams: int | None = None
    loop: Literal["closed", "open"] = "closed"
    rate_per_s: float | None = None
    arrivals: Literal["constant", "poisson"] = "constant"
    requests: int = 0
    duration_ns: int = 0
    warmup_ns: int = 0
    warmup_requests: int = 0
    request_timeout_ns: int = 10_000_000_000
    connect_timeout_ns: int = 10_000_000_000
    resumption: bool = False
    zero_rtt: bool = False
    congestion_control: str = "cubic"
    tcp_nodelay: bool = True
    tls_version: str = "1.3"
    key_exchange: str = "X25519"
    quinn: str = "adapted"
    keylog: bool = False
    qlog: bool = False
    read_timeout_ns: int | None = None
    write_timeout_ns: int | None = None
    client_cpu: float | None = None
    server_cpu: float | None = None
    kind: Literal["requests", "chain", "fan-in", "sba-registration", "page", "video"] = "requests"


@dataclass(frozen=True)
class ServicesWorkload(RequestsWorkload):
    """The workloads ``chain``, ``fan-in`` and ``sba-registration``: what one request of a client makes services do.

    A *cycle* is one request of the client with every call that it causes (``trifecta.design.services`` has the graph).
    ``depth`` counts the services of a chain, the client included. ``inside`` says what the calls among the services
    speak: ``same`` as the client, or a protocol for each call behind the first, joined by ``+`` (one stands for all).
    ``hosts`` is the number of hosts the services are spread over, ``place`` how they run there. The path lies on every
    wire between hosts, or only on the one that ``impaired`` names by its services. ``clients`` of a fan-in each have
    a connection of their own and make ``requests`` each. ``messages`` is a folder of JSON files to send, else a
    message has ``request_bytes`` of filler. ``conntrack`` is the size of the table of connections on every host that
    serves: 0 for none, -1 where the table is there but the services bypass it.
    """

    method: str = "POST"
    response_bytes: int = 0
    request_bytes: int = 128
    in_flight: int = 1
    depth: int = 4
    inside: str = "same"
    hosts: int = 1
    place: Literal["native", "docker-host", "docker-bridge"] = "native"
    impaired: str = "all"
    clients: int = 1
    messages: str | None = None
    conntrack: str = "off"
    kind: Literal["requests", "chain", "fan-in", "sba-registration", "page", "video"] = "chain"


@dataclass(frozen=True)
class BrowserWorkload(RequestsWorkload):
    """What a browser does in a trial: ``visits`` one after the other, the first ``warmup_visits`` besides not measured.

    ``view``: ``cold``, with nothing kept from before; ``warm``, over connections that stand, with an empty HTTP cache;
    ``repeat``, over new connections, with the cache and the session tickets of a visit before. ``discovery``: the
    protocol is ``forced`` from the first request, or HTTP/3 is found by ``alt-svc`` (RFC 7838) after a TCP connection.
    The path lies on the wire ``impaired`` of the network client - router - switch - web and video, or on ``all``.
    ``settle_ns`` is how long a visit goes on after the page has loaded, for what comes late.
    """

    view: Literal["cold", "warm", "repeat"] = "cold"
    discovery: Literal["forced", "alt-svc"] = "forced"
    visits: int = 2
    warmup_visits: int = 1
    visit_timeout_ns: int = 60_000_000_000
    settle_ns: int = 500_000_000
    impaired: str = "client-router"


@dataclass(frozen=True)
class PageWorkload(BrowserWorkload):
    """The workload ``page``: a browser loads a page. ``page`` is a bundled one's name, or the folder of an archive."""

    page: str = "light"
    filmstrip: bool = True
    kind: Literal["requests", "chain", "fan-in", "sba-registration", "page", "video"] = "page"


@dataclass(frozen=True)
class VideoWorkload(BrowserWorkload):
    """The workload ``video``: a browser plays HLS for ``watch_ns`` of wall time.

    ``clip`` is a bundled one's name or a file. The ``ladder`` holds height in lines and bit/s of each rung, the lowest
    first; a segment plays for ``segment_ns``. ``mode``: all of it is there (``on-demand``), or it comes as it plays
    (``live``, from files; ``live-rtmp``, through nginx's RTMP module).
    """

    clip: str = "synthetic"
    mode: Literal["on-demand", "live", "live-rtmp"] = "on-demand"
    codec: Literal["h264", "vp9"] = "h264"
    ladder: tuple[tuple[int, int], ...] = ((240, 400_000), (480, 1_200_000), (720, 2_800_000))
    segment_ns: int = 3_000_000_000
    watch_ns: int = 90_000_000_000
    visits: int = 1
    warmup_visits: int = 0
    kind: Literal["requests", "chain", "fan-in", "sba-registration", "page", "video"] = "video"


@dataclass(frozen=True)
class Baseline:
    """The arm the others are compared with, a level of the compared factor; it runs twice in every block."""

    level: str = "h2"


@dataclass(frozen=True)
class Study:
    """A validated study: what is compared, how long, and how it is judged.

    ``compare`` is the factor whose levels are the arms; all others make the cells.
    """

    name: str
    title: str
    workload: RequestsWorkload
    factors: dict[str, tuple[Any, ...]]  # name -> levels, in order; "protocol", "path", "connection", "server", ...
    paths: dict[str, PathSpec]
    baseline: Baseline = field(default_factory=Baseline)
    compare: str = PROTOCOL_FACTOR
    metric: str = "latency_p50_ns"
    margin: float = 0.05
    confidence: float = 0.95
    min_blocks: int = 6
    max_blocks: int = 200
    budget_ns: int | None = None
    seed: int = 1
    description: str = ""
    conformance: Literal["off", "quick", "full"] = "quick"  # how much is probed before the trials
    capture: bool = False  # keep the packets of every trial, with the keys that open them
    give_up: bool = True  # end a cell none of whose first blocks can count, instead of giving it all of them
    captured_trials_count: bool = False  # let trials that were captured decide verdicts
    source: str = ""  # canonical YAML of the study as resolved

    @property
    def gives_verdicts(self) -> bool:
        """Whether its trials may count: capturing costs time, so captured ones do only where the study says so."""
        return not self.capture or self.captured_trials_count


@dataclass(frozen=True)
class Cell:
    """One combination of all factors but the compared one: the place in which arms are compared."""

    key: str  # "path=far,connection=new,server=caddy", keys in factor order; identity of the cell
    levels: dict[str, Any] = field(hash=False)


class Levelled:
    """What has a level of every factor; a study that does not name a client has the engine's own."""

    @property
    def levels(self) -> Mapping[str, Any]:
        """Every factor with its level."""
        raise NotImplementedError

    @property
    def protocol(self) -> Protocol:
        """The protocol."""
        found: Protocol = self.levels[PROTOCOL_FACTOR]
        return found

    @property
    def path(self) -> str:
        """The name of the path."""
        return str(self.levels["path"])

    @property
    def connection(self) -> str:
        """``new`` or ``reused``."""
        return str(self.levels.get("connection", "reused"))

    @property
    def server(self) -> str:
        """The name of the server."""
        return str(self.levels["server"])

    @property
    def client(self) -> str:
        """The name of the client."""
        return str(self.levels.get(CLIENT_FACTOR, DEFAULT_CLIENT))


@dataclass(frozen=True)
class Treatment(Levelled):
    """A cell and an arm: what is done to a trial. ``level`` is that of the compared factor, ``arm`` its text."""

    cell: Cell
    arm: str
    level: Any
    compare: str = PROTOCOL_FACTOR

    @property
    def levels(self) -> Mapping[str, Any]:
        """Every factor with its level, the compared one first."""
        return {self.compare: self.level, **self.cell.levels}


@dataclass(frozen=True)
class Trial(Levelled):
    """One treatment in one block: the unit of replication."""

    trial: str  # "t00012"
    block: int  # of its cell, from 0
    cell: Cell
    arm: str  # a level of the compared factor ("h1", "caddy"), or "<baseline>#aa"
    position: int  # order within the block
    seed: int  # impairment and arrival seed, the same for every arm of the block
    compare: str = PROTOCOL_FACTOR
    level: Any = None  # of the compared factor; None: the arm's name is the level

    @property
    def levels(self) -> Mapping[str, Any]:
        """Every factor with its level, the compared one first."""
        own = self.arm.removesuffix(AA_SUFFIX) if self.level is None else self.level
        return {self.compare: own, **self.cell.levels}

    @property
    def is_aa(self) -> bool:
        """Whether this is the baseline's second run."""
        return self.arm.endswith(AA_SUFFIX)


@dataclass(frozen=True)
class CheckResult:
    """A measured condition of validity with its evidence in words and, where there is one, as a number."""

    check: str  # "protocol", "path", "headroom", ...
    scope: str  # trial id, cell key, or "run"
    status: CheckStatus
    evidence: str  # one sentence with the measured numbers and units
    value: float | None = None
    limit: float | None = None
    remedy: str = ""


@dataclass(frozen=True)
class Verdict:
    """What can be said of one arm against another in one cell, for one metric.

    ``ratio`` is the median over blocks of arm / reference run; ``low`` and ``high`` its confidence sequence (valid at
    any stopping time) for this comparison by itself, ``family_low`` and ``family_high`` that among all comparisons of
    the study, on which the verdict rests. For a latency a ratio below 1 is *faster*. ``likely`` is what an undecided
    comparison would be by itself. ``mean_ratio`` is the geometric mean over blocks, with its own interval.
    """

    cell: str
    metric: str
    arm: str
    reference: str
    verdict: VerdictKind
    ratio: float | None
    low: float | None
    high: float | None
    blocks: int
    margin: float  # the margin in force (never below the noise floor), as a ratio - 1
    noise_floor: float | None  # ratio - 1 that this lab could have seen within a block of this cell
    e_value: float | None  # evidence against "no difference"
    weather_floor: float | None = None  # the same between blocks: other weather, another moment
    family_low: float | None = None
    family_high: float | None = None
    likely: Literal["faster", "slower", "same"] | None = None
    blocks_needed: int | None = None  # estimate, when undecided
    blocks_needed_low: int | None = None  # the range of that estimate, which holds in four of five cases
    blocks_needed_high: int | None = None
    mean_ratio: float | None = None
    mean_low: float | None = None
    mean_high: float | None = None
    modes: str = ""  # what trials stand apart from the others of their arm, in words
    fixed_ratio: float | None = None
    fixed_low: float | None = None
    fixed_high: float | None = None
    fixed_p: float | None = None
    invalid_trials: int = 0
    reason: str = ""  # one sentence: why this verdict
