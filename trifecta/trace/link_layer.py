"""Where the IP header of each packet is, by the link type of its capture (libpcap's LINKTYPE_ numbers).

A frame that carries something else, or that is encrypted, has none (-1). Layouts: www.tcpdump.org/linktypes.html
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from trifecta.trace.pcapng import Ints

Flags = npt.NDArray[np.bool_]
_NONE = -1
_TAGS = (0x8100, 0x88A8, 0x9100)  # IEEE 802.1Q and 802.1ad
_MOST_TAGS, _MOST_LABELS, _MOST_VALUES = 4, 8, 24
_LLC = 1500  # IEEE 802.3: not more is a length, and LLC follows (RFC 1042)
_RADIOTAP, _IEEE_802_11, _ETHERNET = 127, 105, 1
_PROTECTED, _ORDER, _TO_DS, _FROM_DS = 0x40, 0x80, 1, 2  # second octet of IEEE 802.11's frame control


class Octets:
    """Numbers at many places, a packet each; zero where the packet was cut before. Big-endian unless told otherwise."""

    def __init__(self, data: npt.NDArray[np.uint8], end: Ints) -> None:
        self.data, self.end, self.last = data, end, max(len(data) - 1, 0)

    def number(self, at: Ints, size: int, *, little: bool = False) -> Ints:
        """An unsigned integer of ``size`` octets."""
        value = np.zeros(len(at), dtype=np.int64)
        is_inside = (at >= 0) & (at + size <= self.end)
        for i in range(size - 1, -1, -1) if little else range(size):
            value = value << 8 | self.data[np.clip(at + i, 0, self.last)]
        return np.where(is_inside, value, 0)


Reader = Callable[[Octets, Ints], Ints]


def _after(size: int, octets: Octets, at: Ints) -> Ints:
    """IP behind a header of one size."""
    return at + size


def _typed(place: int, size: int, octets: Octets, at: Ints) -> Ints:
    """A header of one size with an EtherType in it."""
    return _of_type(octets, at + size, octets.number(at + place, 2))


def _of_type(octets: Octets, at: Ints, kind: Ints) -> Ints:
    """Behind an EtherType: tags, PPPoE, MPLS and LLC in front of IP are passed over."""
    for _ in range(_MOST_TAGS):
        tagged = np.isin(kind, _TAGS)
        if not tagged.any():
            break
        kind, at = np.where(tagged, octets.number(at + 2, 2), kind), np.where(tagged, at + 4, at)
    indices = np.where(np.isin(kind, (0x0800, 0x86DD)), at, _NONE)
    for mine, reader in (
        (kind <= _LLC, _llc),
        (kind == 0x8864, partial(_behind_header, 6, _ppp)),  # PPPoE session (RFC 2516)
        (np.isin(kind, (0x8847, 0x8848)), _mpls),
    ):
        if mine.any():
            indices = np.where(mine, reader(octets, at), indices)
    return indices


def _llc(octets: Octets, at: Ints) -> Ints:
    """RFC 1042: SNAP, or IP by its own number."""
    head, kind = octets.number(at, 6), octets.number(at + 6, 2)
    snap = (head >> 24 == 0xAAAA03) & np.isin(head & 0xFFFFFF, (0, 0x0000F8))
    inner = np.where(snap & np.isin(kind, _TAGS), octets.number(at + 10, 2), kind)
    behind = np.where(snap & np.isin(kind, _TAGS), at + 12, at + 8)
    bare = head >> 24 == 0x060603
    return np.where(snap & np.isin(inner, (0x0800, 0x86DD)), behind, np.where(bare, at + 3, _NONE))


def _mpls(octets: Octets, at: Ints) -> Ints:
    """Labels (RFC 3032) up to the bottom of the stack; what is behind them is IP by its version, or not read."""
    open_ = np.ones(len(at), dtype=np.bool_)
    for _ in range(_MOST_LABELS):
        bottom = octets.number(at + 2, 1) & 1 == 1
        at, open_ = np.where(open_, at + 4, at), open_ & ~bottom
    return np.where(open_, _NONE, at)


def _ppp(octets: Octets, at: Ints) -> Ints:
    """RFC 1661 and 1662: address and control may be left out, and the first octet of the protocol."""
    at = np.where(octets.number(at, 2) == 0xFF03, at + 2, at)
    first = octets.number(at, 1)
    short = first & 1 == 1
    protocol = np.where(short, first, octets.number(at, 2))
    at = np.where(short, at + 1, at + 2)
    inner = np.where(np.isin(protocol, (0x21, 0x57)), at, _NONE)
    mpls = protocol == 0x0281
    return np.where(mpls, _mpls(octets, at), inner) if mpls.any() else inner


def _ppp_serial(octets: Octets, at: Ints) -> Ints:
    """PPP in HDLC-like framing, or Cisco's HDLC (RFC 1547, 4.3.1), which begins otherwise."""
    cisco = np.isin(octets.number(at, 1), (0x0F, 0x8F))
    return np.where(cisco, _typed(2, 4, octets, at), _ppp(octets, at))


