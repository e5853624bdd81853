"""The first flights of a connection: what was sent when, and the round trips that the protocol needs at least."""

from __future__ import annotations

from collections.abc import Collection
from itertools import groupby
from typing import TYPE_CHECKING, Any

from trifecta.analysis.transport.setup import setup
from trifecta.conclude.packets.captured import Captured, select_rows
from trifecta.conclude.packets.points import Flight, Ladder
from trifecta.design.extras import LazyModule

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
else:
    pa, pc = LazyModule("pyarrow"), LazyModule("pyarrow.compute")


MOST_FLIGHTS = 14
_FIRST = 500  # packets of a direction that are looked at
_MOST_UNKNOWN = 8  # where the first response cannot be told


def ladder(captured: Captured) -> Ladder | None:
    """The set-up of the capture's first connection; None of a capture without packets."""
    connections = captured.connections.sort_by([("start_ns", "ascending")]).to_pylist()
    if not connections:
        return None
    # What a former trial left over (a late FIN) is no set-up: first those with requests, then those that begin here.
    with_messages = set(captured.messages["connection"].to_pylist())
    complete = [one for one in connections if "start" not in str(one["truncated"] or "").split(",")]
    first = next((one for one in connections if one["connection"] in with_messages), (complete or connections)[0])
    own = select_rows(captured.packets, connection=first["connection"])
    mine = Captured(captured.label, captured.arm, own, captured.frames, captured.messages, captured.connections)
    flight_ends = [mine.sent_packets(direction).slice(0, _FIRST) for direction in ("up", "down")]
    sent = pa.concat_tables(flight_ends).sort_by("time_ns").to_pylist()
    arrived = {
        (row["direction"], row["packet_id"]): row["time_ns"]
        for direction in ("up", "down")
        for row in mine.far(direction).slice(0, _FIRST).to_pylist()
        if captured.has_sides
    }
    answers = [
        row["response_start_ns"]
        for row in captured.messages.to_pylist()
        if row["connection"] == first["connection"] and row["response_start_ns"] is not None
    ]
    begun = mine.start_ns
    answer = min(answers) - begun if answers else None
    contents = _contents(captured, {row["number"] for row in sent})
    flights: list[Flight] = []
    for direction, rows in groupby(sent, key=lambda row: str(row["direction"])):
        here = list(rows)
        if len(flights) == (_MOST_UNKNOWN if answer is None else MOST_FLIGHTS) or (
            answer is not None and here[0]["time_ns"] - begun > answer
        ):
            break
        if answer is not None:
            here = [row for row in here if row["time_ns"] - begun <= answer]
        flights.append(_flight(direction, here, arrived, begun, contents))
    measured = setup(next(one for one in captured.analysed if one.number == first["connection"]))
    return Ladder(flights, measured.rtt_ns, answer, measured.bound, captured.has_sides)


def _flight(
    direction: str,
    rows: list[dict[str, Any]],
    arrived: dict[tuple[str, Any], int],
    begun: int,
    contents: dict[int, list[str]],
) -> Flight:
    there = [
        float(arrived[direction, row["packet_id"]] - begun) for row in rows if (direction, row["packet_id"]) in arrived
    ]
    words = list(dict.fromkeys(word for row in rows for word in _words(row, contents)))
    return Flight(
        direction,
        len(rows),
        sum(row["wire_bytes"] for row in rows),
        (float(rows[0]["time_ns"] - begun), float(rows[-1]["time_ns"] - begun)),
        (min(there), max(there)) if there else None,
        ", ".join(words[:4]) + (", …" if len(words) > 4 else ""),
        len(rows) - len(there) if arrived else 0,
    )


def _contents(captured: Captured, packets: Collection[int]) -> dict[int, list[str]]:
    """What the HTTP and TLS layers say is in a packet, by its number."""
    words_by_packet: dict[int, list[str]] = {}
    frames = captured.frames
    near = frames.filter(pc.is_in(frames["number"], value_set=pa.array(sorted(packets), pa.uint64())))
    for row in near.select(["number", "layer", "type"]).to_pylist():
        if row["layer"] == "quic" or row["type"] is None or row["type"] == "application_data":
            continue
        word = f"TLS {row['type'].replace('_', ' ')}" if row["layer"] == "tls" else row["type"]
        words_by_packet.setdefault(row["number"], []).append(word)
    return words_by_packet


def _words(row: dict[str, Any], contents: dict[int, list[str]]) -> list[str]:
    """What a packet is, in a few words."""
    contents_here = contents.get(row["number"], [])
    if row["transport"] == "udp":
        kinds = (row["packet_type"] or "QUIC").split(",")
        inside = (row["frames"] or "").split(";")
        sentences = [
            f"{kind} {'+'.join(dict.fromkeys(name for name in names.split(',') if name and name != 'PADDING'))}".strip()
            for kind, names in zip(kinds, inside + [""] * len(kinds), strict=False)
        ]
        return [*sentences, *contents_here]
    flags = (row["flags"] or "").replace(",PSH", "").replace("PSH,", "")
    return contents_here or ([flags] if not row["payload_bytes"] else ["data"])
