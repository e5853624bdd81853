"""Captures of QUIC by aioquic, client and server in one process, with addresses and times of ours: no network.

    PYTHONPATH=. "$TRIFECTA_CACHE"/python-client/bin/python -m tests.trace.make_quic tests/trace/captures

makes the committed ones again (`trifecta get python-client` brings aioquic). Every datagram takes 5 ms.
"""

from __future__ import annotations

import io
import struct
import sys
import tempfile
from pathlib import Path
from typing import Any

from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import StreamDataReceived
from pylsqpack import Encoder

from tests.trace.rewrite import Packet, pcap
from trifecta.lab.certificates import Certificates, make_certificates

UP, DOWN = 0, 1
NAME = "origin.lab"
SERVER = ("198.51.100.1", 4433)
_ONE_WAY_NS, _START_NS = 5_000_000, 1_700_000_000_000_000_000
_DATA, _HEADERS, _SETTINGS = 0, 1, 4
Address = tuple[str, int]


def varint(value: int) -> bytes:
    """RFC 9000 16."""
    return bytes([value]) if value < 64 else struct.pack(">H", value | 0x4000)


def frame(kind: int, payload: bytes) -> bytes:
    """A frame of HTTP/3."""
    return varint(kind) + varint(len(payload)) + payload


def section(stream: int, *fields: tuple[str, str]) -> bytes:
    """A HEADERS frame; QPACK without a dynamic table."""
    coded = Encoder().encode(stream, [(name.encode(), value.encode()) for name, value in fields])[1]
    return frame(_HEADERS, coded)


def response(stream: int, octets: int, status: str = "200") -> bytes:
    """A response with content."""
    return section(stream, (":status", status)) + frame(_DATA, b"x" * octets)


class Peers:
    """A client and a server, and the wire between them."""

    def __init__(
        self,
        pki: Certificates,
        packets: list[Packet],
        client: Address,
        *,
        begin_ns: int = _START_NS,
        tickets: dict[bytes, Any] | None = None,
        ticket: Any = None,
    ) -> None:
        """Neither has said anything yet."""
        self.packets, self.client_address, self.now_ns, self.keys = packets, client, begin_ns, io.StringIO()
        self.ticket = ticket
        client_side = QuicConfiguration(
            is_client=True, alpn_protocols=["h3"], server_name=NAME, secrets_log_file=self.keys, session_ticket=ticket
        )
        client_side.load_verify_locations(str(pki.authority))
        server_side = QuicConfiguration(is_client=False, alpn_protocols=["h3"])
        server_side.load_cert_chain(str(pki.chain), str(pki.key))
        self.client = QuicConnection(configuration=client_side, session_ticket_handler=self._keep)
        self._server_side, self._tickets = server_side, {} if tickets is None else tickets
        self.server: QuicConnection | None = None
        self.client.connect(SERVER, self._now())

    def _keep(self, ticket: Any) -> None:
        self.ticket = ticket

    def _now(self) -> float:
        return self.now_ns / 1e9

    def _put(self, way: int, data: bytes) -> None:
        ends = (self.client_address, SERVER) if way == UP else (SERVER, self.client_address)
        addresses = b"".join(bytes(map(int, one[0].split("."))) for one in ends)
        udp = struct.pack(">HHHH", ends[0][1], ends[1][1], 8 + len(data), 0) + data
        ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0x4000, 64, 17, 0) + addresses
        octets = bytes(12) + struct.pack(">H", 0x0800) + ip + udp
        self.packets.append(Packet(self.now_ns, octets, len(octets)))

    def run(self) -> None:
        """Let them speak until neither has anything to say."""
        quiet = 0
        while quiet < 3:
            quiet += 1
            for way in (UP, DOWN):
                sender, receiver = (self.client, self.server) if way == UP else (self.server, self.client)
                if sender is None:
                    continue
                timer = sender.get_timer()
                if timer is not None and timer <= self._now():
                    sender.handle_timer(self._now())
                sent = [data for data, _ in sender.datagrams_to_send(self._now())]
                for data in sent:
                    self._put(way, data)
                self.now_ns += _ONE_WAY_NS
                for data in sent:
                    quiet = 0
                    if receiver is None:
                        receiver = self.server = QuicConnection(
                            configuration=self._server_side,
                            original_destination_connection_id=data[6 : 6 + data[5]],
                            session_ticket_fetcher=self._tickets.pop if self._tickets else None,
                            session_ticket_handler=lambda one: self._tickets.update({one.ticket: one}),
                        )
                    receiver.receive_datagram(data, self.client_address if way == UP else SERVER, self._now())
                # Nothing is asked of the server's application: what it sends is written by hand.
                while receiver is not None and (event := receiver.next_event()) is not None:
                    assert not isinstance(event, StreamDataReceived) or event.data is not None

    def control(self) -> None:
        """SETTINGS of both, on control streams (RFC 9114 6.2.1)."""
        for end in (self.client, self.server):
            assert end is not None
            end.send_stream_data(
                end.get_next_available_stream_id(is_unidirectional=True), b"\0" + frame(_SETTINGS, b"")
            )

    def ask(self, path: str, authority: str = NAME) -> int:
        """A request; its stream."""
        stream = self.client.get_next_available_stream_id()
        fields = ((":method", "GET"), (":scheme", "https"), (":authority", authority), (":path", path))
        self.client.send_stream_data(stream, section(stream, *fields), end_stream=True)
        return stream

    def answer(self, stream: int, data: bytes, *, end: bool = True) -> None:
        """Octets of a response."""
        assert self.server is not None
        self.server.send_stream_data(stream, data, end_stream=end)

    def exchange(self, path: str, octets: int) -> None:
        """A request and its response."""
        stream = self.ask(path)
        self.run()
        self.answer(stream, response(stream, octets))
        self.run()

    def close(self) -> None:
        """Both know that it is over."""
        self.client.close()
        self.run()