def _behind_header(size: int, reader: Reader, octets: Octets, at: Ints) -> Ints:
    """Another link layer behind a header of one size."""
    return reader(octets, at + size)


def _frame_relay(octets: Octets, at: Ints) -> Ints:
    """RFC 2427: an address of two or four octets, a control octet, then a protocol identifier."""
    at = np.where(octets.number(at + 1, 1) & 1 == 1, at + 2, at + 4)
    ui, pad = octets.number(at, 1) == 3, octets.number(at + 1, 1) == 0
    identifier = np.where(pad, octets.number(at + 2, 1), octets.number(at + 1, 1))
    behind = np.where(pad, at + 3, at + 2)
    snap = ui & (identifier == 0x80) & np.isin(octets.number(behind + 3, 2), (0x0800, 0x86DD))
    direct = ui & np.isin(identifier, (0xCC, 0x8E))
    cisco = ~ui & np.isin(octets.number(at, 2), (0x0800, 0x86DD))
    return np.select([direct, snap, cisco], [behind, behind + 5, at + 2], _NONE)


def _wlan(octets: Octets, at: Ints, padded: Flags | None = None) -> Ints:
    """IEEE 802.11: data frames that are neither encrypted nor put together of several. ``padded``: to four octets."""
    control, flags = octets.number(at, 1), octets.number(at + 1, 1)
    qos = control & 0x80 > 0
    size = np.full(len(at), 24, dtype=np.int64)
    size += np.where((flags & _TO_DS > 0) & (flags & _FROM_DS > 0), 6, 0)
    several = qos & (octets.number(at + size, 1) & 0x80 > 0)
    size += np.where(qos, 2, 0) + np.where(qos & (flags & _ORDER > 0), 4, 0)
    size = size if padded is None else np.where(padded, size + 3 & ~3, size)
    data = (control & 0x0C == 0x08) & (control & 0x40 == 0) & (control & 3 == 0)
    good = data & (flags & _PROTECTED == 0) & ~several
    return np.where(good, _llc(octets, at + size), _NONE)


def _radiotap(octets: Octets, at: Ints) -> Ints:
    """https://www.radiotap.org: its flags say whether the header behind it is padded."""
    length, present = octets.number(at + 2, 2, little=True), octets.number(at + 4, 4, little=True)
    fields, more = at + 8, present
    for _ in range(_MOST_LABELS):
        follows = more >> 31 & 1 == 1
        more = np.where(follows, octets.number(fields, 4, little=True), 0)
        fields = np.where(follows, fields + 4, fields)
    has_time = present & 1 == 1
    fields = np.where(has_time, at + (fields - at + 7 & ~7) + 8, fields)
    padded = (present & 2 > 0) & (octets.number(fields, 1) & 0x20 > 0)
    return _wlan(octets, at + length, padded)


def _avs(octets: Octets, at: Ints) -> Ints:
    """The header of AVS says its length."""
    return _wlan(octets, at + octets.number(at + 4, 4))


def _prism(octets: Octets, at: Ints) -> Ints:
    """Prism's header has 144 octets; some drivers write that of AVS instead."""
    is_avs = octets.number(at, 4) & 0xFFFFF000 == 0x80211000
    return np.where(is_avs, _avs(octets, at), _wlan(octets, at + 144))


def _ppi(octets: Octets, at: Ints) -> Ints:
    """Per-Packet Information in front of IEEE 802.11 or Ethernet."""
    behind, kind = at + octets.number(at + 2, 2, little=True), octets.number(at + 4, 4, little=True)
    ethernet = np.where(kind == _ETHERNET, _typed(12, 14, octets, behind), _NONE)
    return np.where(kind == _IEEE_802_11, _wlan(octets, behind), ethernet)


def _pktap(octets: Octets, at: Ints) -> Ints:
    """Apple's: the length of its header, and a DLT_ number, of which Ethernet, loopback and raw IP are read."""
    behind, kind = at + octets.number(at, 4, little=True), octets.number(at + 8, 4, little=True)
    inner = np.where(kind == _ETHERNET, _typed(12, 14, octets, behind), _NONE)
    return np.select([kind == 0, np.isin(kind, (12, 14, 101))], [behind + 4, behind], inner)


