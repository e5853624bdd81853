"""Points that figures draw, from a capture: octets over time, packet sizes, gaps, streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trifecta.analysis.transport.acknowledgements import acknowledgements, moments_of
from trifecta.analysis.transport.rate import nice
from trifecta.conclude.packets.captured import Array, Captured, numbers, select_rows
from trifecta.conclude.packets.points import Acknowledged, Gaps, Lane, Octets, Rates
from trifecta.design.extras import LazyModule

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
else:
    pa, pc = LazyModule("pyarrow"), LazyModule("pyarrow.compute")


def octets(captured: Captured) -> Octets:
    """The octets that the server sent."""
    sent = captured.sent_packets("down")
    sent = sent.filter(pc.greater(sent["payload_bytes"], pa.scalar(0, pa.uint32())))
    left = pa.array(sorted(captured.left_over), pa.uint32())
    sent = sent.filter(pc.invert(pc.is_in(sent["connection"], value_set=left)))
    if "udp" not in sent["transport"].to_pylist():
        return _of_tcp(captured, sent)
    stream = _stream_frames(captured)
    return _of_quic(captured, stream) if stream.num_rows else _of_datagrams(captured, sent)


def _bases(keys: list[Any], ends: Array) -> Array:
    """Where each key's octets begin: above those of the keys that came before."""
    tops: dict[Any, float] = {}
    for key, end in zip(keys, ends, strict=True):
        tops[key] = max(tops.get(key, 0.0), float(end))
    bases, total = {}, 0.0
    for key, top in tops.items():
        bases[key] = total
        total += top
    return np.array([bases[key] for key in keys], float)


def _of_tcp(captured: Captured, sent: pa.Table) -> Octets:
    sent = sent.filter(pc.is_valid(sent["sequence"]))
    at, ends = numbers(sent["sequence"]), numbers(sent["sequence"]) + numbers(sent["payload_bytes"])
    keys = sent["connection"].to_pylist()
    base = _bases(keys, ends)
    by_key = dict(zip(keys, base, strict=True))
    retransmitted = np.array([bool(one) for one in sent["retransmission"].to_pylist()], bool)
    lost = np.array([number in captured.is_lost for number in sent["number"].to_pylist()], bool)
    points = np.column_stack([captured.since(sent["time_ns"]), base + at])
    place = dict(zip(sent["packet_id"].to_pylist(), points[:, 1], strict=True))
    acks = captured.far("up").filter(pc.is_valid(captured.far("up")["acknowledged"]))
    highest = [
        (time, by_key[key] + value)
        for time, key, value in zip(
            captured.since(acks["time_ns"]),
            acks["connection"].to_pylist(),
            acks["acknowledged"].to_pylist(),
            strict=True,
        )
        if key in by_key
    ]
    marks = np.array(highest, float).reshape(-1, 2)
    return Octets(
        "TCP sequence", points[~retransmitted], points[retransmitted], points[lost], _arrived(captured, place), marks
    )


def _stream_frames(captured: Captured) -> pa.Table:
    """STREAM frames of the requests' streams (RFC 9000, 2.1: bidirectional, of the client), in the order sent."""
    frames = captured.frames
    stream_frames = select_rows(frames, layer="quic", direction="down", type="STREAM")
    streams = stream_frames["stream"].to_pylist()
    own = [one is not None and one % 4 == 0 for one in streams]
    return stream_frames.filter(pa.array(own, pa.bool_())).sort_by("time_ns")


