"""The link: what is asked of a path, and what it says that it did."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from trifecta.contract.common import Asked, Quantiles, Told, Unsigned


class Delay(Asked, tag_field="kind", tag="delay", frozen=True, kw_only=True):
    """A fixed delay."""

    delay_ns: Unsigned


class Jitter(Asked, tag_field="kind", tag="jitter", frozen=True, kw_only=True):
    """A random delay; which of the times is there depends on the distribution."""

    distribution: Literal["normal", "uniform", "pareto", "table"]
    sigma_ns: Unsigned | UnsetType = UNSET
    range_ns: Unsigned | UnsetType = UNSET
    scale_ns: Unsigned | UnsetType = UNSET
    shape: float | UnsetType = UNSET
    table_ns: list[int] | UnsetType = UNSET
    reorder: bool | UnsetType = UNSET


class Loss(Asked, tag_field="kind", tag="loss", frozen=True, kw_only=True):
    """Independent losses."""

    probability: float


class GilbertElliott(Asked, tag_field="kind", tag="gilbert_elliott", frozen=True, kw_only=True):
    """Losses in bursts."""

    good_to_bad: float
    bad_to_good: float
    loss_good: float | UnsetType = UNSET
    loss_bad: float | UnsetType = UNSET


class LossSchedule(Asked, tag_field="kind", tag="loss_schedule", frozen=True, kw_only=True):
    """Losses of named packets, by their ordinal from 0."""

    drop: list[Unsigned]


class Corrupt(Asked, tag_field="kind", tag="corrupt", frozen=True, kw_only=True):
    """One bit of a payload is flipped."""

    probability: float


class Duplicate(Asked, tag_field="kind", tag="duplicate", frozen=True, kw_only=True):
    """A packet is followed by a copy."""

    probability: float


class Reorder(Asked, tag_field="kind", tag="reorder", frozen=True, kw_only=True):
    """A packet is sent ahead of its time."""

    probability: float
    gap_ns: Unsigned


class Rate(Asked, tag_field="kind", tag="rate", frozen=True, kw_only=True):
    """A rate of whole frames, and the queue before it."""

    bits_per_s: Unsigned
    queue_bytes: Unsigned | UnsetType | None = UNSET
    queue_packets: Unsigned | UnsetType | None = UNSET
    discipline: Literal["droptail", "codel"] | UnsetType = UNSET
    target_ns: Unsigned | UnsetType | None = UNSET
    interval_ns: Unsigned | UnsetType | None = UNSET


class Trace(Asked, tag_field="kind", tag="trace", frozen=True, kw_only=True):
    """Opportunities to send a full frame, in ms, again from the start at the end."""

    opportunities_ms: list[Unsigned]
    queue_bytes: Unsigned | UnsetType | None = UNSET
    queue_packets: Unsigned | UnsetType | None = UNSET


Impairment = Delay | Jitter | Loss | GilbertElliott | LossSchedule | Corrupt | Duplicate | Reorder | Rate | Trace
"""What is unset is left out: the link says what it was asked, and a check compares that with the study."""


class LinkConfig(Asked, frozen=True, kw_only=True):
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


class LinkReady(Told, kw_only=True):
    """The link carries packets."""

    a_device: str
    b_device: str
    realtime: bool
    memory_locked: bool
    short_slice: bool
    receive_buffer_bytes: Unsigned


class Refused(Told, kw_only=True):
    """Frames that the link does not carry."""

    arp: Unsigned
    neighbour_discovery: Unsigned
    multicast: Unsigned
    other_protocol: Unsigned
    malformed: Unsigned


class ImpairmentSummary(Told, kw_only=True):
    """What an impairment did; ``asked`` are its fields as it read them, of a list the length."""

    kind: str
    asked: dict[str, float | int | bool | str | None]
    met: Unsigned
    hit: Unsigned
    clamped: Unsigned
    queue_peak_bytes: Unsigned | None


class DirectionSummary(Told, kw_only=True):
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
    queue_peak_bytes: Unsigned | None
    device_drops: Unsigned
    transmit_drops: Unsigned
    send_errors: Unsigned
    refused: Refused
    impairments: list[ImpairmentSummary]
    truncated: Unsigned
    timestamps_replaced: Unsigned


class CaptureFacts(Told, kw_only=True):
    """What the capture of a link holds, added once it was put together (docs/capture.md)."""

    packets: int
    comments: int
    keys: int
    whole: bool
    client_qlog: int | None = None


class LinkSummary(Told, kw_only=True):
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

    # What the runner adds.
    run_delay_ns: int | None = None
    """Time ready to run without a CPU."""
    capture: CaptureFacts | None = None


class Links(Told, kw_only=True):
    """What the links of several wires did, by the name of the wire."""

    links: dict[str, LinkSummary]