def moved(pki: Certificates) -> tuple[list[Packet], str]:
    """A client behind a NAT that forgets (RFC 9000 9.3), which then moves on purpose (9.2); then new keys."""
    packets: list[Packet] = []
    peers = Peers(pki, packets, ("192.0.2.1", 41000))
    peers.run()
    peers.control()
    peers.exchange("/first", 2000)
    peers.client_address = ("192.0.2.1", 41001)
    peers.exchange("/second", 2000)
    peers.client_address = ("192.0.2.9", 1024)  # lower than the server's
    peers.client.change_connection_id()
    peers.exchange("/third", 2000)
    peers.client.request_key_update()
    peers.exchange("/fourth", 2000)
    peers.close()
    return packets, peers.keys.getvalue()


def early(pki: Certificates) -> tuple[list[Packet], str]:
    """A connection that leaves a ticket; at the same time one with 0-RTT, and one with every shape of response."""
    packets: list[Packet] = []
    tickets: dict[bytes, Any] = {}
    first = Peers(pki, packets, ("192.0.2.1", 41000), tickets=tickets)
    first.run()
    first.control()
    first.exchange("/first", 1000)
    first.close()
    begin = first.now_ns
    second = Peers(pki, packets, ("192.0.2.1", 41001), begin_ns=begin, tickets=tickets, ticket=first.ticket)
    stream = second.ask("/early")  # before the first round trip
    second.run()
    second.answer(stream, response(stream, 1000))
    second.run()
    second.close()
    third = Peers(pki, packets, ("192.0.2.1", 41002), begin_ns=begin + 1_000_000)
    third.run()
    third.control()
    streams = [third.ask(f"/shape/{number}", NAME if number else "other.lab") for number in range(3)]
    third.run()
    hints = section(streams[0], (":status", "103"), ("link", "</x>"))
    third.answer(streams[0], hints + response(streams[0], 1000), end=False)
    third.answer(streams[0], section(streams[0], ("x-t", "1")))
    third.answer(streams[1], section(streams[1], (":status", "404")))
    third.answer(streams[2], section(streams[2], (":status", "103")), end=False)
    assert third.server is not None
    push = third.server.get_next_available_stream_id(is_unidirectional=True)
    third.answer(push, b"\1\0" + response(push, 500))
    third.run()
    third.close()
    packets.sort(key=lambda one: one.time_ns)
    return packets, "".join(one.keys.getvalue() for one in (first, second, third))


def main(out: Path) -> None:
    """Write both."""
    with tempfile.TemporaryDirectory() as folder:
        pki = make_certificates(Path(folder) / "pki", [NAME], [])
        for name, made in (("moved", moved(pki)), ("early", early(pki))):
            (out / f"aioquic-{name}.pcap").write_bytes(pcap(made[0]))
            (out / f"aioquic-{name}.keys").write_text(made[1])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
