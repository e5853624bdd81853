"""Which packets carry octets of HTTP."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.report.synthetic_packets import World, tables
from trifecta.analysis.transport.application import carries_http
from trifecta.analysis.transport.columns import Connection, connections
from trifecta.store.trace_schema import PACKETS
from trifecta.trace.dissection import Dissection


def of(found: Dissection, packets: list[dict[str, Any]] | None = None) -> Connection:
    table = found.packets if packets is None else pa.Table.from_pylist(packets, PACKETS.arrow())
    return connections(table, found.frames, found.messages, found.connections)[0]


def held(connection: Connection, *, up: bool) -> list[bool]:
    found = carries_http(connection, up=up)
    assert found is not None
    return found.tolist()


@pytest.mark.parametrize(("arm", "handshake"), [("h1", 2), ("h2", 2), ("h3", 2)])
def test_requests_do_and_handshakes_and_acknowledgements_do_not(arm: str, handshake: int) -> None:
    connection = of(tables(World(arm=arm, size=6_000, lose=())))
    up = held(connection, up=True)
    assert up.count(True) == 3  # a packet a request
    assert not any(up[:handshake])
    assert not up[-1]  # an acknowledgement
    assert held(connection, up=False)[-1]


def test_what_was_sent_again_does_too() -> None:
    for arm in ("h2", "h3"):
        whole, lossy = (held(of(tables(World(arm=arm, size=6_000, lose=lose))), up=False) for lose in ((), (1,)))
        assert lossy.count(True) == whole.count(True) + 1


@pytest.mark.parametrize(("octets", "expected"), [(0, False), (1, True)])
def test_a_segment_behind_the_last_frame_does_not(octets: int, expected: bool) -> None:
    """As the alert that closes TLS; with one octet of the frame before it, it does."""
    found = tables(World(arm="h2", size=6_000, lose=()))
    rows = found.packets.to_pylist()
    data = [row for row in rows if row["direction"] == "down" and row["side"] == "b" and row["payload_bytes"]]
    last = max(data, key=lambda row: row["sequence"])
    later = {"number": 10_000, "time_ns": max(row["time_ns"] for row in rows) + 1, "payload_bytes": 24 + octets}
    alert = last | later | {"sequence": last["sequence"] + last["payload_bytes"] - octets}
    assert held(of(found, [*rows, alert]), up=False)[-1] is expected


def test_without_keys_it_is_not_known() -> None:
    connection = of(tables(World(arm="h2", size=6_000, lose=(), keys=False)))
    assert carries_http(connection, up=True) is None
