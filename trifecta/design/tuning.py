"""What a study exchanges of the transports: their windows, pace, loss detection, acknowledgements and records.

A workload has the text of a study file for each switch, and None where it is as it is by itself, so that the identity
of studies from before there were switches stays. What TCP and QUIC both have may be given apart, as ``TCP/QUIC``. For
TCP most of it is the kernel's and set for the hosts of the lab, whatever program runs there (`TcpSettings`); the rest
is told to the engine's own programs (`Tuning`), and others cannot be told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from trifecta.contract.common import Tuning
from trifecta.design import quantity, quinn
from trifecta.design.document import one_of
from trifecta.design.quantity import QuantityError
from trifecta.design.transports import BETWEEN, over

Setter = Literal["kernel", "engine"]
"""Who sets it: the kernel, for all programs alike, or the engine, for its own."""


@dataclass(frozen=True)
class TcpSettings:
    """What the kernel does for new TCP connections of all hosts."""

    initial_window: int | None = None
    """Packets; None: as many as the kernel has by itself, which are ten."""
    reordering: int = 3
    """Segments that may overtake another before it is taken for lost (net.ipv4.tcp_reordering)."""
    idle_restarts: bool = True
    """Whether a window begins anew after a rest (net.ipv4.tcp_slow_start_after_idle)."""
    mtu: int | None = None
    """Octets of the largest packet with its IP header, by the segment size that routes advertise; None: the wires'."""


@dataclass(frozen=True)
class Switch:
    """One of them: its field in a study file, how it is by itself there, and who sets it over which protocol."""

    name: str
    default: str
    one: Callable[[Any], str]
    """One value as a study file has it; QuantityError for what is none."""
    set_by: dict[str, Setter]
    """By protocol; one that is not there has nothing to set."""
    apart: bool = True
    """Whether TCP and QUIC may have their own."""
    of_client: bool = False
    """Whether it is the client's alone, so that no server is told."""

    def parse(self, value: Any) -> str | None:
        """The text that a workload has; None for how it is by itself."""
        halves = [self.one(half) for half in _halves(value)]
        if len(halves) > 2 or (len(halves) == 2 and not self.apart):
            remedy = "for both transports, or TCP/QUIC" if self.apart else "alone"
            raise QuantityError(f"{value!r} has {len(halves)} parts; give one value {remedy}")
        text = halves[0] if len(set(halves)) == 1 else BETWEEN.join(halves)
        return None if text == self.default else text

    def by_itself(self, protocol: str) -> str:
        """How it is where nothing is said, over a protocol."""
        return over(self.default, protocol)

    def format(self, value: str | None) -> str:
        """As a study file has it."""
        return self.default if value is None else value


def _halves(value: Any) -> list[Any]:
    return [half.strip() for half in value.split(BETWEEN)] if isinstance(value, str) else [value]


def _count(what: str, least: int, most: int) -> Callable[[Any], str]:
    def one(value: Any) -> str:
        count = quantity.parse_count(value)
        if not least <= count <= most:
            raise QuantityError(f"{value!r} is not a number of {what}; give {least} to {most}")
        return str(count)

    return one


def _size(least: int, most: int, why: str) -> Callable[[Any], str]:
    """A size within limits, or ``none``."""

    def one(value: Any) -> str:
        if value == "none":
            return "none"
        octets = quantity.parse_size_bytes(value)
        if not least <= octets <= most:
            limits = f"{quantity.format_size(least)} to {quantity.format_size(most)}"
            raise QuantityError(f"{value!r} is out of range; give {limits}{why}, or 'none'")
        return quantity.format_size(octets)

    return one


def _ack_delay(value: Any) -> str:
    time_ns = quantity.parse_time_ns(value)
    if not _LEAST_ACK_DELAY_NS <= time_ns <= _MOST_ACK_DELAY_NS:
        raise QuantityError(f"{value!r} is no delay of acknowledgements that can be asked for; give 1 ms to 1 s")
    return quantity.format_time(time_ns)


