"""Schemas of the four tables that a dissection gives (docs/packets.md), as Parquet and CSV.

A null means: cannot be known (no keys, or not of this protocol); never a guess. `time_ns` is CLOCK_REALTIME in ns, as
captures have it. `connection` counts through all captures of one dissection, so it is a key of its own. Where a capture
has both sides of a link (interfaces `a` and `b`), `packets` has a row for each side, and `frames` are those of the
sending side (up: `a`, down: `b`), so that what the link lost is there too; the same packet on the other side has the
same `packet_id`.
"""

from __future__ import annotations

import pyarrow as pa

SCHEMA_VERSION = 1
TABLES = ("packets", "frames", "messages", "connections")


def _schema(*fields: tuple[str, pa.DataType]) -> pa.Schema:
    return pa.schema(list(fields))


# One row a packet and side. `number` counts from 1 in the file, as Wireshark does.
PACKETS = _schema(
    ("capture", pa.string()),
    ("number", pa.uint64()),
    ("side", pa.string()),  # a: towards the client, b: towards the server; null: a capture of one side
    ("packet_id", pa.uint64()),  # epb_packetid: direction << 63 | copy << 48 | ordinal (docs/architecture.md, 1.3)
    ("time_ns", pa.int64()),
    ("direction", pa.string()),  # up: client to server, down: server to client
    ("source", pa.string()),
    ("destination", pa.string()),
    ("source_port", pa.uint16()),
    ("destination_port", pa.uint16()),
    ("connection", pa.uint32()),
    ("transport", pa.string()),  # tcp, udp
    ("wire_bytes", pa.uint32()),  # with the link-layer header; the length before truncation
    ("captured_bytes", pa.uint32()),
    ("ip_header_bytes", pa.uint32()),
    ("transport_header_bytes", pa.uint32()),
    ("payload_bytes", pa.uint32()),  # of TCP or UDP
    # TCP (RFC 9293). Numbers are relative to the SYN and do not wrap.
    ("sequence", pa.uint64()),
    ("acknowledged", pa.uint64()),
    ("window", pa.uint32()),  # octets, scaled where the SYNs were seen, else null
    ("flags", pa.string()),  # SYN,ACK
    ("sack", pa.string()),  # JSON: [[left, right], ...], relative as `sequence`
    # QUIC (RFC 9000). Lists in the order of the datagram.
    ("header_form", pa.string()),  # long, short, or 'long,short'
    ("packet_type", pa.string()),  # 'Initial,Handshake'; 1-RTT for short headers
    ("packet_number", pa.string()),  # '0,0'
    ("destination_cid", pa.string()),
    ("source_cid", pa.string()),
    (
        "quic_header_bytes",
        pa.uint32(),
    ),  # all headers of the datagram, packet numbers included; a tag has 16 octets more
    ("frames", pa.string()),  # 'ACK,STREAM'; packets of a datagram are parted by ';'
    ("streams", pa.string()),  # '0,4'
    ("acknowledged_ranges", pa.string()),  # JSON: [[first, last], ...] packet numbers, highest first, of all ACK frames
    ("spin", pa.bool_()),
    ("info", pa.string()),
    ("protocol", pa.string()),  # h1, h2, h3
    ("retransmission", pa.bool_()),  # TCP: octets sent before in this direction on this side (docs/packets.md)
    ("fate", pa.string()),  # of the link: delivered, lost, queue_dropped, corrupted, duplicate, under_way, ...
    ("delay_ns", pa.int64()),  # time at the far side less time at the near side of the same packet_id
)

