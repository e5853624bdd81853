"""What a dissection is: four tables and what cannot be known, in words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Dissection:
    """The tables of `trifecta.store.trace_schema`, and the notes."""

    packets: pa.Table
    frames: pa.Table
    messages: pa.Table
    connections: pa.Table
    notes: list[str] = field(default_factory=list)
