"""Recovery, blocking and attribution on tables that make no sense: no crash, and sums that hold all the same."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st

from trifecta.analysis.transport.attribution import attribute
from trifecta.analysis.transport.blocking import blocking
from trifecta.analysis.transport.directions import directions
from trifecta.analysis.transport.recovery import recovery
from trifecta.analysis.transport.trial import look_at
from trifecta.store.trace_schema import SCHEMAS
from trifecta.trace.dissection import Dissection
from trifecta.trace.summary import trace_metrics

small = st.integers(0, 40)
times = st.integers(0, 60).map(lambda value: value * 500_000)
huge = st.one_of(small, st.sampled_from([2**31, 2**61, 2**62]))
maybe = st.one_of(st.none(), small)
direction = st.sampled_from(["up", "down", None])
connection = st.integers(0, 1)
packet = st.fixed_dictionaries(
    {
        "number": small,
        "side": st.sampled_from(["a", "b", "a", "b", None]),
        "packet_id": st.one_of(st.none(), st.integers(0, 8), st.integers(2**63, 2**63 + 8)),
        "time_ns": times,
        "direction": direction,
        "connection": st.one_of(connection, connection, st.none()),
        "transport": st.sampled_from(["tcp", "udp"]),
        "sequence": st.one_of(maybe, huge),
        "acknowledged": maybe,
        "payload_bytes": st.integers(0, 9),
        "wire_bytes": st.one_of(maybe, st.just(2**31)),
        "flags": st.sampled_from([None, "ACK", "SYN"]),
        "sack": st.sampled_from([None, "[]", "[[3, 9]]"]),
        "fate": st.sampled_from([None, "lost", "delivered", "corrupted", "duplicate"]),
        "retransmission": st.sampled_from([None, True, False]),
    }
)
frame = st.fixed_dictionaries(
    {
        "number": st.one_of(maybe, small),
        "time_ns": times,
        "connection": connection,
        "direction": direction,
        "layer": st.sampled_from(["tls", "h1", "h2", "quic", "quic", "h3"]),
        "type": st.sampled_from(["DATA", "HEADERS", "STREAM", "STREAM", "CRYPTO", "ACK", "SETTINGS", "MAX_DATA"]),
        "stream": st.sampled_from([None, 0, 1, 3, 4]),
        "offset": st.one_of(maybe, huge),
        "length": st.one_of(st.none(), st.integers(0, 20)),
        "wire_length": st.one_of(st.none(), st.integers(0, 30)),
        "value": maybe,
        "packet_number": maybe,
        "packet_space": st.sampled_from([None, "initial", "application"]),
        "tcp_start": maybe,
        "tcp_end": maybe,
    }
)
message = st.fixed_dictionaries(
    {
        "capture": st.just("t"),
        "connection": connection,
        "stream": st.sampled_from([None, 0, 1, 3]),
        "request": st.integers(0, 2),
        "request_start_ns": st.one_of(st.none(), times),
        "response_end_ns": st.one_of(st.none(), times),
    }
)
protocols = st.sampled_from(["h1", "h2", "h3", None])


def tables(packets: list[Any], frames: list[Any], messages: list[Any], spoken: list[Any]) -> dict[str, pa.Table]:
    """The four tables; both connections have a row."""
    connections = [
        {"connection": number, "protocol": name, "transport": "udp" if name == "h3" else "tcp"}
        | {"tls_version": "1.3", "cipher": "TLS_AES_128_GCM_SHA256", "start_ns": 0, "decrypted": bool(name)}
        for number, name in enumerate(spoken)
    ]
    rows = {"packets": packets, "frames": frames, "messages": messages, "connections": connections}
    return {name: pa.Table.from_pylist(rows[name], schema=schema.arrow()) for name, schema in SCHEMAS.items()}


@settings(max_examples=150, deadline=None)
@given(
    st.lists(packet, max_size=25),
    st.lists(frame, max_size=15),
    st.lists(message, max_size=3),
    st.lists(protocols, min_size=2, max_size=2),
)
def test_no_tables_make_it_crash(packets: list[Any], frames: list[Any], messages: list[Any], spoken: list[Any]) -> None:
    made = tables(packets, frames, messages, spoken)
    for request in blocking(made).requests:
        waits = (request.by_others_ns, request.by_records_ns, request.by_own_ns)
        assert min(waits) >= 0
        assert max(waits) <= request.blocked_ns <= sum(waits)
    for way in recovery(made)[0]:
        assert (way.spurious or 0) <= (way.retransmissions or 0) <= way.packets
        assert all(repair.took_ns is None or repair.took_ns > 0 for repair in way.repairs)
    values = look_at(made).values
    assert all(value is None or math.isfinite(value) for value in values.values())
    for one in attribute(made)[0]:
        assert sum(one.parts.values()) == one.whole_ns > 0
        assert min(one.parts.values()) >= 0
        assert all(interval.start_ns < interval.end_ns for interval in one.intervals)
        ends = [interval.end_ns for interval in one.intervals]
        assert [one.start_ns, *ends] == [*(interval.start_ns for interval in one.intervals), one.end_ns]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(packet, max_size=30),
    st.lists(frame, max_size=20),
    st.lists(message, max_size=3),
    st.lists(protocols, min_size=2, max_size=2),
)
def test_a_connection_says_alone_what_it_says_among_others(
    packets: list[Any], frames: list[Any], messages: list[Any], spoken: list[Any]
) -> None:
    made = tables(packets, frames, messages, spoken)
    one_side = any(not way.both_sides for way in directions(made["packets"]).values())
    whole = trace_metrics(Dissection(**made), one_side=one_side)
    for number in (0, 1):
        alone = {name: table.filter(pc.equal(table["connection"], number)) for name, table in made.items()}
        said = trace_metrics(Dissection(**alone), one_side=one_side).to_pylist()
        assert said == whole.filter(pc.equal(whole["connection"], number)).to_pylist()
