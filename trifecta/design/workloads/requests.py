"""The workload of requests to one server: the base of all others, which say what is otherwise with them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

from trifecta.design import tuning
from trifecta.design.by_protocol import Octets, largest, octets_over
from trifecta.design.machine import MIDDLE, ROLES
from trifecta.design.path_spec import PathSpec
from trifecta.design.protocols import CONTENT_METHODS, SAFE_METHODS
from trifecta.design.transports import APART, BETWEEN, over
from trifecta.design.workloads import estimates
from trifecta.design.workloads.open_loop import OpenLoop

Family = Literal["requests", "services", "visits", "far", "far-visits"]
Problem = tuple[str, str]
"""The field at fault; what is wrong with it and how to mend it."""


@dataclass(frozen=True)
class RequestsWorkload:
    """The workload ``requests``: what one trial asks of a server.

    ``in_flight`` requests are outstanding: on HTTP/1.1 as that many connections, on HTTP/2 and HTTP/3 as that many
    streams of one connection, unless ``connections`` and ``streams`` say otherwise; with a new connection per request,
    that many connections on every protocol. ``congestion_control`` and ``tls_version`` are one value for both
    transports, or ``TCP/QUIC`` (``trifecta.design.transports``); ``response_bytes`` and ``request_bytes`` one for all
    protocols, or one for each (``trifecta.design.by_protocol``). ``read_timeout_ns`` and ``write_timeout_ns`` are those
    of the server, None where it waits as long as it takes. ``client_cpu`` and ``server_cpu`` are the share of one
    core that the program may use, None where it is not limited. ``load_balancer``: true where one stands before the
    server (``trifecta.lab.balancer``), else None. ``ip``: ``IPv6``, or None for IPv4 (``trifecta.design.ip``).
    ``quinn`` says how the engine's QUIC library is adapted (``trifecta.design.quinn``). What follows it to ``keylog``
    are switches of the transports, each the text of a study file, or None where it is as it is by itself
    (``trifecta.design.tuning``).
    """

    method: str = "GET"
    response_bytes: Octets = 1000
    request_bytes: Octets = 0
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
    initial_window: str | None = None
    pacing: str | None = None
    stream_window: str | None = None
    connection_window: str | None = None
    idle_window: str | None = None
    packet_threshold: str | None = None
    segmentation_offload: str | None = None
    ack_delay: str | None = None
    ack_packets: str | None = None
    tls_record: str | None = None
    tls_wait: str | None = None
    mtu: str | None = None
    udp_buffer: str | None = None
    keylog: bool = False
    qlog: bool = False
    read_timeout_ns: int | None = None
    write_timeout_ns: int | None = None
    client_cpu: float | None = None
    server_cpu: float | None = None
    load_balancer: bool | None = None
    ip: Literal["IPv6"] | None = None
    kind: str = "requests"

    # What its samples are.

    family: ClassVar[Family] = "requests"
    """Of which kind its work is: how it is carried out and what of it is checked goes by that, in tables."""
    outside: ClassVar[bool] = False
    """Whether its requests leave this machine: then nothing between is made here, and one side is all there is."""

    @property
    def distant(self) -> bool:
        """Whether its client asks from another machine than the one that runs the study, with a clock of its own."""
        return False

    visiting: ClassVar[bool] = False
    """Whether a browser makes its samples, which then are visits."""
    direct: ClassVar[bool] = True
    """Whether each of its samples is one request, which one server answers."""

    @property
    def first_method(self) -> str:
        """With which method the client itself asks."""
        return self.method

    @property
    def elsewhere_at(self) -> str | None:
        """The URL of what is asked for elsewhere; None where the servers are of the lab."""
        return None

    crowd: ClassVar[bool] = False
    """Whether many clients ask at once, each for itself, and share a core."""
    noun: ClassVar[str] = "requests"
    """What its samples are called."""

    @property
    def samples(self) -> int:
        """How many a trial has after the warm-up; 0 where its time is what ends it."""
        return self.requests

    @property
    def warmup_samples(self) -> int:
        """How many come before, where they are counted."""
        return self.warmup_requests

    @property
    def every_sample(self) -> int | None:
        """Both together; None where its time is what ends a trial."""
        return self.samples + self.warmup_samples if self.samples else None

    @property
    def calls(self) -> int:
        """How many requests one sample makes, one after the other, as far as estimates go."""
        return 1

    @property
    def crossing(self) -> int:
        """How many of them the path lies on."""
        return self.calls

    @property
    def octets(self) -> int | None:
        """Content of a trial's requests and answers; None where that is not known."""
        every = self.every_sample
        return None if every is None else every * self.calls * self._most_octets

    @property
    def _most_octets(self) -> int:
        """Content of a request and its answer, over the protocol that has most."""
        return largest(self.response_bytes) + largest(self.request_bytes)

    @property
    def sized_apart(self) -> list[str]:
        """The fields among ``response`` and ``request`` that it gives apart for each protocol."""
        sizes = {"response": self.response_bytes, "request": self.request_bytes}
        return [name for name, octets in sizes.items() if not isinstance(octets, int)]

    compared: ClassVar[tuple[str, ...]] = ("method", "response_bytes")
    """The attributes in which two arms must have been asked for the same before their answers are compared."""

    # What only browsers are asked for, as it is without one.

    @property
    def view(self) -> Literal["cold", "warm", "repeat"]:
        """What is kept of the sample before: nothing."""
        return "cold"

    @property
    def discovery(self) -> Literal["forced", "alt-svc"]:
        """How the protocol comes about: it is spoken from the first request on."""
        return "forced"

    plays: ClassVar[bool] = False
    """Whether its samples are watches of a video."""

    @property
    def films(self) -> bool:
        """Whether the film strip of a visit is kept."""
        return False

    @property
    def live(self) -> bool:
        """Whether what is played comes into being as it plays."""
        return False

    @property
    def ladder(self) -> tuple[tuple[int, int], ...]:
        """The rungs that a player chooses from."""
        return ()

    # Where it runs.

    @property
    def wires(self) -> tuple[str, ...]:
        """The wires between the client and all that it asks, from the client on; that of a lab of two hosts is ""."""
        return ("",)

    @property
    def impaired_wires(self) -> tuple[str, ...]:
        """Those on which the path lies."""
        return self.wires

    @property
    def place(self) -> str | None:
        """How its services run on their hosts; None where there are none."""
        return None

    @property
    def needs(self) -> tuple[tuple[str, str], ...]:
        """What not every machine has: a field, and what is asked for in it."""
        return (("load_balancer", "true"),) if self.load_balancer else ()

    # On hosts of a study's own.

    @property
    def placeable(self) -> tuple[str, ...]:
        """Who may have a machine in ``hosts``, whatever the levels of factors are."""
        return (*self.placed, MIDDLE)

    @property
    def placed(self) -> tuple[str, ...]:
        """Who needs a machine."""
        return ROLES

    def hosts_problem(self) -> Problem | None:
        """What it asks of a lab, which hosts are not."""
        return None

    # As a trial meets it.

    def completed(self) -> Self:
        """With what follows from its fields: of ``connections`` and ``streams`` both are given or neither."""
        if self.connections is not None and self.streams is None:
            return replace(self, streams=self.in_flight // self.connections)
        if self.streams is not None and self.connections is None:
            return replace(self, connections=self.in_flight // self.streams)
        return self

    @property
    def apart(self) -> list[str]:
        """The settings that it gives apart for TCP and QUIC."""
        return [name for name in APART if BETWEEN in (getattr(self, name) or "")]

    def for_protocol(self, protocol: str) -> Self:
        """As one protocol meets it, with one value of each setting."""
        values: dict[str, Any] = {name: over(getattr(self, name), protocol) for name in self.apart}
        return replace(self.sized_for(protocol), **values) if values else self.sized_for(protocol)

    def sized_for(self, protocol: str) -> Self:
        """With the sizes that one protocol has, and its settings as they are written."""
        if not self.sized_apart:
            return self
        request, response = (octets_over(one, protocol) for one in (self.request_bytes, self.response_bytes))
        return replace(self, request_bytes=request, response_bytes=response)

    # How long it takes.

    def least_ns(self, rtt_ns: int, protocol: str, connection: str) -> int:
        """The shortest time of a trial: its duration, or as many round trips as its requests need."""
        if self.requests == 0:
            return self.warmup_ns + self.duration_ns
        # One round trip for QUIC's handshake, two for TCP and TLS 1.3 (RFC 9001 section 4.1, RFC 8446 section 2).
        handshake = 0 if self.resumption else 1 if protocol == "h3" else 2
        rounds = math.ceil((self.warmup_requests + self.requests) / self.in_flight)
        round_trips = rounds * (1 + handshake) if connection == "new" else rounds + handshake
        if self.loop == "open" and self.rate_per_s:
            return max(round_trips * rtt_ns, int(self.requests / self.rate_per_s * 1e9))
        return min(round_trips * rtt_ns, self.duration_ns) if self.duration_ns else round_trips * rtt_ns

    def around_ns(self, client: str) -> int:
        """What it takes, by estimate, to start and end the programs of a trial that are no part of the engine."""
        return 0 if client in estimates.OWN else estimates.PROGRAM_NS

    def work_ns(self, path: PathSpec, connection: str, client: str) -> float:
        """What the samples of a trial take, by estimate."""
        limit = self.duration_ns + self.warmup_ns
        if not self.requests:
            return float(limit)
        round_trips = float(estimates.NEW_CONNECTION_ROUND_TRIPS if connection == "new" else 1)
        in_turn, abreast = self._paced()
        own_ns = self.calls * (round_trips * estimates.PYTHON_NS * ("python" in client) + estimates.REQUEST_NS)
        on_path_ns = self.crossing * round_trips * estimates.trip_ns(path)
        # Those that are under way together share what the path carries.
        every = self.crossing * (self.every_sample or 0)
        carried_ns = estimates.carrying_ns(
            every * largest(self.request_bytes), every * largest(self.response_bytes), path
        )
        ramps_ns = in_turn / abreast * self.crossing * estimates.ramp_ns(self._most_octets, path)
        needed_ns = in_turn / abreast * (own_ns + on_path_ns) + max(carried_ns, ramps_ns)
        return min(needed_ns, limit) if self.duration_ns else needed_ns

    concurrency_field: ClassVar[str] = "in_flight"
    """The field that says how many requests may be in flight."""

    def _paced(self) -> tuple[int, int]:
        """How many requests a trial makes, and how many of them at a time."""
        return self.requests + self.warmup_requests, max(1, self.in_flight)

    # What no program can carry out.

    def problem(self, protocols: Sequence[str], path: PathSpec) -> Problem | None:
        """What is impossible of it over these protocols and this path, found before anything is started."""
        return (
            self._transport_problem(protocols)
            or self._switch_problem(protocols, path)
            or self._concurrency_problem(protocols)
            or self._message_problem()
            or self._loop_problem(path)
        )

    def _transport_problem(self, protocols: Sequence[str]) -> Problem | None:
        if "h3" in protocols and over(self.tls_version, "h3") == "1.2":
            text = "HTTP/3 needs TLS 1.3 (RFC 9001 section 4.2); take HTTP/3 out of factors.protocol, or give '1.2/1.3'"
            return "tls_version", f"{text} (TCP/QUIC)"
        if (problem := self._apart_problem()) is not None:
            return problem
        if "1.2" in self.tls_version and self.key_exchange == "X25519MLKEM768":
            return "key_exchange", "X25519MLKEM768 needs TLS 1.3; use X25519"
        return self._early_data_problem() if self.zero_rtt else None

    def _switch_problem(self, protocols: Sequence[str], path: PathSpec) -> Problem | None:
        each = ((self.for_protocol(protocol), protocol) for protocol in protocols)
        problems = (tuning.problem(one, one.congestion_control, protocol, path.rtt_ns) for one, protocol in each)
        return next(filter(None, problems), None)

    def _apart_problem(self) -> Problem | None:
        if self.direct or not self.apart:
            return None
        return self.apart[0], f"one value for TCP and QUIC together: programs of the workload {self.kind!r} speak both"

    def program_problem(self, server: str, connection: str) -> Problem | None:
        """What is impossible of it with this level of the factor ``server``, and this way to use connections."""
        return None

    def _early_data_problem(self) -> Problem | None:
        if not self.resumption:
            return "zero_rtt", "early data needs a resumed session (RFC 8446 section 2.3); add 'resumption: true'"
        if self.tls_version != "1.3":
            return "zero_rtt", "early data needs TLS 1.3; use 'tls_version: 1.3'"
        if self.method not in SAFE_METHODS:
            return "zero_rtt", f"{self.method} may not be sent as early data (RFC 8470 section 4); use GET or HEAD"
        return None

    def _concurrency_problem(self, protocols: Sequence[str]) -> Problem | None:
        connections, streams, in_flight = self.connections, self.streams, self.in_flight
        if streams is not None and streams > 1 and "h1" in protocols:
            return "streams", f"HTTP/1.1 has no {streams} streams a connection; use in_flight, or take HTTP/1.1 out"
        if connections is not None and streams is not None and connections * streams != in_flight:
            return "in_flight", f"{in_flight} is not {connections} connections x {streams} streams; leave in_flight out"
        for field, number in (("connections", connections), ("streams", streams)):
            if number is not None and in_flight % number:
                text = f"{in_flight} requests in flight do not divide into {number} {field}; change one of the two"
                return field, text
        if connections is not None and connections != in_flight and "h1" in protocols:
            text = f"HTTP/1.1 needs {in_flight} connections for {in_flight} requests in flight; leave it out"
            return "connections", text
        if in_flight > 10_000:
            return "in_flight", "more than 10000 requests in flight; give fewer"
        return None

    def _message_problem(self) -> Problem | None:
        if self.request_bytes and self.method not in CONTENT_METHODS:
            return "request", f"a {self.method} carries no content here (RFC 9110 section 9.3); use POST, PUT or PATCH"
        problem = self._answer_problem()
        if problem is None and max(largest(self.response_bytes), largest(self.request_bytes)) > 10_000_000_000:
            return "response", "more than 10 GB a message; give less"
        return problem

    def _answer_problem(self) -> Problem | None:
        if self.method == "DELETE" and self.response_bytes:
            return "response", "a DELETE is answered 204 without content (RFC 9110 section 9.3.5); use 'response: 0 B'"
        return None

    def _loop_problem(self, path: PathSpec) -> Problem | None:
        if self.loop == "open" and self.rate_per_s is None:
            return "rate", "is missing; an open loop needs one, for example 'rate: 500/s'"
        if self.loop == "open":
            return self._open_loop(self.rate_per_s or 0.0).problem(path)
        if self.rate_per_s is not None:
            return "rate", "a closed loop sets its own pace; remove the rate, or add 'loop: open'"
        if self.arrivals != "constant":
            return "arrivals", "belongs to an open loop; remove it, or add 'loop: open'"
        return None

    def _open_loop(self, rate_per_s: float) -> OpenLoop:
        in_time = math.ceil(rate_per_s * (self.warmup_ns + self.duration_ns) / 1e9)
        counted = self.every_sample
        due = in_time if counted is None else min(counted, in_time) if self.duration_ns else counted
        sizes = largest(self.request_bytes), largest(self.response_bytes)
        return OpenLoop(rate_per_s, due, *sizes, self.crossing, self.completed().in_flight, self.concurrency_field)
