"""The metrics of every connection of a dissection as one table: a row a connection, direction and metric.

Definitions and sources: docs/packets.md. A value that cannot be known is null, and its note says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from trifecta.analysis.transport.acknowledgements import acknowledgements
from trifecta.analysis.transport.columns import Connection, connections
from trifecta.analysis.transport.directions import LACKS
from trifecta.analysis.transport.overhead import overhead
from trifecta.analysis.transport.rate import gaps, peak_bits_per_s
from trifecta.analysis.transport.setup import setup
from trifecta.analysis.transport.slow_start import restarts, slow_start
from trifecta.analysis.transport.stalls import stalls
from trifecta.analysis.transport.window_reuse import window_reuses
from trifecta.store.trace_schema import TABLES
from trifecta.trace.delays import Delays
from trifecta.trace.documents import Families

if TYPE_CHECKING:
    from trifecta.trace.dissection import Dissection

_FIELDS: list[tuple[str, pa.DataType]] = [
    ("capture", pa.string()),
    ("connection", pa.uint32()),
    ("protocol", pa.string()),
    ("direction", pa.string()),  # up, down; null: of the whole connection
    # setup, overhead, rate, acknowledgements, slow_start, again, stalls, recovery, blocking, attribution
    ("family", pa.string()),
    ("metric", pa.string()),
    ("value", pa.float64()),
    ("unit", pa.string()),  # ns, B, bit/s, 1
    ("bound", pa.float64()),  # the least (or, of a ratio, the best) that is possible, in the unit
    ("note", pa.string()),
]
METRICS = pa.schema(_FIELDS)
_HEAD = ("capture", "connection", "protocol", "direction", "family", "note")
# Parts that may be among the unknown octets without keys, by whether it is TCP: none that was seen is not none.
_OF_HTTP = ("http_framing", "fields", "content")
_OF_QUIC = ("handshake", "protection", "padding", "transport_frames", "acknowledgements", "retransmissions")
_HIDDEN = {True: _OF_HTTP, False: (*_OF_QUIC, *_OF_HTTP)}
Found = tuple[str, Any, str, float | None]  # metric, value, unit, bound


def trace_metrics(
    dissection: Dissection, of: list[Connection] | None = None, *, one_side: bool | None = None
) -> pa.Table:
    """The table, with the columns of `METRICS`.

    ``of``: the connections of this dissection, where they are there. ``one_side``: `delivery.passage`.
    """
    return encoded_metrics(dissection, of, one_side=one_side).cast(METRICS)


def encoded_metrics(
    dissection: Dissection, of: list[Connection] | None = None, *, one_side: bool | None = None
) -> pa.Table:
    """`trace_metrics` with each text once: small enough to pass on."""
    heads: list[tuple[Any, ...]] = []  # what rows of one family and direction have in common
    counts: list[int] = []
    rows: list[Found] = []
    if of is None:
        of = connections(dissection.packets, dissection.frames, dissection.messages, dissection.connections)
    delays = Delays({name: getattr(dissection, name) for name in TABLES}, of, one_side=one_side)
    for connection in of:
        whose = [connection.row[name] for name in ("capture", "connection", "protocol")]
        for family, up, found_here, family_notes in (*_families(connection), *delays.families(connection.number)):
            lacks = connection.lacks_packets
            metrics = [(name, None, unit, bound) for name, _, unit, bound in found_here] if lacks else found_here
            notes = [LACKS.format(connection.number)] if lacks else family_notes
            direction = None if up is None else "up" if up else "down"
            heads.append((*whose, direction, family, "; ".join(notes) or None))
            counts.append(len(metrics))
            rows += metrics
    return _table(heads, counts, rows)


def _table(heads: list[tuple[Any, ...]], counts: list[int], rows: list[Found]) -> pa.Table:
    columns: dict[str, pa.Array[Any]] = {}
    place = np.repeat(np.arange(len(heads)), np.asarray(counts, dtype=np.int64))
    for name, column_values in zip(_HEAD, zip(*heads, strict=True) if heads else [()] * len(_HEAD), strict=True):
        columns[name] = _encoded(column_values, METRICS.field(name).type, place)
    metrics, values, units, bounds = zip(*rows, strict=True) if rows else ((), (), (), ())
    for name, texts in (("metric", metrics), ("unit", units)):
        columns[name] = _encoded(texts, pa.string(), slice(None))
    for name, numbers in (("value", values), ("bound", bounds)):
        null = np.fromiter((one is None for one in numbers), dtype=np.bool_, count=len(numbers))
        given = np.fromiter(numbers, dtype=np.object_, count=len(numbers))
        columns[name] = pa.array(given.astype(np.float64), mask=null)
    return pa.table({name: columns[name] for name in METRICS.names})


def _encoded(values: Sequence[Any], kind: pa.DataType, place: Any) -> pa.Array[Any]:
    """Values by place, each different one once."""
    codes = {value: code for code, value in enumerate(dict.fromkeys(values))}
    each = np.fromiter(map(codes.__getitem__, values), dtype=np.int32, count=len(values))[place]
    return pa.DictionaryArray.from_arrays(each, pa.array(list(codes), kind))


def by_connection(metrics: pa.Table) -> dict[int, Families]:
    """The same for a program: by connection."""
    families: dict[int, Families] = {}
    names = ("connection", "family", "direction", "metric", "value")
    for number, family, direction, metric, value in zip(*(metrics[name].to_pylist() for name in names), strict=True):
        families.setdefault(number, {}).setdefault(family, {}).setdefault(direction or "both", {})[metric] = value
    return families


def _families(connection: Connection) -> Iterator[tuple[str, bool | None, list[Found], list[str]]]:
    yield "setup", None, *_setup(connection)
    yield from _overhead(connection)
    directed: tuple[tuple[str, Callable[[Connection, bool], tuple[list[Found], list[str]]]], ...] = (
        ("rate", _rate),
        ("acknowledgements", _acknowledgements),
        ("slow_start", _slow_start),
        ("stalls", _stalls),
    )
    for family, work in directed:
        for up in (True, False):
            yield family, up, *work(connection, up)
    yield "again", False, *_repeated(connection)


def _setup(connection: Connection) -> tuple[list[Found], list[str]]:
    setup_result = setup(connection)
    least = (
        None
        if setup_result.bound is None or setup_result.rtt_ns is None
        else float(setup_result.bound * setup_result.rtt_ns)
    )
    rows: list[Found] = [("rtt", setup_result.rtt_ns, "ns", None), ("ratio", setup_result.ratio, "1", 1.0)]
    for name, passed, bound in (
        ("request", setup_result.to_request, None if setup_result.bound is None else setup_result.bound - 1),
        ("response", setup_result.to_response, setup_result.bound),
    ):
        values = (
            (None,) * 6
            if passed is None
            else (
                passed.time_ns,
                passed.round_trips,
                passed.packets_up,
                passed.packets_down,
                passed.wire_bytes_up,
                passed.wire_bytes_down,
            )
        )
        bounds = (
            least if name == "response" else None,
            None if bound is None else float(bound),
            None,
            None,
            None,
            None,
        )
        names = ("time", "round_trips", "packets_up", "packets_down", "wire_bytes_up", "wire_bytes_down")
        units = ("ns", "1", "1", "1", "B", "B")
        rows += [
            (f"{one}_to_{name}", value, unit, limit)
            for one, value, unit, limit in zip(names, values, units, bounds, strict=True)
        ]
    rows += [(f"cost_{cost.name}", cost.times, "1", 0.0) for cost in setup_result.costs]
    return rows, setup_result.notes


def _overhead(connection: Connection) -> Iterator[tuple[str, bool | None, list[Found], list[str]]]:
    costs = overhead(connection)
    measured: list[Found] = [
        ("wire_bytes", costs.wire_bytes, "B", None),
        ("content_bytes", costs.content_bytes, "B", None),
        ("wire_by_content", costs.ratio, "1", 1.0),
    ]
    yield "overhead", None, measured, costs.notes
    for up, parts in ((True, costs.up), (False, costs.down)):
        hidden = _HIDDEN[connection.tcp] if connection.row["decrypted"] is False and parts["unknown"] else ()
        values = {name: None if name in hidden and not octets else octets for name, octets in parts.items()}
        yield "overhead", up, [(name, octets, "B", None) for name, octets in values.items()], costs.notes


def _rate(connection: Connection, up: bool) -> tuple[list[Found], list[str]]:
    between = gaps(connection, up=up)
    spread = between.spread_ns
    return [
        ("gap_p50", spread.p50 if spread else None, "ns", None),
        ("gap_p99", spread.p99 if spread else None, "ns", None),
        ("gap_most", spread.most if spread else None, "ns", None),
        ("peak_rate", peak_bits_per_s(connection, up=up), "bit/s", None),
    ], between.notes


def _acknowledgements(connection: Connection, up: bool) -> tuple[list[Found], list[str]]:
    acks = acknowledgements(connection, up=up)
    delay, reported = acks.delay_ns, acks.said_delay_ns
    return [
        ("count", acks.count, "1", None),
        ("packets", acks.packets, "1", None),
        ("packets_wire_bytes", acks.packets_wire_bytes, "B", None),
        ("mean_packet_bytes", acks.mean_packet_bytes, "B", None),
        ("data_packets_per_acknowledgement", acks.data_packets_per_acknowledgement, "1", None),
        ("eliciting_share", acks.eliciting_share, "1", None),
        ("with_holes", acks.with_holes, "1", None),
        ("duplicates", acks.duplicates, "1", None),
        ("delay_p50", delay.p50 if delay else None, "ns", None),
        ("delay_most", delay.most if delay else None, "ns", None),
        ("said_delay_p50", reported.p50 if reported else None, "ns", None),
    ], acks.notes


def _slow_start(connection: Connection, up: bool) -> tuple[list[Found], list[str]]:
    start, pauses = slow_start(connection, up=up), restarts(connection, up=up)
    rows: list[Found] = []
    notes: list[str] = []
    if start is None:
        notes.append("no acknowledgement of data of this direction can be read")
    else:
        notes += [*start.notes, f"slow start ended with: {start.exit}"]
        rows += [
            ("initial_window", start.initial_window, "B", None),
            ("exit_window", start.exit_window, "B", None),
            ("round_trips", start.rounds, "1", None),
            ("duration", start.duration_ns, "ns", None),
            ("growth", start.growth, "1", 2.0),
        ]
    rows.append(("pauses", len(pauses) if start is not None else None, "1", None))
    rows.append(
        ("pauses_window_lost", sum(one.kept is False for one in pauses) if start is not None else None, "1", 0.0)
    )
    return rows, notes


def _repeated(connection: Connection) -> tuple[list[Found], list[str]]:
    if connection.row["decrypted"] is False:
        names = (("responses", "1"), ("window_kept", "1"), ("ramp", "ns"), ("not_regained", "1"))
        return [(name, None, unit, None) for name, unit in names], [
            "without keys it is unknown which responses there were"
        ]
    reuses = window_reuses(connection)
    known = [one for one in reuses if one.kept is not None]
    notes = [] if known else ["no later response that began alone and was large enough to show a window"]
    kept_windows = [one.kept for one in known if one.kept is not None]
    ramp = [one.ramp_ns for one in known if one.ramp_ns is not None]
    return [
        ("responses", len(known), "1", None),
        ("window_kept", median(kept_windows) if kept_windows else None, "1", 1.0),
        ("ramp", median(ramp) if ramp else None, "ns", 0.0),
        ("not_regained", sum(one.regained is False for one in known), "1", 0.0),
    ], notes


def _stalls(connection: Connection, up: bool) -> tuple[list[Found], list[str]]:
    stall_summary = stalls(connection, up=up)
    readable = (
        stall_summary.total_ns or connection.row["decrypted"]
    )  # without messages nobody knows what was waited for
    rows: list[Found] = [("total", stall_summary.total_ns if readable else None, "ns", None)]
    rows += [(name, ns if readable else None, "ns", None) for name, ns in stall_summary.causes.items()]
    streams = None if stall_summary.stream_held_ns is None else sum(stall_summary.stream_held_ns.values())
    rows += [
        ("streams_held", streams, "ns", 0.0),
        ("connection_held", stall_summary.connection_held_ns, "ns", 0.0),
        ("zero_windows", stall_summary.zero_windows, "1", 0.0),
        ("blocked_frames", stall_summary.blocked_frames, "1", 0.0),
    ]
    return rows, stall_summary.notes
