"""What the figures of packets draw: one capture out of the tables of a dissection, as arrays with times from zero."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from trifecta.analysis.transport.columns import Connection, connections
from trifecta.analysis.transport.idle_periods import CAUSES
from trifecta.analysis.transport.overhead import PARTS, overhead
from trifecta.analysis.transport.stalls import stalls
from trifecta.analysis.transport.trial import Capture, look_at
from trifecta.design.extras import LazyModule
from trifecta.trace.names import study_name

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
else:
    pa, pc = LazyModule("pyarrow"), LazyModule("pyarrow.compute")

Array = np.ndarray[Any, Any]
LOST = ("lost", "queue_dropped", "corrupted")
"""Fates of a packet that its receiver could not use."""
_SUFFIX = re.compile(r"\.(?:pcapng|pcap|cap)$")
_NEAR = {"up": "a", "down": "b"}


@dataclass
class Captured:
    """One capture: its tables (``store.trace_schema``), the protocol (``h1``, ``h2``, ``h3`` or ``?``), a heading."""

    label: str
    arm: str
    packets: pa.Table
    frames: pa.Table
    messages: pa.Table
    connections: pa.Table

    @cached_property
    def start_ns(self) -> int:
        """When the first packet was seen, CLOCK_REALTIME."""
        return int(pc.min(self.packets["time_ns"]).as_py() or 0) if self.packets.num_rows else 0

    @cached_property
    def analysed(self) -> list[Connection]:
        """Its connections as the analysis takes them."""
        return connections(self.packets, self.frames, self.messages, self.connections)

    @property
    def complete_connections(self) -> list[Connection]:
        """Those whose packets are all here."""
        return [one for one in self.analysed if not one.lacks_packets]

    @cached_property
    def summary(self) -> Capture:
        """What it says in numbers: where the time of its requests went, and how long their octets waited."""
        return look_at(
            {"packets": self.packets, "frames": self.frames, "messages": self.messages, "connections": self.connections}
        )

    @cached_property
    def octets(self) -> dict[str, float]:
        """Octets on the wire by part (`analysis.transport.overhead`), all connections together."""
        total = dict.fromkeys(PARTS, 0.0)
        for connection in self.complete_connections:
            for part, value in overhead(connection).parts.items():
                total[part] += value
        return total

    @cached_property
    def stalled_ns(self) -> dict[str, float]:
        """ns in which responses were being sent, by what was waited for (`analysis.transport.stalls`).

        Empty where nobody can know: of a capture of one side, and without keys.
        """
        stalls_of_connection = [
            stalls(connection, up=False) for connection in self.complete_connections if connection.both_sides
        ]
        total = dict.fromkeys(CAUSES, 0.0)
        for one in stalls_of_connection:
            for cause, value in one.causes.items():
                total[cause] += value
        return total if any(one.total_ns for one in stalls_of_connection) else {}

    @cached_property
    def has_sides(self) -> bool:
        """Whether both sides of the link were captured."""
        return {"a", "b"} <= set(self.packets["side"].unique().to_pylist())

    def sent_packets(self, direction: str) -> pa.Table:
        """Packets of a direction as their sender's side saw them: what the link lost is there, too.

        Of a capture of one side: all that was seen there.
        """
        return self._packets_at(direction, _NEAR[direction])

    def far(self, direction: str) -> pa.Table:
        """Packets of a direction as their receiver's side saw them."""
        return self._packets_at(direction, _NEAR["down" if direction == "up" else "up"])

    def at_client(self, direction: str) -> pa.Table:
        """Packets of a direction as side ``a`` saw them, or the only side."""
        return self._packets_at(direction, "a")

    def _packets_at(self, direction: str, side: str) -> pa.Table:
        sides = {"side": side} if self.has_sides else {}
        return select_rows(self.packets, direction=direction, **sides).sort_by("time_ns")

    def since(self, times: Any) -> Array:
        """Times of a column in ns since the capture began; a null is NaN."""
        return numbers(pc.subtract(times, self.start_ns))

    @cached_property
    def is_lost(self) -> frozenset[int]:
        """Numbers of the packets that the link lost."""
        lost = self.packets.filter(pc.is_in(self.packets["fate"], value_set=pa.array(LOST)))
        return frozenset(number for number in lost["number"].to_pylist() if number is not None)

    @cached_property
    def left_over(self) -> frozenset[int]:
        """Connections without a request whose start is not here, beside some with: a former trial's last packets."""
        with_messages = set(self.messages["connection"].to_pylist())
        rows = self.connections.select(["connection", "truncated"]).to_pylist() if with_messages else []
        late = {row["connection"] for row in rows if "start" in (row["truncated"] or "").split(",")}
        return frozenset(late - with_messages)

    @cached_property
    def end_ns(self) -> int:
        """How long the capture lasts, in ns."""
        last = pc.max(self.packets["time_ns"]).as_py() if self.packets.num_rows else None
        return int(last) - self.start_ns if last is not None else 0


def numbers(column: Any) -> Array:
    """A column as floats, null as NaN. Of times take a difference first: CLOCK_REALTIME in ns has more than 53 bits."""
    return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), float)


def select_rows(table: pa.Table, **values: Any) -> pa.Table:
    """The rows whose columns have these values."""
    for name, value in values.items():
        table = table.filter(pc.equal(table[name], pa.scalar(value)))
    return table


def captures(tables: Mapping[str, pa.Table], labels: Mapping[str, str] | None = None) -> list[Captured]:
    """The captures of a dissection in the order of their connections; ``labels`` are headings by capture."""
    by_capture = []
    for name in map(str, tables["packets"]["capture"].unique().to_pylist()):
        own = {table: select_rows(rows, capture=name) for table, rows in tables.items()}
        spoken = [one for one in own["connections"]["protocol"].to_pylist() if one]
        arm = spoken[0] if len(set(spoken)) == 1 else "?"
        if arm == "?" and set(own["packets"]["transport"].unique().to_pylist()) == {"udp"}:
            arm = "h3" if not spoken else arm  # QUIC without keys
        if arm == "?" and (claim := study_name(_SUFFIX.sub("", name))) is not None:
            arm = claim.protocol  # what the name says; the figure's heading has the name
        heading = (labels or {}).get(name, _SUFFIX.sub("", name))
        by_capture.append(Captured(heading, arm, own["packets"], own["frames"], own["messages"], own["connections"]))
    return by_capture
