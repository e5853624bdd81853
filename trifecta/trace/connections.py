"""The rows of the table `connections`."""

from __future__ import annotations

from collections.abc import Set

import numpy as np

from trifecta.trace.correlation import CorrelatedTrace
from trifecta.trace.documents import ConnectionRow
from trifecta.trace.headers import FIN, RST, TCP
from trifecta.trace.rows import Facts


def facts_of(joined: CorrelatedTrace) -> dict[int, Facts]:
    """What the parts found, by connection."""
    return {
        numbers[key]: facts
        for part, numbers in zip(joined.parts, joined.numbers, strict=True)
        for key, facts in part.facts.items()
        if key in numbers
    }


def protocols(joined: CorrelatedTrace) -> dict[int, str | None]:
    """The protocol of every connection, where it is known."""
    facts = facts_of(joined)
    return {int(one): facts[int(one)].protocol if int(one) in facts else None for one in np.unique(joined.connection)}


def connections(joined: CorrelatedTrace, protocol: dict[int, str | None], left_out: Set[int]) -> list[ConnectionRow]:
    """A row a connection. Packets are those of the client's side, so that each counts once.

    ``left_out``: connections of which the link may have left out packets.
    """
    trace, facts_by_number = joined.trace, facts_of(joined)
    headers, flows = trace.headers, trace.flows
    order = np.argsort(joined.connection, kind="stable")
    edges = np.flatnonzero(np.diff(joined.connection[order])) + 1
    rows: list[ConnectionRow] = []
    for mine in np.split(order, edges):
        if not len(mine):
            continue
        connection = int(joined.connection[mine[0]])
        facts = facts_by_number.get(connection, Facts())
        near = mine[flows.side[mine] <= 0]
        side = near if len(near) else mine
        first = int(mine[0])
        up = flows.direction[first] == 0
        ends = (headers.source, headers.source_port), (headers.destination, headers.destination_port)
        client, server = ends if up else (ends[1], ends[0])
        wire = trace.capture.wire[headers.index[side]]
        missing = set(facts.missing) | ({"packets"} if connection in left_out else set())
        tcp = headers.transport[first] == TCP
        if tcp and not bool((headers.flags[mine] & (FIN | RST)).any()):
            missing.add("end")
        if bool((headers.payload_captured[mine] < headers.payload[mine]).any()):
            missing.add("octets")
        times = joined.time_ns[mine]
        rows.append(
            {
                "connection": connection,
                "protocol": protocol.get(connection),
                "transport": "tcp" if tcp else "udp",
                "client": headers.addresses[int(client[0][first])],
                "server": headers.addresses[int(server[0][first])],
                "client_port": int(client[1][first]),
                "server_port": int(server[1][first]),
                "tls_version": facts.tls_version,
                "cipher": facts.cipher,
                "alpn": facts.alpn,
                "alpn_offered": facts.alpn_offered,
                "server_name": facts.server_name,
                "resumed": facts.resumed,
                "zero_rtt": facts.zero_rtt,
                "key_exchange": facts.key_exchange,
                "quic_version": facts.quic_version,
                "start_ns": int(times.min()),
                "end_ns": int(times.max()),
                "packets": len(side),
                "wire_bytes": int(wire.sum()),
                "payload_bytes": int(headers.payload[side].sum()),
                "largest_wire_bytes": int(wire.max()),
                # Null: there is nothing to decrypt, or it is not known whether there is.
                "decrypted": facts.decrypted if facts.secured else None,
                "migrated": None if facts.quic_version is None else connection in joined.migrated,
                "truncated": ",".join(sorted(missing)) or None,
                "transport_parameters": facts.transport_parameters,
            }
        )
    _note_strangers(rows)
    return rows


def _note_strangers(rows: list[ConnectionRow]) -> None:
    """Datagrams with a server of QUIC that belong to no connection known: one that moved, or began before.

    A server that speaks HTTP or TLS over TCP at that port is one as well: a trial's capture of HTTP/2 has the last
    datagrams of the trial of HTTP/3 before it.
    """
    servers = {
        (row["server"], row["server_port"])
        for row in rows
        if any(known is not None for known in (row["quic_version"], row["protocol"], row["tls_version"]))
    }
    for row in rows:
        stranger = row["transport"] == "udp" and row["quic_version"] is None and row["protocol"] is None
        if stranger and row["truncated"] is None and (row["server"], row["server_port"]) in servers:
            row["truncated"] = "keys,start"
