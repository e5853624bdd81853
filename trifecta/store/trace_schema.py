"""Schemas of the four tables that a dissection gives (docs/packets.md), as Parquet and CSV.

A null means: cannot be known (no keys, or not of this protocol); never a guess. `time_ns` is CLOCK_REALTIME in ns, as
captures have it. `connection` counts through all captures of one dissection, so it is a key of its own. Where a capture
has both sides of a link (interfaces `a` and `b`), `packets` has a row for each side, and `frames` are those of the
sending side (up: `a`, down: `b`), so that what the link lost is there too; the same packet on the other side has the
same `packet_id`.
"""

from __future__ import annotations

from trifecta.design.tables import BOOL, INT64, TEXT, UINT16, UINT32, UINT64, Schema, make_schema

TABLES = ("packets", "frames", "messages", "connections")


# One row a packet and side. `number` counts from 1 in the file, as Wireshark does.
PACKETS = make_schema(
    ("capture", TEXT),
    ("number", UINT64),
    ("side", TEXT),  # a: towards the client, b: towards the server; null: a capture of one side
    ("packet_id", UINT64),  # epb_packetid: direction << 63 | copy << 48 | ordinal (docs/architecture.md, 1.3)
    ("time_ns", INT64),
    ("direction", TEXT),  # up: client to server, down: server to client
    ("source", TEXT),
    ("destination", TEXT),
    ("source_port", UINT16),
    ("destination_port", UINT16),
    ("connection", UINT32),
    ("transport", TEXT),  # tcp, udp
    ("wire_bytes", UINT32),  # with the link-layer header; the length before truncation
    ("captured_bytes", UINT32),
    ("ip_header_bytes", UINT32),
    ("transport_header_bytes", UINT32),
    ("payload_bytes", UINT32),  # of TCP or UDP
    # TCP (RFC 9293). Numbers are relative to the SYN and do not wrap.
    ("sequence", UINT64),
    ("acknowledged", UINT64),
    ("window", UINT32),  # octets, scaled where the SYNs were seen, else null
    ("flags", TEXT),  # SYN,ACK
    ("sack", TEXT),  # JSON: [[left, right], ...], relative as `sequence`
    # QUIC (RFC 9000). Lists in the order of the datagram.
    ("header_form", TEXT),  # long, short, or 'long,short'
    ("packet_type", TEXT),  # 'Initial,Handshake'; 1-RTT for short headers
    ("packet_number", TEXT),  # '0,0'
    ("destination_cid", TEXT),
    ("source_cid", TEXT),
    (
        "quic_header_bytes",
        UINT32,
    ),  # all headers of the datagram, packet numbers included; a tag has 16 octets more
    ("frames", TEXT),  # 'ACK,STREAM'; packets of a datagram are parted by ';'
    ("streams", TEXT),  # '0,4'
    ("acknowledged_ranges", TEXT),  # JSON: [[first, last], ...] packet numbers, highest first, of all ACK frames
    ("spin", BOOL),
    ("info", TEXT),
    ("protocol", TEXT),  # h1, h2, h3
    ("retransmission", BOOL),  # TCP: octets sent before in this direction on this side (docs/packets.md)
    ("fate", TEXT),  # of the link: delivered, lost, queue_dropped, corrupted, duplicate, under_way, ...
    ("delay_ns", INT64),  # time at the far side less time at the near side of the same packet_id
)