# One row a frame, in the order of the plaintext of its direction. `number`, `time_ns`: the packet with the last octet
# of the frame (QUIC: the packet that holds it) at the sending side. A QUIC frame that was sent again has a row each
# time; TCP octets count once.
FRAMES = _schema(
    ("capture", pa.string()),
    ("number", pa.uint64()),
    ("time_ns", pa.int64()),
    ("side", pa.string()),
    ("connection", pa.uint32()),
    ("direction", pa.string()),
    ("layer", pa.string()),  # tls (a record), h1, h2, quic, h3
    (
        "type",
        pa.string(),
    ),  # DATA, HEADERS, STREAM, ACK, CRYPTO, WINDOW_UPDATE, ...; tls: handshake, application_data, ...
    ("stream", pa.uint64()),
    # STREAM, CRYPTO, h3: offset in the stream (of the data; h3: of the frame). h1, h2: first octet of the frame in the
    # plaintext of its direction. tls: first octet of the record in the octets of TCP.
    ("offset", pa.uint64()),
    # Octets of content: STREAM and CRYPTO data, HTTP frame payload, record payload (the record's length field).
    ("length", pa.uint32()),
    ("wire_length", pa.uint32()),  # the whole frame or record with its own header, before encryption (tls: after)
    ("fin", pa.bool_()),  # STREAM: FIN; h2: END_STREAM
    # WINDOW_UPDATE: increment. MAX_*, *_BLOCKED: the limit. SETTINGS (h2): INITIAL_WINDOW_SIZE. ACK: the largest.
    ("value", pa.uint64()),
    ("ack_delay_ns", pa.int64()),  # QUIC ACK, with the sender's exponent
    ("packet_number", pa.uint64()),
    ("packet_space", pa.string()),  # initial, handshake, application
    # tls, h1, h2: the TCP octets [start, end), relative as `sequence`, whose records hold the frame. It can be
    # delivered when everything below `tcp_end` has arrived.
    ("tcp_start", pa.uint64()),
    ("tcp_end", pa.uint64()),
)

# One row a request with its response. Times are those at side a (the client), or of the only side.
MESSAGES = _schema(
    ("capture", pa.string()),
    ("connection", pa.uint32()),
    ("protocol", pa.string()),
    ("stream", pa.uint64()),  # null for h1
    ("request", pa.uint64()),  # ordinal in its connection, from 0
    ("method", pa.string()),
    ("authority", pa.string()),
    ("path", pa.string()),
    ("status", pa.uint16()),  # the final one
    ("request_start_ns", pa.int64()),
    ("request_end_ns", pa.int64()),
    ("response_start_ns", pa.int64()),
    ("response_end_ns", pa.int64()),
    ("request_header_bytes", pa.uint32()),  # encoded field sections (h1: text with request line), without frame headers
    ("response_header_bytes", pa.uint32()),
    (
        "request_body_bytes",
        pa.uint64(),
    ),  # content as framed: without frame headers and padding, h1: without chunk sizes
    ("response_body_bytes", pa.uint64()),
    ("packets_up", pa.uint32()),  # packets that hold at least one octet of the request (response)
    ("packets_down", pa.uint32()),
    ("complete", pa.bool_()),  # both ends were seen
)

CONNECTIONS = _schema(
    ("capture", pa.string()),
    ("connection", pa.uint32()),
    ("protocol", pa.string()),
    ("transport", pa.string()),
    ("client", pa.string()),
    ("server", pa.string()),
    ("client_port", pa.uint16()),
    ("server_port", pa.uint16()),
    ("tls_version", pa.string()),  # 1.3, 1.2
    ("cipher", pa.string()),
    ("alpn", pa.string()),  # what the server chose; null where that was encrypted and no key is there
    ("alpn_offered", pa.string()),  # by the ClientHello, comma list
    ("server_name", pa.string()),  # by the ClientHello (SNI)
    ("resumed", pa.bool_()),
    ("zero_rtt", pa.bool_()),  # 0-RTT was sent
    ("key_exchange", pa.string()),
    ("quic_version", pa.string()),
    ("start_ns", pa.int64()),
    ("end_ns", pa.int64()),
    ("packets", pa.uint64()),  # of one side (a, where there are two)
    ("wire_bytes", pa.uint64()),
    ("payload_bytes", pa.uint64()),
    ("largest_wire_bytes", pa.uint32()),
    ("decrypted", pa.bool_()),
    ("migrated", pa.bool_()),
    # What is missing, comma list: 'start', 'end', 'keys', 'octets', 'packets' (some that there were are not in the
    # capture, or may not be); null: nothing.
    ("truncated", pa.string()),
    # QUIC transport parameters of both ends, JSON {"up": {"initial_max_data": 1, ...}, "down": {...}}: "up" are those
    # that the client sent. Null where they could not be read.
    ("transport_parameters", pa.string()),
)

SCHEMAS: dict[str, pa.Schema] = {
    "packets": PACKETS,
    "frames": FRAMES,
    "messages": MESSAGES,
    "connections": CONNECTIONS,
}