def _of_quic(captured: Captured, frames: pa.Table) -> Octets:
    keys = list(zip(frames["connection"].to_pylist(), frames["stream"].to_pylist(), strict=True))
    offsets = np.nan_to_num(numbers(frames["offset"]))
    ends = offsets + np.nan_to_num(numbers(frames["length"]))
    points = np.column_stack([captured.since(frames["time_ns"]), _bases(keys, ends) + offsets])
    packets = frames["number"].to_pylist()
    lost = np.array([number in captured.is_lost for number in packets], bool)
    retransmitted, tops = np.zeros(len(keys), bool), dict[Any, float]()
    for row, (key, start, end) in enumerate(zip(keys, offsets, ends, strict=True)):
        retransmitted[row] = start < tops.get(key, 0.0) and end > start
        tops[key] = max(tops.get(key, 0.0), end)
    near = captured.sent_packets("down")
    ids = dict(zip(near["number"].to_pylist(), near["packet_id"].to_pylist(), strict=True))
    place = {ids[number]: top for number, top in zip(packets, points[:, 1], strict=True) if number in ids}
    return Octets(
        "stream offset", points[~retransmitted], points[retransmitted], points[lost], _arrived(captured, place)
    )


def _of_datagrams(captured: Captured, sent: pa.Table) -> Octets:
    sizes = numbers(sent["payload_bytes"])
    points = np.column_stack([captured.since(sent["time_ns"]), np.cumsum(sizes) - sizes])
    lost = np.array([number in captured.is_lost for number in sent["number"].to_pylist()], bool)
    place = dict(zip(sent["packet_id"].to_pylist(), points[:, 1], strict=True))
    return Octets("datagrams", points, points[:0], points[lost], _arrived(captured, place))


def _arrived(captured: Captured, place: dict[Any, float]) -> Array:
    """(ns, place) at the client's side of the packets whose place is known; none of a capture of one side."""
    if not captured.has_sides:
        return np.empty((0, 2))
    far = captured.far("down")
    times, ids = captured.since(far["time_ns"]), far["packet_id"].to_pylist()
    points = [(time, place[one]) for time, one in zip(times, ids, strict=True) if one in place]
    return np.array(points, float).reshape(-1, 2)


def sizes(captured: Captured, direction: str) -> tuple[Array, Array]:
    """(ns, octets on the wire) of a direction's packets, as their sender's side saw them."""
    table = captured.sent_packets(direction)
    return captured.since(table["time_ns"]), numbers(table["wire_bytes"])


def gaps(captured: Captured, direction: str) -> Array:
    """Times between packets of a direction where they arrive, sorted, in ns; those of a connection only."""
    table = captured.far(direction)
    gaps_by_connection = []
    for connection in table["connection"].unique().to_pylist():
        own = select_rows(table, connection=connection)
        gaps_by_connection.append(np.diff(own["time_ns"].to_numpy()))
    return np.sort(np.concatenate(gaps_by_connection)) if gaps_by_connection else np.empty(0)


def gap_shares(captured: Captured, direction: str) -> Gaps:
    """How the same times are distributed."""
    all_gaps = gaps(captured, direction)
    if not len(all_gaps):
        return Gaps(0)
    known = all_gaps[all_gaps > 0]
    least, most = (float(known[0]), float(known[-1])) if len(known) else (None, None)
    shares = np.linspace(0, 1, min(len(all_gaps), _QUANTILES))
    return Gaps(len(all_gaps), least, most, float(np.median(all_gaps)), shares, np.quantile(all_gaps, shares))


_QUANTILES = 200
_BINS = 120
_ACKS_A_BIN = 4  # on average: a ratio of one or two is chance


def rates(captured: Captured, longest_ns: int = 0) -> Rates:
    """Of all connections together; bins as for the longest of the captures that stand side by side."""
    width = nice(max(captured.end_ns, longest_ns), _BINS)
    binned_rates = []
    for direction in ("down", "up"):
        table = captured.far(direction)
        times, octets = captured.since(table["time_ns"]), numbers(table["wire_bytes"])
        binned_rates.append(_binned(times, width, captured.end_ns, octets) * 8e9 / width)
    return Rates(width, captured.end_ns, *binned_rates)