def _wait(value: Any) -> str:
    """A time within limits, or ``none``."""
    if value == "none":
        return "none"
    time_ns = quantity.parse_time_ns(value)
    if not _LEAST_WAIT_NS <= time_ns <= _MOST_WAIT_NS:
        raise QuantityError(f"{value!r} is out of range; give 1 ms to 10 s, or 'none'")
    return quantity.format_time(time_ns)


def _word(what: str, *choices: str) -> Callable[[Any], str]:
    one = one_of(what, *choices)
    # Readers of YAML 1.1, and Python, have `on` and `off` as true and false.
    return lambda value: one(("off", "on")[value] if isinstance(value, bool) else value)


_QUIC: dict[str, Setter] = {"h3": "engine"}
_OVER_TCP_KERNEL: dict[str, Setter] = {"h1": "kernel", "h2": "kernel", **_QUIC}
_BOTH: dict[str, Setter] = {"h1": "engine", "h2": "engine", **_QUIC}
_STREAMS: dict[str, Setter] = {"h2": "engine", **_QUIC}
_TLS_OVER_TCP: dict[str, Setter] = {"h1": "engine", "h2": "engine"}
_LARGEST_WINDOW = 10**9
_LEAST_ACK_DELAY_NS, _MOST_ACK_DELAY_NS = 1_000_000, 1_000_000_000
_LEAST_WAIT_NS, _MOST_WAIT_NS = 1_000_000, 10_000_000_000
_WIRE_MTU = 1500
_QUIC_HEADERS = 48  # of IPv6 and UDP: what of a packet is no payload, whichever IP it is
_ALWAYS_ASKED_NS = 25_000_000  # quinn-proto asks its peer for more only up to the round trip

SWITCHES: dict[str, Switch] = {
    switch.name: switch
    for switch in (
        Switch("initial_window", "10", _count("packets of a window", 2, 1000), _OVER_TCP_KERNEL),
        Switch("pacing", "off/on", _word("a pace", "on", "off"), _BOTH),
        Switch("stream_window", "none", _size(1000, _LARGEST_WINDOW, ""), _STREAMS),
        Switch(
            "connection_window",
            "none",
            _size(65_535, _LARGEST_WINDOW, " (HTTP/2 begins with 65,535 octets, RFC 9113 section 6.9.2)"),
            _STREAMS,
        ),
        Switch("idle_window", "restart/keep", _word("what a window does", "restart", "keep"), _OVER_TCP_KERNEL),
        Switch("packet_threshold", "3", _count("packets", 3, 1000), _OVER_TCP_KERNEL),
        Switch("segmentation_offload", "on", _word("a state of an offload", "on", "off"), _QUIC, apart=False),
        Switch("ack_delay", "25 ms", _ack_delay, _QUIC, apart=False),
        Switch("ack_packets", "2", _count("packets", 1, 1000), _QUIC, apart=False),
        Switch("tls_record", "none", _size(64, 16_384, " of plaintext"), _TLS_OVER_TCP, apart=False),
        Switch("tls_wait", "none", _wait, _TLS_OVER_TCP, apart=False, of_client=True),
        Switch("mtu", str(_WIRE_MTU), _count("octets of a packet", 1280, _WIRE_MTU), _OVER_TCP_KERNEL, apart=False),
        Switch("udp_buffer", "none", _size(4096, _LARGEST_WINDOW, ""), _QUIC, apart=False),
    )
}


class TransportTuning(Protocol):
    """What a workload says of the switches, over one transport."""

    @property
    def quinn(self) -> str:
        """How the engine's QUIC library is adapted."""

    @property
    def initial_window(self) -> str | None:
        """Packets of the first congestion window."""

    @property
    def pacing(self) -> str | None:
        """Whether packets are spread over the round trip."""

    @property
    def stream_window(self) -> str | None:
        """Octets that may come on a stream before its receiver asks for more."""

    @property
    def connection_window(self) -> str | None:
        """The same of all streams of a connection."""

    @property
    def idle_window(self) -> str | None:
        """What the window does after a rest."""

    @property
    def packet_threshold(self) -> str | None:
        """Packets that may overtake another before it is taken for lost."""

    @property
    def segmentation_offload(self) -> str | None:
        """Whether the kernel cuts trains of datagrams."""

    @property
    def ack_delay(self) -> str | None:
        """How long a receiver of QUIC packets may wait before it acknowledges them."""

    @property
    def ack_packets(self) -> str | None:
        """How many of them it acknowledges at once."""

    @property
    def tls_record(self) -> str | None:
        """Octets of plaintext in the largest TLS record over TCP."""

    @property
    def tls_wait(self) -> str | None:
        """How long a client waits before TLS over TCP."""

    @property
    def mtu(self) -> str | None:
        """Octets of the largest packet."""

    @property
    def udp_buffer(self) -> str | None:
        """Octets that a QUIC socket holds until its program reads them."""


