"""A path as a study has it, with the impairments of both directions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from trifecta.contract.impairments import ImpairmentDocument


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
    emulator: str
    as_is: bool
