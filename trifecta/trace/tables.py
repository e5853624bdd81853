"""Put together the tables out of headers and of what tshark told."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from trifecta.design.errors import CannotError, UserError
from trifecta.store.trace_schema import CONNECTIONS, FRAMES, MESSAGES, PACKETS
from trifecta.trace import connections as by_connection
from trifecta.trace import messages as by_message
from trifecta.trace import missing_packets
from trifecta.trace.capture_file import Ints
from trifecta.trace.correlation import CorrelatedTrace
from trifecta.trace.flows import Flows
from trifecta.trace.headers import TCP
from trifecta.trace.link_layer import Flags
from trifecta.trace.pcapng import NO_ID
from trifecta.trace.rows import DIRECTIONS, QUIC_COLUMNS, Packed, Trace

_FLAGS = ("FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR")
_WORDS = ["delivered", "lost", "queue_dropped", "memory_dropped", "send_error", "corrupted", "duplicate", "under_way"]
_FATES = re.compile(rf"\b({'|'.join(_WORDS[1:])})\b")
_COPY = np.uint64(0x7FFF << 48)


def build(
    trace: Trace, parts: list[Packed], file: Path, first: int, log: Path | None
) -> tuple[dict[str, pa.Table], list[str]]:
    """The four tables of one capture, and notes on connections; these are numbered from ``first``."""
    joined = CorrelatedTrace(trace, parts, first)
    notes = [
        f"connection {numbers[key]}: {note}"
        for part, numbers in zip(parts, joined.numbers, strict=True)
        for key, note in part.connection_notes
        if key in numbers
    ]
    name = file.name.removesuffix(".gz")
    for ending in (".pcapng", ".pcap", ".cap"):
        name = name.removesuffix(ending)
    protocol = by_connection.protocols(joined)
    packets = _packets(joined, name, protocol, log)
    frames = _frames(joined, name)
    link = missing_packets.link_numbers(trace.capture)
    notes += missing_packets.notes_on(trace.capture, link)
    proven = {one for one, facts in by_connection.facts_of(joined).items() if "packets" in facts.missing}
    left_out = missing_packets.left_out(joined, link)
    if left_out - proven:
        notes.append(
            f"{missing_packets.connections_in_words(left_out - proven)}: packets may be missing: "
            f"{missing_packets.UNKNOWN}"
        )
    messages = by_message.messages(joined, frames, proven | left_out)
    connections = by_connection.connections(joined, protocol, left_out)
    notes += [*_unfinished(parts), *missing_packets.headless(connections)]
    built = {
        "packets": packets,
        "frames": pa.table({**frames, "capture": _constant(name, len(frames["connection"]))})
        .select(FRAMES.names)
        .cast(FRAMES.arrow()),
        "messages": pa.Table.from_pylist([{**row, "capture": name} for row in messages], MESSAGES.arrow()),
        "connections": pa.Table.from_pylist([{**row, "capture": name} for row in connections], CONNECTIONS.arrow()),
    }
    return built, notes


def _unfinished(parts: list[Packed]) -> list[str]:
    """What has no end in the capture; a pushed response (even streams: RFC 9113, 5.1.1) has no request to end."""
    requests = [one for part in parts for one in part.messages if one.protocol != "h2" or (one.stream or 0) % 2]
    count = sum(not all(half.ended for half in one.halves) for one in requests)
    if not count:
        return []
    verb = "is" if count == 1 else "are"
    return [f"{count} of {len(requests)} requests {verb} not whole in the capture: what is not known of them is null"]


def _constant(text: str, count: int) -> pa.Array[Any]:
    return pa.DictionaryArray.from_arrays(np.zeros(count, dtype=np.int32), pa.array([text])).dictionary_decode()


def choose(codes: npt.NDArray[Any], words: tuple[str, ...] | list[str]) -> pa.Array[Any]:
    """Words by number; null where the number is negative."""
    codes = np.asarray(codes, dtype=np.int32)
    return pa.DictionaryArray.from_arrays(
        pa.array(codes, mask=codes < 0), pa.array(list(words) or [""], pa.string())
    ).dictionary_decode()


def _with_nulls(values: Ints, kind: pa.DataType, unknown: Flags | None = None) -> pa.Array[Any]:
    mask = values < 0 if unknown is None else unknown
    return pa.array(np.where(mask, 0, values), mask=mask).cast(kind)


def _packets(joined: CorrelatedTrace, name: str, protocol: dict[int, str | None], log: Path | None) -> pa.Table:
    trace = joined.trace
    headers, flows, numbers, index = trace.headers, trace.flows, trace.numbers, trace.headers.index
    count, tcp = len(index), trace.headers.transport == TCP
    words = list(dict.fromkeys(one for one in protocol.values() if one))
    of = np.full((max(protocol) if protocol else 0) + 1, -1, dtype=np.int64)
    for connection, word in protocol.items():
        of[connection] = words.index(word) if word else -1
    flags = [",".join(word for bit, word in enumerate(_FLAGS) if value >> bit & 1) for value in range(256)]
    columns: dict[str, pa.Array[Any]] = {
        "capture": _constant(name, count),
        "number": pa.array(index + 1).cast(pa.uint64()),
        "side": choose(flows.side, ("a", "b")),
        "packet_id": pa.array(flows.packet_id) if flows.packet_id is not None else pa.nulls(count, pa.uint64()),
        "time_ns": pa.array(joined.time_ns),
        "direction": choose(flows.direction, DIRECTIONS),
        "source": choose(headers.source, headers.addresses),
        "destination": choose(headers.destination, headers.addresses),
        "source_port": pa.array(headers.source_port).cast(pa.uint16()),
        "destination_port": pa.array(headers.destination_port).cast(pa.uint16()),
        "connection": pa.array(joined.connection).cast(pa.uint32()),
        "transport": choose(np.where(tcp, 0, 1), ("tcp", "udp")),
        "wire_bytes": pa.array(trace.capture.wire[index]).cast(pa.uint32()),
        "captured_bytes": pa.array(trace.capture.captured[index]).cast(pa.uint32()),
        "ip_header_bytes": pa.array(headers.ip_header).cast(pa.uint32()),
        "transport_header_bytes": pa.array(headers.transport_header).cast(pa.uint32()),
        "payload_bytes": pa.array(headers.payload).cast(pa.uint32()),
        "sequence": _with_nulls(numbers.sequence, pa.uint64()),
        "acknowledged": _with_nulls(numbers.acknowledged, pa.uint64()),
        "window": _with_nulls(numbers.window, pa.uint32()),
        "flags": choose(np.where(tcp, headers.flags, -1), flags),
        "sack": _texts_at(
            count, np.asarray(list(numbers.sack), dtype=np.int64), pa.array(list(numbers.sack.values()), pa.string())
        ),
        "info": _info(joined),
        "protocol": choose(of[joined.connection], words),
        "retransmission": _with_nulls(numbers.retransmission, pa.bool_()),
    }
    columns.update(_quic(joined))
    columns.update(_fates(joined, log))
    return pa.table({name: columns[name] for name in PACKETS.names}).cast(PACKETS.arrow())


def _quic(joined: CorrelatedTrace) -> dict[str, pa.Array[Any]]:
    count = len(joined.connection)
    place = np.full(count, -1, dtype=np.int64)
    start = 0
    quic_parts = [part for part in joined.parts if len(part.quic_rows)]
    for part in quic_parts:
        place[part.quic_rows] = np.arange(start, start + len(part.quic_rows))
        start += len(part.quic_rows)
    place = place[joined.trace.flows.origin]
    taken: Any = pa.array(place, mask=place < 0)
    columns: dict[str, pa.Array[Any]] = {}
    for name in QUIC_COLUMNS:
        kind = PACKETS.arrow().field(name).type
        joined_column = pa.concat_arrays([part.quic[name] for part in quic_parts]) if quic_parts else pa.nulls(0, kind)
        columns[name] = joined_column.take(taken) if start else pa.nulls(count, kind)
    return columns


def _info(joined: CorrelatedTrace) -> pa.Array[Any]:
    trace = joined.trace
    headers, numbers = trace.headers, trace.numbers
    count = len(joined.connection)
    place = np.full(count, -1, dtype=np.int64)
    start = 0
    for part in joined.parts:
        place[part.info_rows] = np.arange(start, start + len(part.info_rows))
        start += len(part.info_rows)
    place = place[trace.flows.origin]
    own = np.flatnonzero(place < 0)
    place[own] = start + np.arange(len(own))
    flags = [", ".join(word for bit, word in enumerate(_FLAGS) if value >> bit & 1) for value in range(256)]
    tcp = headers.transport[own] == TCP

    def text(values: Ints) -> Any:
        return pa.array(values).cast(pa.string())

    ends = (text(headers.source_port[own]), " → ", text(headers.destination_port[own]))
    bits, acknowledged = choose(headers.flags[own], flags), np.maximum(numbers.acknowledged[own], 0)
    segment = (" [", bits, "] Seq=", text(numbers.sequence[own]), " Ack=", text(acknowledged))
    segment_text = pc.if_else(pa.array(tcp), pc.binary_join_element_wise(*segment, ""), "")
    ours: Any = pc.binary_join_element_wise(*ends, segment_text, " Len=", text(headers.payload[own]), "")
    texts: pa.Array[Any] = pa.concat_arrays([*(part.info_texts for part in joined.parts), ours])
    taken: Any = pa.array(place)
    return texts.take(taken)


def _texts_at(count: int, rows: Ints, texts: pa.Array[Any]) -> pa.Array[Any]:
    """A column with these texts in these rows, null elsewhere."""
    place = np.full(count, -1, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    taken: Any = pa.array(place, mask=place < 0)
    return texts.take(taken)


def _fates(joined: CorrelatedTrace, log: Path | None) -> dict[str, pa.Array[Any]]:
    flows, count = joined.trace.flows, len(joined.connection)
    if flows.packet_id is None:
        return {"fate": pa.nulls(count, pa.string()), "delay_ns": pa.nulls(count, pa.int64())}
    own = np.arange(count)
    fate = np.where(joined.arrival >= 0, 0, -1)
    index = joined.trace.headers.index
    for packet, comment in joined.trace.capture.comments.items():
        match = _FATES.search(comment)
        place = int(np.searchsorted(index, packet))
        # Of an original that was copied too the arrival tells; copies are known by their number.
        if match and place < count and index[place] == packet and match[1] != "duplicate":
            fate[place] = _WORDS.index(match[1])
    if log is not None:
        _take_fates(log, flows, fate)
    fate = fate[flows.origin]
    fate = np.where(flows.packet_id & _COPY > 0, _WORDS.index("duplicate"), fate)
    far = np.where(flows.origin != own, own, joined.arrival)
    gone = (far < 0) & (flows.origin == own) & (flows.side == (flows.packet_id >> np.uint64(63)).astype(np.int64))
    unknown = (fate < 0) | (fate == _WORDS.index("under_way"))
    joined.unseen = np.flatnonzero(gone & (fate == 0)), np.flatnonzero(gone & unknown)
    delay = np.where(far >= 0, joined.time_ns[np.maximum(far, 0)] - joined.time_ns[flows.origin], 0)
    return {"fate": choose(fate, _WORDS), "delay_ns": pa.array(delay, mask=far < 0)}


def _take_fates(log: Path, flows: Flows, fate: Ints) -> None:
    """What the link's log says of packets at their sending side. Those that it does not name had not left yet."""
    assert flows.packet_id is not None
    try:
        table = pq.read_table(log, columns=["direction", "ordinal", "fate"])
    except (OSError, pa.ArrowException) as error:
        raise UserError(f"{log}: {str(error).splitlines()[0]}; name the log of the link (log_file)") from error
    table = table.filter(pc.invert(pc.is_in(table["fate"], pa.array(["duplicate"]))))
    direction, ordinal = (np.asarray(table[name]).astype(np.uint64) for name in ("direction", "ordinal"))
    named = direction << np.uint64(63) | ordinal
    compute: Any = pc
    words = np.asarray(compute.fill_null(compute.index_in(table["fate"], value_set=pa.array(_WORDS)), -1))
    # Of a packet that the log names twice the last word counts, and "delivered" only where it is the only one.
    order = np.lexsort((np.arange(len(named)), words != 0, named))
    named, words = np.append(named[order], NO_ID), np.append(words[order], 0)
    at = np.searchsorted(named[:-1], flows.packet_id, side="right") - 1
    fates = np.where(named[at] == flows.packet_id, words[at], _WORDS.index("under_way"))
    sent = flows.side == (flows.packet_id >> np.uint64(63)).astype(np.int64)
    mine = sent & ((fate < 0) | (named[at] == flows.packet_id) & (fates > 0))
    fate[mine] = fates[mine]