def _pflog(octets: Octets, at: Ints) -> Ints:
    """OpenBSD's: its length is the first octet, rounded up to four."""
    return at + (octets.number(at, 1) + 3 & ~3)


def _nflog(octets: Octets, at: Ints) -> Ints:
    """Values of Linux's NFLOG, in the order of the machine that captured (nearly always little-endian); 9: packet."""
    at, indices = at + 4, np.full(len(at), _NONE, dtype=np.int64)
    for _ in range(_MOST_VALUES):
        length, kind = octets.number(at, 2, little=True), octets.number(at + 2, 2, little=True)
        indices = np.where((indices < 0) & (kind == 9) & (length > 4), at + 4, indices)
        at = at + np.maximum(length + 3 & ~3, 4)
    return indices


_RAW: Reader = partial(_after, 0)
_READERS: dict[int, Reader] = {
    0: partial(_after, 4),  # NULL
    _ETHERNET: partial(_typed, 12, 14),
    8: partial(_after, 16),  # SLIP
    9: _ppp,
    10: partial(_behind_header, 13, _llc),  # FDDI
    12: _RAW,
    14: _RAW,
    50: _ppp_serial,  # PPP_HDLC
    51: partial(_behind_header, 6, _ppp),  # PPP_ETHER: PPPoE
    100: _llc,  # ATM_RFC1483
    101: _RAW,
    104: partial(_typed, 2, 4),  # C_HDLC
    _IEEE_802_11: _wlan,
    107: _frame_relay,
    108: partial(_after, 4),  # LOOP
    109: partial(_after, 12),  # ENC
    113: partial(_typed, 14, 16),  # LINUX_SLL
    117: _pflog,
    119: _prism,
    _RADIOTAP: _radiotap,
    138: partial(_typed, 16, 18),  # APPLE_IP_OVER_IEEE1394
    163: _avs,
    166: partial(_behind_header, 2, _ppp),  # PPP_PPPD: a direction in place of the address
    192: _ppi,
    204: partial(_behind_header, 1, _ppp),  # PPP_WITH_DIR
    226: partial(_after, 24),  # IPNET
    228: _RAW,
    229: _RAW,
    239: _nflog,
    242: partial(_typed, 40, 44),  # IPOIB
    258: _pktap,
    276: partial(_typed, 0, 20),  # LINUX_SLL2
    281: partial(_typed, 16, 18),  # DSA_TAG_BRCM
    282: partial(_typed, 16, 18),  # DSA_TAG_BRCM_PREPEND
    284: partial(_typed, 16, 18),  # DSA_TAG_DSA
    285: partial(_typed, 20, 22),  # DSA_TAG_EDSA
}
NAMES = {
    **{147 + number: f"USER{number}" for number in range(16)},
    **dict.fromkeys((187, 201), "Bluetooth HCI"),
    **dict.fromkeys((251, 256), "Bluetooth LE"),
    **dict.fromkeys((189, 220, 249), "USB"),
    **dict.fromkeys((195, 215, 230), "IEEE 802.15.4"),
    227: "CAN",
    231: "D-Bus",
    253: "Netlink",
}
"""Some link types that carry no IP, or are anybody's: for the note that says what is in the file."""


def ip_offsets(data: npt.NDArray[np.uint8], start: Ints, end: Ints, types: Ints) -> tuple[Ints, Flags, list[str]]:
    """Where IP begins in a packet (-1: nowhere), whether its link type is understood, and notes on others."""
    ip, known, notes = np.full(len(start), _NONE, dtype=np.int64), np.zeros(len(start), dtype=np.bool_), []
    for link_type in np.unique(types).tolist():
        here = np.flatnonzero(types == link_type)
        reader = _READERS.get(link_type)
        if reader is None:
            name = f" ({NAMES[link_type]})" if link_type in NAMES else ""
            notes.append(f"{len(here)} packets have link type {link_type}{name}, which is not understood here")
            continue
        known[here] = True
        ip[here] = reader(Octets(data, end[here]), start[here])
    return ip, known, notes


def encrypted_frames(data: npt.NDArray[np.uint8], start: Ints, end: Ints, types: Ints) -> int:
    """How many data frames of IEEE 802.11 are encrypted: what is in them cannot be known."""
    count = 0
    for link_type, skip in ((_IEEE_802_11, None), (_RADIOTAP, 2)):
        here = np.flatnonzero(types == link_type)
        octets, at = Octets(data, end[here]), start[here]
        at = at if skip is None else at + octets.number(at + skip, 2, little=True)
        control, flags = octets.number(at, 1), octets.number(at + 1, 1)
        count += int(((control & 0x4C == 0x08) & (flags & _PROTECTED > 0)).sum())
    return count
