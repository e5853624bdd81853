"""A path as a study has it, with the impairments of both directions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict


class ImpairmentDocument(TypedDict, total=False):
    """One impairment of a direction; what a kind has beside ``kind`` is in `contract.link`."""

    kind: str
    delay_ns: int
    distribution: str
    sigma_ns: int
    range_ns: int
    scale_ns: int
    shape: float
    table_ns: Sequence[int]
    reorder: bool
    probability: float
    good_to_bad: float
    bad_to_good: float
    loss_good: float
    loss_bad: float
    drop: Sequence[int]
    gap_ns: int
    bits_per_s: int
    queue_bytes: int | None
    queue_packets: int | None
    discipline: str
    target_ns: int | None
    interval_ns: int | None
    opportunities_ms: Sequence[int]


class PathDocument(TypedDict, total=False):
    """The fields of `design.model.PathSpec` that say what happens to packets."""

    name: str
    rtt_ns: int
    rate_bits_per_s: int | None
    queue_bytes: int | None
    loss: float
    forward: Sequence[ImpairmentDocument]
    backward: Sequence[ImpairmentDocument]
    frames: str