def acknowledged(captured: Captured, longest_ns: int = 0) -> Acknowledged:
    """Of all connections together; bins as in `rates`, but wider where there are few acknowledgements."""
    counts = [acknowledgements(one, up=True) for one in captured.complete_connections]
    moments = [moment for one in captured.complete_connections if (moment := moments_of(one, up=True)) is not None]
    sent = sum(len(acks) for _, acks in moments)
    width = nice(max(captured.end_ns, longest_ns), min(_BINS // 2, max(sent // _ACKS_A_BIN, 1)))
    data, acks = (
        _binned(np.concatenate([one[at] for one in moments]) - captured.start_ns, width, captured.end_ns)
        if moments
        else np.zeros(1)
        for at in (0, 1)
    )
    each = np.divide(data, acks, out=np.full(len(acks), np.nan), where=acks > 0)
    count = sum(one.count or 0 for one in counts)
    packets, wire = sum(one.packets or 0 for one in counts), sum(one.packets_wire_bytes or 0 for one in counts)
    return Acknowledged(
        width,
        captured.end_ns,
        each,
        sum(one.data_packets or 0 for one in counts if one.count) / count if count else None,
        wire / packets if packets else None,
    )


def _binned(times: Array, width: int, end_ns: int, weights: Array | None = None) -> Array:
    """How many, or how much, is in each bin."""
    bins = end_ns // width + 1
    at = np.clip(np.asarray(times, float) // width, 0, bins - 1).astype(np.int64)
    return np.bincount(at, weights=weights, minlength=bins).astype(float)


def lanes(captured: Captured) -> list[Lane]:
    """A lane a request, in the order of the requests; empty without keys."""
    layer = "quic" if captured.arm == "h3" else captured.arm
    frames = captured.frames
    responses = select_rows(frames, layer=layer, direction="down")
    responses = responses.filter(pc.is_in(responses["type"], value_set=pa.array(["DATA", "STREAM", "HEADERS", "BODY"])))
    at: dict[tuple[Any, Any], list[tuple[float, bool]]] = {}
    rows = zip(
        responses["connection"].to_pylist(), responses["stream"].to_pylist(), captured.since(responses["time_ns"]),
        responses["number"].to_pylist(), strict=True,
    )  # fmt: skip
    for connection, stream, time, number in rows:
        at.setdefault((connection, stream), []).append((float(time), number in captured.is_lost))
    drawn_lanes = []
    plain: dict[Any, list[tuple[float, bool]]] = {}
    if layer == "h1":
        data = captured.sent_packets("down")
        data = data.filter(pc.greater(data["payload_bytes"], pa.scalar(0, pa.uint32())))
        columns = (data["connection"].to_pylist(), captured.since(data["time_ns"]), data["number"].to_pylist())
        for connection, time, number in zip(*columns, strict=True):
            plain.setdefault(connection, []).append((float(time), number in captured.is_lost))
    messages = captured.messages.sort_by([("request_start_ns", "ascending")]).to_pylist()
    shared = len({message["connection"] for message in messages}) > 1
    for message in messages:
        if message["request_start_ns"] is None:
            continue
        started, first, done = (
            None if message[name] is None else float(message[name] - captured.start_ns)
            for name in ("request_start_ns", "response_start_ns", "response_end_ns")
        )
        assert started is not None
        sent = at.get((message["connection"], message["stream"]), [])
        if message["stream"] is None:
            # HTTP/1.1 has no frames: what the server sent between the request and the last octet, packet by packet.
            end = done if done is not None else captured.end_ns
            sent = [one for one in plain.get(message["connection"], []) if started <= one[0] <= end]
        name = f"stream {message['stream']}" if message["stream"] is not None else f"request {message['request']}"
        name = f"{message['connection']}: {name.rsplit(maxsplit=1)[-1]}" if shared else name
        lost = np.array([time for time, gone in sent if gone])
        drawn_lanes.append(Lane(name, started, first, done, np.array([time for time, _ in sent]), lost))
    return drawn_lanes
