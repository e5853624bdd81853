"""What the parts are called that captures are split into, in the order of tables and figures."""

from __future__ import annotations

from collections.abc import Mapping

TIME: Mapping[str, str] = {
    "handshake": "handshake",
    "propagation": "propagation",
    "server": "server",
    "transmission": "transmission",
    "congestion window": "congestion window",
    "loss recovery": "loss recovery",
    "head-of-line blocking": "head-of-line blocking",
    "flow control": "flow control",
    "queueing": "queueing",
    "cpu": "CPU",
    "rest": "rest",
}
"""Parts of a request's time (`analysis.transport.attribution`), in the order in which they are drawn."""

OCTETS: Mapping[str, str] = {
    "content": "content",
    "fields": "header fields",
    "http_framing": "HTTP framing",
    "protection": "TLS records, QUIC packets",
    "transport_frames": "QUIC frames",
    "padding": "padding",
    "handshake": "handshake",
    "transport": "TCP or UDP headers",
    "ip": "IP headers",
    "link": "link-layer headers",
    "acknowledgements": "only acknowledge",
    "retransmissions": "sent again",
    "unknown": "not decrypted",
}
"""Parts of the octets on the wire (`analysis.transport.overhead`)."""

HELD: Mapping[str, str] = {
    "sender": "sender: pacing, CPU",
    "application": "server has nothing to send",
    "congestion_window": "congestion window",
    "stream_window": "window of the stream",
    "connection_window": "window of the connection",
    "receiver_window": "window of TCP",
    "unknown": "not known",
}
"""What a sender of responses waited for (`analysis.transport.stalls`)."""
