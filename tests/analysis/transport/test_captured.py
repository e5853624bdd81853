"""The metrics on captures of our own link (tests/trace/captures): 10 ms each way, one packet of h2 and of h3 lost."""

import shutil
from pathlib import Path

import pytest

from trifecta.analysis.transport.acknowledgements import acknowledgements
from trifecta.analysis.transport.columns import Connection, connections
from trifecta.analysis.transport.overhead import overhead
from trifecta.analysis.transport.setup import setup
from trifecta.analysis.transport.stalls import stalls
from trifecta.trace.analyse import analyse
from trifecta.trace.dissect import dissect

CAPTURES = Path(__file__).parents[2] / "trace/captures"
pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is missing: scripts/setup.sh dev")


def _connection(protocol: str, *, keys: bool = True) -> Connection:
    found = dissect([CAPTURES / f"{protocol}.pcapng"], CAPTURES / f"{protocol}.keys" if keys else None)
    return connections(found.packets, found.frames, found.messages, found.connections)[0]


@pytest.mark.parametrize(("protocol", "bound", "lost"), [("h1", 3, False), ("h2", 3, True), ("h3", 2, True)])
def test_a_captured_connection_is_told_to_the_octet_and_round_trip(protocol: str, bound: int, lost: bool) -> None:
    connection = _connection(protocol)
    found = setup(connection)
    assert found.bound == bound and not found.costs
    assert found.to_response is not None and found.to_response.round_trips == bound
    assert found.rtt_ns is not None and 20e6 <= found.rtt_ns < 21e6 and found.ratio is not None and 1 <= found.ratio < 2
    parts = overhead(connection)
    assert parts.parts["unknown"] == 0 and (parts.down["retransmissions"] > 0) is lost and not parts.notes
    assert parts.content_bytes == sum(connection.messages["response_body_bytes"])
    wire = connection.sent(up=True)["wire_bytes"].sum() + connection.sent(up=False)["wire_bytes"].sum()
    assert sum(parts.parts.values()) == wire
    waits = stalls(connection, up=False)
    assert sum(waits.causes.values()) == waits.total_ns and waits.causes["application"] > 0
    assert waits.connection_held_ns == 0 and waits.flow_control == []
    acks = acknowledgements(connection, up=True)
    assert acks.delay_ns is not None and acks.delay_ns.least >= 0 and not acks.notes


@pytest.mark.parametrize("protocol", ["h1", "h2", "h3"])
def test_without_keys_nothing_is_made_up(protocol: str) -> None:
    connection = _connection(protocol, keys=False)
    assert setup(connection).ratio is None
    parts = overhead(connection)
    assert parts.parts["unknown"] > 0 and parts.content_bytes is None and parts.ratio is None and parts.notes
    waits = stalls(connection, up=False)
    assert waits.connection_held_ns is None and waits.total_ns == 0 and waits.notes


_OF_PACKETS = {("recovery", "packets"), ("recovery", "lost"), ("recovery", "reordered")}
_OF_PACKETS |= {("overhead", name) for name in ("wire_bytes", "link", "ip", "transport", "unknown")}


@pytest.mark.parametrize("kept", [b"", b"CLIENT_", b"SERVER_"])
def test_without_keys_quic_has_null_and_not_zero(tmp_path: Path, kept: bytes) -> None:
    """Initial packets open without keys; what follows them is unknown, in each direction for itself."""
    keys = tmp_path / "keys"
    keys.write_bytes(
        b"".join(one for one in (CAPTURES / "h3.keys").read_bytes().splitlines(True) if kept and kept in one)
    )
    found = dissect([CAPTURES / "h3.pcapng"], keys)
    rows = analyse(found, 1).metrics.to_pylist()
    unknown = {"CLIENT_": ["down"], "SERVER_": ["up"]}.get(kept.decode(), ["up", "down", None])
    zeros = {
        (one["family"], one["metric"])
        for one in rows
        if one["value"] == 0 and one["direction"] in unknown and one["family"] not in ("rate", "setup")
    }
    told = {one["metric"]: one["value"] for one in rows if one["family"] == "recovery" and one["direction"] in unknown}
    assert {told[name] for name in ("carrying", "retransmissions", "late", "spurious", "not_repaired")} == {None}
    assert told["packets"] > 0
    if not kept:
        assert zeros <= _OF_PACKETS, zeros - _OF_PACKETS
        (row,) = found.connections.to_pylist()
        assert (row["quic_version"], row["tls_version"], row["server_name"]) == ("1", "1.3", "origin.lab")
        assert (row["cipher"], row["alpn_offered"], row["alpn"]) == ("TLS_AES_128_GCM_SHA256", "h3", "h3")