# One row a frame, in the order of the plaintext of its direction. `number`, `time_ns`: the packet with the last octet
# of the frame (QUIC: the packet that holds it) at the sending side. A QUIC frame that was sent again has a row each
# time; TCP octets count once.
FRAMES = make_schema(
    ("capture", TEXT),
    ("number", UINT64),
    ("time_ns", INT64),
    ("side", TEXT),
    ("connection", UINT32),
    ("direction", TEXT),
    ("layer", TEXT),  # tls (a record), h1, h2, quic, h3
    (
        "type",
        TEXT,
    ),  # DATA, HEADERS, STREAM, ACK, CRYPTO, WINDOW_UPDATE, ...; tls: handshake, application_data, ...
    ("stream", UINT64),
    # STREAM, CRYPTO, h3: offset in the stream (of the data; h3: of the frame). h1, h2: first octet of the frame in the
    # plaintext of its direction. tls: first octet of the record in the octets of TCP.
    ("offset", UINT64),
    # Octets of content: STREAM and CRYPTO data, HTTP frame payload, record payload (the record's length field).
    ("length", UINT32),
    ("wire_length", UINT32),  # the whole frame or record with its own header, before encryption (tls: after)
    ("fin", BOOL),  # STREAM: FIN; h2: END_STREAM
    # WINDOW_UPDATE: increment. MAX_*, *_BLOCKED: the limit. SETTINGS (h2): INITIAL_WINDOW_SIZE. ACK: the largest.
    ("value", UINT64),
    ("ack_delay_ns", INT64),  # QUIC ACK, with the sender's exponent
    ("packet_number", UINT64),
    ("packet_space", TEXT),  # initial, handshake, application
    # tls, h1, h2: the TCP octets [start, end), relative as `sequence`, whose records hold the frame. It can be
    # delivered when everything below `tcp_end` has arrived.
    ("tcp_start", UINT64),
    ("tcp_end", UINT64),
)

# One row a request with its response. Times are those at side a (the client), or of the only side.
MESSAGES = make_schema(
    ("capture", TEXT),
    ("connection", UINT32),
    ("protocol", TEXT),
    ("stream", UINT64),  # null for h1
    ("request", UINT64),  # ordinal in its connection, from 0
    ("method", TEXT),
    ("authority", TEXT),
    ("path", TEXT),
    ("status", UINT16),  # the final one
    ("request_start_ns", INT64),
    ("request_end_ns", INT64),
    ("response_start_ns", INT64),
    ("response_end_ns", INT64),
    ("request_header_bytes", UINT32),  # encoded field sections (h1: text with request line), without frame headers
    ("response_header_bytes", UINT32),
    (
        "request_body_bytes",
        UINT64,
    ),  # content as framed: without frame headers and padding, h1: without chunk sizes
    ("response_body_bytes", UINT64),
    ("packets_up", UINT32),  # packets that hold at least one octet of the request (response)
    ("packets_down", UINT32),
    ("complete", BOOL),  # both ends were seen
)

CONNECTIONS = make_schema(
    ("capture", TEXT),
    ("connection", UINT32),
    ("protocol", TEXT),
    ("transport", TEXT),
    ("client", TEXT),
    ("server", TEXT),
    ("client_port", UINT16),
    ("server_port", UINT16),
    ("tls_version", TEXT),  # 1.3, 1.2
    ("cipher", TEXT),
    ("alpn", TEXT),  # what the server chose; null where that was encrypted and no key is there
    ("alpn_offered", TEXT),  # by the ClientHello, comma list
    ("server_name", TEXT),  # by the ClientHello (SNI)
    ("resumed", BOOL),
    ("zero_rtt", BOOL),  # 0-RTT was sent
    ("key_exchange", TEXT),
    ("quic_version", TEXT),
    ("start_ns", INT64),
    ("end_ns", INT64),
    ("packets", UINT64),  # of one side (a, where there are two)
    ("wire_bytes", UINT64),
    ("payload_bytes", UINT64),
    ("largest_wire_bytes", UINT32),
    ("decrypted", BOOL),
    ("migrated", BOOL),
    # What is missing, comma list: 'start', 'end', 'keys', 'octets', 'packets' (some that there were are not in the
    # capture, or may not be); null: nothing.
    ("truncated", TEXT),
    # QUIC transport parameters of both ends, JSON {"up": {"initial_max_data": 1, ...}, "down": {...}}: "up" are those
    # that the client sent. Null where they could not be read.
    ("transport_parameters", TEXT),
)

SCHEMAS: dict[str, Schema] = {
    "packets": PACKETS,
    "frames": FRAMES,
    "messages": MESSAGES,
    "connections": CONNECTIONS,
}
