"""The probe: what it is asked, and what a path did to its packets."""

from __future__ import annotations

from typing import Literal

from trifecta.contract.common import Port, ProgramOutput, Quantiles, StrictConfig, Unsigned


class ReflectConfig(StrictConfig, tag_field="role", tag="reflect", frozen=True, kw_only=True):
    """Answer probes until asked to stop."""

    address: str
    port: Port


class MeasureConfig(StrictConfig, tag_field="role", tag="measure", frozen=True, kw_only=True):
    """Measure the path to a reflector."""

    address: str
    port: Port
    packets: Unsigned = 200
    interval_ns: Unsigned = 2_000_000
    payload_bytes: Unsigned = 64
    timeout_ns: Unsigned = 2_000_000_000
    train_packets: Unsigned = 0
    largest: bool = False
    samples_file: str | None = None


class ReflectReady(ProgramOutput, tag_field="role", tag="reflect", kw_only=True):
    """The reflector answers."""

    address: str
    port: Port
    realtime_offset_ns: int
    """CLOCK_REALTIME less CLOCK_MONOTONIC at the far end."""
    realtime_bound_ns: Unsigned
    """How far the truth can be from that."""


class MeasureReady(ProgramOutput, tag_field="role", tag="measure", kw_only=True):
    """The measurement begins."""

    address: str
    port: Port


class ReflectSummary(ProgramOutput, tag_field="role", tag="reflect", kw_only=True):
    """What a reflector did."""

    sessions: Unsigned
    received: Unsigned
    replied: Unsigned
    ignored: Unsigned
    send_errors: Unsigned


class MeasureSummary(ProgramOutput, tag_field="role", tag="measure", kw_only=True):
    """What a measurement found. None: the reflector's count did not come back, or it was not asked for."""

    sent: Unsigned
    received: Unsigned
    send_errors: Unsigned
    ended: Literal["done", "signal"]
    loss_forward: float | None
    loss_backward: float | None
    loss: float | None
    rtt_ns: Quantiles
    one_way_forward_ns: Quantiles
    one_way_backward_ns: Quantiles
    reordered: Unsigned
    duplicates: Unsigned
    reordered_forward: Unsigned | None
    duplicates_forward: Unsigned | None
    train_received: Unsigned | None
    rate_bits_per_s: float | None
    largest_payload_bytes: Unsigned | None
    realtime_offset_ns: int
    """CLOCK_REALTIME less CLOCK_MONOTONIC at the near end."""
    realtime_bound_ns: Unsigned
    """How far the truth can be from that."""

    # What the runner adds.
    wire: str | None = None
    """Of several wires, the one that was measured."""
    clock_offset_ns: int | None = None
    """Between machines: how far the clock of the far end is ahead; one-way times are without it."""
    clock_bound_ns: Unsigned | None = None
    """How far the truth can be from that, and each one-way time with it."""
    far_realtime_offset_ns: int | None = None
    """CLOCK_REALTIME less CLOCK_MONOTONIC at the far end, with its bound."""
    far_realtime_bound_ns: Unsigned | None = None
    clock_exchange_offset_ns: int | None = None
    """What the packets alone say, with its bound."""
    clock_exchange_bound_ns: Unsigned | None = None
    clock_chrony_offset_ns: int | None = None
    """What chronyd on both machines says, with its bound."""
    clock_chrony_bound_ns: Unsigned | None = None
