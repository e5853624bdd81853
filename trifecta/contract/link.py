"""The link: what is asked of a path, and what it says that it did."""

from __future__ import annotations

from typing import Literal

from trifecta.contract.common import ProgramOutput, Quantiles, StrictConfig, Unsigned
from trifecta.contract.impairments import Impairment


class LinkConfig(StrictConfig, frozen=True, kw_only=True):
    """What a link is asked to do between two devices."""

    a_device: str
    b_device: str
    seed: Unsigned = 0
    split: Literal["merge", "real"] = "merge"
    a_to_b: tuple[Impairment, ...] = ()
    b_to_a: tuple[Impairment, ...] = ()
    log_file: str | None = None
    capture_file: str | None = None
    linger_ns: Unsigned = 0
    realtime: bool = True
    spin_ns: Unsigned = 60_000
    cpu: Unsigned | None = None
    memory_bytes: Unsigned = 1 << 30
    bridge: bool = False
    emulator: Literal["engine", "netem"] = "engine"


class LinkReady(ProgramOutput, kw_only=True):
    """The link carries packets."""

    a_device: str
    b_device: str
    realtime: bool
    memory_locked: bool
    short_slice: bool
    receive_buffer_bytes: Unsigned


class Netem(ProgramOutput, kw_only=True):
    """Which kernel's netem carried the packets, and how it was set up."""

    kernel: str
    commands: list[str]


class Refused(ProgramOutput, kw_only=True):
    """Frames that the link does not carry."""

    arp: Unsigned
    neighbour_discovery: Unsigned
    multicast: Unsigned
    other_protocol: Unsigned
    malformed: Unsigned


class ImpairmentSummary(ProgramOutput, kw_only=True):
    """What an impairment did; ``asked`` are its fields as it read them, of a list the length."""

    kind: str
    asked: dict[str, float | int | bool | str | None]
    met: Unsigned
    hit: Unsigned
    clamped: Unsigned
    queue_peak_bytes: Unsigned | None


class DirectionSummary(ProgramOutput, kw_only=True):
    """What became of the packets of a direction."""

    wire_packets: Unsigned
    wire_bytes: Unsigned
    super_packets: Unsigned
    delivered: Unsigned
    delivered_bytes: Unsigned
    lost: Unsigned
    queue_dropped: Unsigned
    corrupted: Unsigned
    duplicated: Unsigned
    reordered: Unsigned
    out_of_order: Unsigned
    memory_dropped: Unsigned
    in_flight: Unsigned
    delay_asked_ns: Unsigned
    delay_given_ns: Quantiles
    delay_scheduled_ns: Quantiles
    lateness_ns: Quantiles
    loss_asked: float
    loss_given: float | None
    rate_asked_bits_per_s: Unsigned | None
    rate_given_bits_per_s: float | None
    rate_busy_ns: Unsigned
    rate_busy_periods: Unsigned
    queue_peak_bytes: Unsigned | None
    device_drops: Unsigned
    transmit_drops: Unsigned
    send_errors: Unsigned
    refused: Refused
    impairments: list[ImpairmentSummary]
    truncated: Unsigned
    timestamps_replaced: Unsigned


class CaptureFacts(ProgramOutput, kw_only=True):
    """What the capture of a link holds, added once it was put together (docs/capture.md)."""

    packets: int
    comments: int
    keys: int
    whole: bool
    client_qlog: int | None = None


class LinkSummary(ProgramOutput, kw_only=True):
    """What a link did."""

    started_ns: Unsigned
    ended_ns: Unsigned
    ended: Literal["signal", "stdin", "device"]
    wall_ns: Unsigned
    cpu_user_ns: Unsigned
    cpu_system_ns: Unsigned
    max_rss_bytes: Unsigned
    realtime: bool
    memory_locked: bool
    short_slice: bool
    spin_ns: Unsigned
    split: Literal["merge", "real"]
    seed: Unsigned
    a_to_b: DirectionSummary
    b_to_a: DirectionSummary
    log_rows: Unsigned | None = None
    log_rows_dropped: Unsigned | None = None
    captured_packets: Unsigned | None = None
    capture_missed: Unsigned | None = None
    realtime_offset_ns: int | None = None
    neighbours_a_to_b: Unsigned | None = None
    neighbours_b_to_a: Unsigned | None = None
    netem: Netem | None = None
    """Where the kernel's netem did what was asked: it times no packet, so delays and lateness are empty."""

    # What the runner adds.
    run_delay_ns: int | None = None
    """Time ready to run without a CPU."""
    capture: CaptureFacts | None = None


class Links(ProgramOutput, kw_only=True):
    """What the links of several wires did, by the name of the wire."""

    links: dict[str, LinkSummary]