def _frames(joined: CorrelatedTrace, name: str) -> dict[str, pa.Array[Any]]:
    """The columns of the frames of all parts, with what follows from their packets; and `row`."""
    columns: dict[str, list[pa.Array[Any]]] = {one: [] for one in (*FRAMES.names, "row", "direction_index")}
    trace, index = joined.trace, joined.trace.headers.index
    for part, numbers in zip(joined.parts, joined.numbers, strict=True):
        rows, directions, frame_columns = part.frame_rows, part.frame_directions, part.frames
        if not len(rows):
            continue
        keys = frame_columns["connection"].to_numpy()
        known, place = np.unique(keys, return_inverse=True)
        names = np.asarray([numbers[int(one)] for one in known], dtype=np.int64)
        columns["connection"].append(pa.array(names[place]).cast(pa.uint32()))
        columns["number"].append(pa.array(index[rows] + 1).cast(pa.uint64()))
        columns["time_ns"].append(pa.array(joined.time_ns[rows]))
        columns["side"].append(choose(trace.flows.side[rows], ("a", "b")))
        columns["direction"].append(choose(directions, DIRECTIONS))
        columns["row"].append(pa.array(rows))
        columns["direction_index"].append(pa.array(directions))
        for key, values in frame_columns.items():
            if key != "connection":
                columns[key].append(values)
    kinds = {"row": pa.int64(), "direction_index": pa.int64()}
    result: dict[str, pa.Array[Any]] = {}
    for key, arrays in columns.items():
        kind = kinds.get(key) or FRAMES.arrow().field(key).type
        result[key] = pa.concat_arrays([one.cast(kind) for one in arrays]) if arrays else pa.nulls(0, kind)
    return result


def write(tables: dict[str, pa.Table], out: Path, *, csv: bool) -> None:
    """Write the tables into a folder, which is made if need be; each is there whole or not at all."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, table in tables.items():
            with _write_whole(out / f"{name}.parquet") as draft:
                pq.write_table(table, draft, compression="zstd")
            if csv:
                with _write_whole(out / f"{name}.csv") as draft:
                    pyarrow.csv.write_csv(table, draft)
    except OSError as error:
        raise CannotError(f"{out}: {error.strerror or error}; name a folder that can be written with --out") from error


@contextmanager
def _write_whole(path: Path) -> Iterator[Path]:
    """The name to write a file under; it gets its own at the end, and nothing is left of it after an error."""
    draft = path.with_name(f".tmp-{path.name}")
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
