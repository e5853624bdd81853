"""Captures written again in other ways: link types, clocks, cuts, addresses. Packets are Ethernet frames with IPv4."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

CLIENT_SIDE = 0
ETHERNET, LOOPBACK, RAW, COOKED, COOKED_2 = 1, 0, 101, 113, 276
PPP, PPP_SERIAL, PPP_ETHER, IEEE_802_11, RADIOTAP = 9, 50, 51, 105, 127
_IPV4, _IPV6 = 0x0800, 0x86DD


@dataclass(frozen=True)
class Packet:
    """A packet: its octets, how many it had on the wire, and of a capture of our link the side."""

    time_ns: int
    octets: bytes
    wire: int
    side: int = 0

    @property
    def ip(self) -> bytes:
        """The packet without its Ethernet header."""
        return self.octets[14:]


def read(file: Path, side: int | None = CLIENT_SIDE) -> list[Packet]:
    """The packets of a capture of our link; those of one side, as anybody else would have captured them."""
    data, at, found = file.read_bytes(), 0, []
    while at < len(data):
        kind, total = struct.unpack_from("<II", data, at)
        if kind == 6:
            interface, high, low, captured, wire = struct.unpack_from("<5I", data, at + 8)
            octets = data[at + 28 : at + 28 + captured]
            found.append(Packet(high << 32 | low, octets, wire, interface))
        at += total
    return [one for one in found if side is None or one.side == side]


def blocks(data: bytes) -> list[tuple[int, bytes]]:
    """The blocks of a pcapng file of this byte order: type, and all octets."""
    found, at = [], 0
    while at < len(data):
        kind, total = struct.unpack_from("<II", data, at)
        found.append((kind, data[at : at + total]))
        at += total
    return found


def sighting(block: bytes) -> tuple[int, int]:
    """Side and packet id of a packet of our link."""
    (side,) = struct.unpack_from("<I", block, 8)
    (length,) = struct.unpack_from("<I", block, 20)
    (identity,) = struct.unpack_from("<Q", block, 28 + -(-length // 4) * 4 + 12)
    return side, identity


def without(file: Path, gone: Callable[[int, int], bool]) -> bytes:
    """A capture of our link without what it saw of some packets, given as side and packet id."""
    return b"".join(block for kind, block in blocks(file.read_bytes()) if kind != 6 or not gone(*sighting(block)))


def statistics(dropped: tuple[int, ...], code: int = 5) -> bytes:
    """Interface Statistics Blocks (isb_ifdrop, unless told otherwise), one for each interface."""
    found = b""
    for interface, count in enumerate(dropped):
        body = struct.pack("<III", interface, 0, 0) + struct.pack("<HHQHHQ", 4, 8, 1000, code, 8, count) + bytes(4)
        found += struct.pack("<II", 5, 12 + len(body)) + body + struct.pack("<I", 12 + len(body))
    return found


def read_pcap(file: Path) -> list[Packet]:
    """The packets of a pcap file with times in us, of this byte order."""
    data, at, found = file.read_bytes(), 24, []
    while at < len(data):
        seconds, micros, captured, wire = struct.unpack_from("<4I", data, at)
        found.append(Packet(seconds * 10**9 + micros * 1000, data[at + 16 : at + 16 + captured], wire))
        at += 16 + captured
    return found


def cut(packets: Iterable[Packet], snapshot: int) -> list[Packet]:
    """As `tcpdump -s` cuts them."""
    return [replace(one, octets=one.octets[:snapshot]) for one in packets]


def pcap(packets: Iterable[Packet], link_type: int = ETHERNET, *, order: str = "<", unit_ns: int = 1000) -> bytes:
    """An old capture file."""
    magic = 0xA1B2C3D4 if unit_ns == 1000 else 0xA1B23C4D
    out = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 262144, link_type)]
    for one in packets:
        seconds, rest = divmod(one.time_ns, 10**9)
        out.append(struct.pack(order + "IIII", seconds, rest // unit_ns, len(one.octets), one.wire) + one.octets)
    return b"".join(out)


def pcapng(packets: Iterable[Packet], link_types: tuple[int, ...], keys: bytes = b"") -> bytes:
    """A capture with an interface of each link type; `side` of a packet says which. Clocks in ns, no packet ids."""

    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        return struct.pack("<II", kind, 12 + len(body)) + body + struct.pack("<I", 12 + len(body))

    out = [block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    resolution = struct.pack("<HHI", 9, 1, 9) + bytes(4)
    out += [block(1, struct.pack("<HHI", one, 0, 262144) + resolution) for one in link_types]
    if keys:
        out.append(block(10, struct.pack("<II", 0x544C534B, len(keys)) + keys))
    for one in packets:
        head = struct.pack("<5I", one.side, one.time_ns >> 32, one.time_ns & 0xFFFFFFFF, len(one.octets), one.wire)
        out.append(block(6, head + one.octets))
    return b"".join(out)


def again(packets: Iterable[Packet], change: Callable[[bytes], bytes], side: int = 0) -> list[Packet]:
    """The same packets with other octets, on another interface."""
    changed = ((one, change(one.octets)) for one in packets)
    return [Packet(one.time_ns, octets, one.wire + len(octets) - len(one.octets), side) for one, octets in changed]


def with_client(octets: bytes, address: bytes | None = None, port: int | None = None, server_port: int = 8443) -> bytes:
    """Another address or port for the client. Checksums are not put right: no dissector may depend on them."""
    data, header = bytearray(octets), 14 + (octets[14] & 15) * 4
    from_server = struct.unpack_from(">H", octets, header)[0] == server_port
    if address is not None:
        place = 14 + (16 if from_server else 12)
        data[place : place + 4] = address
    if port is not None:
        struct.pack_into(">H", data, header + (2 if from_server else 0), port)
    return bytes(data)


def raw(octets: bytes) -> bytes:
    """LINKTYPE_RAW: IP alone."""
    return octets[14:]


def loopback(octets: bytes) -> bytes:
    """LINKTYPE_NULL: the address family in the order of the machine that captured."""
    return struct.pack("<I", 2 if octets[14] >> 4 == 4 else 30) + octets[14:]


def cooked(octets: bytes) -> bytes:
    """LINKTYPE_LINUX_SLL: 16 octets."""
    return struct.pack(">HHH8s", 0, 1, 6, octets[6:12]) + octets[12:14] + octets[14:]


def cooked_2(octets: bytes) -> bytes:
    """LINKTYPE_LINUX_SLL2: 20 octets, the protocol first."""
    return octets[12:14] + struct.pack(">HIHBB8s", 0, 2, 1, 0, 6, octets[6:12]) + octets[14:]


def tagged(octets: bytes) -> bytes:
    """IEEE 802.1Q: one tag."""
    return octets[:12] + struct.pack(">HH", 0x8100, 7) + octets[12:]


def tagged_twice(octets: bytes) -> bytes:
    """IEEE 802.1ad: one tag in another."""
    return octets[:12] + struct.pack(">HHHH", 0x88A8, 9, 0x8100, 7) + octets[12:]


def ppp(octets: bytes) -> bytes:
    """LINKTYPE_PPP with address and control (RFC 1662)."""
    return b"\xff\x03" + (b"\x00\x21" if octets[14] >> 4 == 4 else b"\x00\x57") + octets[14:]


def ppp_short(octets: bytes) -> bytes:
    """The same with all that can be left out left out (RFC 1661, 6.5 and 6.6)."""
    return ppp(octets)[3:]


def ppp_over_ethernet(octets: bytes) -> bytes:
    """LINKTYPE_PPP_ETHER: a PPPoE session (RFC 2516)."""
    inner = ppp(octets)[2:]
    return struct.pack(">BBHH", 0x11, 0, 7, len(inner)) + inner


def session_in_ethernet(octets: bytes) -> bytes:
    """A PPPoE session in an Ethernet frame."""
    return octets[:12] + b"\x88\x64" + ppp_over_ethernet(octets)


def labelled(octets: bytes) -> bytes:
    """Two labels of MPLS (RFC 3032)."""
    return octets[:12] + struct.pack(">HII", 0x8847, 16 << 12 | 64, 17 << 12 | 1 << 8 | 64) + octets[14:]


def wireless(octets: bytes, *, padded: bool = False, protected: bool = False) -> bytes:
    """A data frame of IEEE 802.11 with quality of service, and LLC (RFC 1042)."""
    header = struct.pack("<BBH6s6s6sHH", 0x88, 0x41 if protected else 1, 0, octets[:6], octets[6:12], bytes(6), 0, 0)
    return header + (bytes(2) if padded else b"") + bytes.fromhex("aaaa03000000") + octets[12:]


def radiotap(octets: bytes) -> bytes:
    """With a time, flags that ask for padding, and a second word of what is there."""
    header = struct.pack("<BBHIIQB", 0, 0, 21 + 4, 1 << 31 | 3, 0, 9, 0x20)
    return header[:12] + bytes(4) + header[12:] + wireless(octets, padded=True)


def as_ipv6(octets: bytes, options: bytes = b"") -> bytes:
    """The same over IPv6 (RFC 8200), with extension headers where ``options`` has any: 8 octets each."""
    head = (octets[14] & 15) * 4
    total, protocol = struct.unpack_from(">H", octets, 16)[0], octets[23]
    addresses = b"".join(bytes.fromhex("fd88") + bytes(10) + octets[at : at + 4] for at in (26, 30))
    inside = octets[14 + head : 14 + total]
    first = 60 if options else protocol
    extension = b"".join(
        bytes([60 if at + 8 < len(options) else protocol, 0]) + options[at + 2 : at + 8]
        for at in range(0, len(options), 8)
    )
    header = struct.pack(">IHBB", 6 << 28, len(extension) + len(inside), first, 64) + addresses
    return octets[:12] + struct.pack(">H", _IPV6) + header + extension + inside


def with_ipv4_options(octets: bytes) -> bytes:
    """Eight octets of options (no operation) in the IPv4 header."""
    data = bytearray(octets[:34] + bytes([1] * 8) + octets[34:])
    data[14] = 0x47
    struct.pack_into(">H", data, 16, struct.unpack_from(">H", octets, 16)[0] + 8)
    return bytes(data)