def engine(tuning: TransportTuning) -> Tuning:
    """What the engine's programs are told."""
    return Tuning(
        initial_window_packets=_as_int(tuning.initial_window),
        pacing=_on(tuning.pacing),
        stream_window_bytes=_octets(tuning.stream_window),
        connection_window_bytes=_octets(tuning.connection_window),
        idle_window_restarts=None if tuning.idle_window is None else tuning.idle_window == "restart",
        packet_threshold=_as_int(tuning.packet_threshold),
        segmentation_offload=_on(tuning.segmentation_offload),
        ack_delay_ns=None if tuning.ack_delay is None else quantity.parse_time_ns(tuning.ack_delay),
        ack_packets=_as_int(tuning.ack_packets),
        tls_record_bytes=_octets(tuning.tls_record),
        tls_wait_ns=None if tuning.tls_wait is None else quantity.parse_time_ns(tuning.tls_wait),
        udp_payload_bytes=None if tuning.mtu is None else int(tuning.mtu) - _QUIC_HEADERS,
        udp_buffer_bytes=_octets(tuning.udp_buffer),
    )


def kernel(tuning: TransportTuning) -> TcpSettings:
    """What the kernel is told for TCP."""
    own = TcpSettings()
    return TcpSettings(
        initial_window=_as_int(tuning.initial_window),
        reordering=_as_int(tuning.packet_threshold) or own.reordering,
        idle_restarts=tuning.idle_window != "keep",
        mtu=_as_int(tuning.mtu),
    )


def of_programs(tuning: TransportTuning, protocol: str) -> list[Switch]:
    """The switches that are not as they are by themselves, and that a program must be told over this protocol."""
    every = [one for one in SWITCHES.values() if getattr(tuning, one.name) not in (None, one.by_itself(protocol))]
    return [one for one in every if one.set_by.get(protocol) == "engine"]


def _as_int(text: str | None) -> int | None:
    return None if text is None else int(text)


def _octets(text: str | None) -> int | None:
    return None if text is None or text == "none" else quantity.parse_size_bytes(text)


def _on(text: str | None) -> bool | None:
    return None if text is None else text == "on"


def problem(tuning: TransportTuning, congestion_control: str, protocol: str, rtt_ns: int) -> tuple[str, str] | None:
    """What is impossible of the switches over a protocol: the field at fault, and how to mend it."""
    if tuning.idle_window == "restart" and congestion_control == "bbr":
        return "idle_window", "BBR keeps its window after a rest; use another congestion_control, or 'keep'"
    if tuning.idle_window == "restart" and protocol == "h3" and "window-validation" not in quinn.names(tuning.quinn):
        return (
            "idle_window",
            "QUIC's window restarts with window-validation only; add it to 'quinn', or use 'keep'",
        )
    if tuning.pacing == "off" and congestion_control == "bbr" and protocol != "h3":
        return (
            "pacing",
            "BBR over TCP has a pace of its own; use another congestion_control, or leave it out",
        )
    return None if protocol != "h3" else _ack_problem(tuning, rtt_ns)


def _ack_problem(tuning: TransportTuning, rtt_ns: int) -> tuple[str, str] | None:
    delay_ns = 0 if tuning.ack_delay is None else quantity.parse_time_ns(tuning.ack_delay)
    if delay_ns <= max(_ALWAYS_ASKED_NS, rtt_ns):
        return None
    text = "quinn-proto asks for no more than 25 ms or the path's round trip, whichever is longer"
    return "ack_delay", f"{text}; give less, or a path with a longer one"
