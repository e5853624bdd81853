"""Link, IP, TCP and UDP headers of all packets at once, from the octets of a capture."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

import numpy as np

from trifecta.trace.capture_file import CaptureFile, Ints
from trifecta.trace.link_layer import Flags, Octets, encrypted_frames, ip_offsets

TCP, UDP = 6, 17
FIN, SYN, RST, ACK = 1, 2, 4, 16  # RFC 9293 3.1


@dataclass(slots=True)
class Headers:
    """What the headers say, an entry a packet of TCP or UDP. ``index`` is its place in the capture."""

    index: Ints
    ip_offset: Ints  # in the file
    ip_bytes: Ints  # header and payload as the header tells, at most what is on the wire
    ip_header: Ints
    transport: Ints
    transport_header: Ints
    payload_offset: Ints
    payload: Ints  # octets on the wire
    payload_captured: Ints
    source: Ints  # place in `addresses`
    destination: Ints
    source_port: Ints
    destination_port: Ints
    sequence: Ints
    acknowledged: Ints
    window: Ints
    flags: Ints
    addresses: list[str]
    notes: list[str]


def parse_headers(capture: CaptureFile) -> Headers:
    """Find TCP and UDP in every packet; what is something else is counted in a note."""
    start, end = capture.offset, capture.offset + capture.captured
    octets = Octets(capture.data, end)
    types = np.asarray(capture.link_types or [0], dtype=np.int64)[capture.interface]
    ip, known, notes = ip_offsets(capture.data, start, end, types)
    if encrypted := encrypted_frames(capture.data, start, end, types):
        notes.append(f"{encrypted} packets are encrypted frames of IEEE 802.11: decrypt them first (airdecap-ng)")
    there = (ip >= 0) & (ip < end)
    version = np.where(there, octets.number(np.maximum(ip, 0), 1) >> 4, 0)
    four, six = version == 4, version == 6
    ip = np.where(four | six, ip, 0)
    available = capture.wire - (ip - start)
    length = np.where(four, octets.number(ip + 2, 2), octets.number(ip + 4, 2) + 40)
    # A total length of 0: the packet was handed over in one piece for the device to cut (segmentation offload).
    offloaded = np.where(four, length == 0, length == 40)
    length = np.where(offloaded | (length > available), available, length)
    header = np.where(four, (octets.number(ip, 1) & 15) * 4, 40)
    protocol = np.where(four, octets.number(ip + 9, 1), octets.number(ip + 6, 1))
    for _ in range(4):  # extension headers of IPv6 (RFC 8200 section 4)
        more = six & np.isin(protocol, (0, 43, 60))
        if not more.any():
            break
        at = ip + header
        size = (octets.number(at + 1, 1) + 1) * 8
        protocol = np.where(more, octets.number(at, 1), protocol)
        header = np.where(more, header + size, header)
    # More fragments, or an offset (RFC 791 3.1); a fragment header (RFC 8200 4.5).
    fragment = (four & (octets.number(ip + 6, 2) & 0x3FFF > 0)) | (six & (protocol == 44))
    tcp, udp = protocol == TCP, protocol == UDP
    at = ip + header
    own = np.where(tcp, (octets.number(at + 12, 1) >> 4) * 4, 8)
    good = (four | six) & (tcp | udp) & ~fragment & (at + np.where(tcp, 20, 8) <= end) & (own >= np.where(tcp, 20, 8))
    good &= (header + own <= length) & (header >= np.where(four, 20, 40))
    _note_others(known, four | six, fragment, good, notes)

    index = np.flatnonzero(good)
    at, header, own, length, ip = at[index], header[index], own[index], length[index], ip[index]
    tcp, four, wire_end = tcp[index], four[index], end[index]
    part = Octets(capture.data, wire_end)
    payload = length - header - own
    payload_at = at + own
    source, destination, addresses = _addresses(capture, wire_end, ip, four)

    def of_tcp(offset: int, size: int) -> Ints:
        return np.where(tcp, part.number(at + offset, size), 0)

    return Headers(
        index,
        ip,
        length,
        header,
        np.where(tcp, TCP, UDP),
        own,
        payload_at,
        payload,
        np.clip(wire_end - payload_at, 0, payload),
        source,
        destination,
        part.number(at, 2),
        part.number(at + 2, 2),
        of_tcp(4, 4),
        of_tcp(8, 4),
        of_tcp(14, 2),
        of_tcp(13, 1),
        addresses,
        notes,
    )


def _note_others(known: Flags, internet: Flags, fragment: Flags, good: Flags, notes: list[str]) -> None:
    fragments = int((internet & fragment).sum())
    others = int((known & ~good).sum()) - fragments
    if fragments:
        notes.append(f"{fragments} packets are IP fragments: they are not put together, and not in the tables")
    if others:
        notes.append(f"{others} packets are neither TCP nor UDP, or cut before their end: they are not in the tables")


def _addresses(capture: CaptureFile, end: Ints, ip: Ints, four: Flags) -> tuple[Ints, Ints, list[str]]:
    """Both addresses of each packet as places in a list of texts."""
    names: list[str] = []
    result = [np.zeros(len(ip), dtype=np.int64), np.zeros(len(ip), dtype=np.int64)]
    if four.any():
        octets = Octets(capture.data, end[four])
        both = np.concatenate([octets.number(ip[four] + 12, 4), octets.number(ip[four] + 16, 4)])
        unique, place = np.unique(both, return_inverse=True)
        names += [str(ipaddress.IPv4Address(int(one))) for one in unique]
        result[0][four], result[1][four] = np.split(place.astype(np.int64), 2)
    six = ~four
    if six.any():
        first = np.concatenate([ip[six] + 8, ip[six] + 24])
        both_six = capture.data[np.minimum(first[:, None] + np.arange(16), len(capture.data) - 1)]
        unique_six, place = np.unique(np.ascontiguousarray(both_six).view("V16").ravel(), return_inverse=True)
        base = len(names)
        names += [str(ipaddress.IPv6Address(one.tobytes())) for one in unique_six]
        result[0][six], result[1][six] = np.split(place.astype(np.int64) + base, 2)
    return result[0], result[1], names
