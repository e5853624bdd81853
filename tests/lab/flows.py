"""New UDP flows through the lab, one datagram each, and what became of them; run inside the sandbox."""

from __future__ import annotations

import socket
import struct
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from trifecta.lab.host import Host
from trifecta.lab.topology import Topology

PORT = 7000
PATIENCE_S = 20
NETLINK_NETFILTER = 12
NEW_CONNECTION = 1 << 8  # NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_NEW
REQUEST_CREATE = 0x1 | 0x400
ASSURED = 1 << 1 | 1 << 2 | 1 << 3  # answered, assured, confirmed: not thrown out to make room


def reached(lab: Topology, flows: int, dropped: Any) -> int:
    """How many of ``flows`` new flows from host1 reach host2; ``dropped`` counts what it does not let in.

    Waits until every datagram is accounted for: no time decides what counts as lost.
    """
    before = dropped()
    with ExitStack() as stack:
        with lab.host("host2").inside():
            server = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        server.bind((lab.address("host2"), PORT))
        server.setblocking(False)
        with lab.host("host1").inside():
            clients = [stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(flows)]
        for client in clients:
            client.sendto(b"x", (lab.address("host2"), PORT))
        arrived = 0
        deadline = time.monotonic() + PATIENCE_S
        while arrived + dropped() - before < flows:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{arrived} arrived, {dropped() - before} dropped, of {flows}")
            with suppress(BlockingIOError):
                server.recv(16)
                arrived += 1
        return arrived


def table_size() -> int:
    """The size of the kernel's table of connections; 0 where it tracks none, or without bound."""
    path = Path("/proc/sys/net/netfilter/nf_conntrack_max")
    return int(path.read_text(encoding="ascii")) if path.exists() else 0


def fill(host: Host, connections: int) -> int:
    """Put that many UDP connections of nobody into a host's table; how many there are in it then."""
    with host.inside(), socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER) as netlink:
        netlink.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        batch = b""
        for number in range(connections):
            batch += _entry(number)
            if len(batch) > 100_000:
                netlink.send(batch)
                batch = b""
        netlink.send(batch)
        return int(Path("/proc/sys/net/netfilter/nf_conntrack_count").read_text(encoding="ascii"))


def _attribute(kind: int, *parts: bytes) -> bytes:
    """One attribute (netlink(7)), padded to 4 octets."""
    content = b"".join(parts)
    return struct.pack("=HH", len(content) + 4, kind) + content + b"\0" * (-len(content) % 4)


def _tuple(kind: int, source: bytes, target: bytes, ports: tuple[int, int]) -> bytes:
    nested = 0x8000
    return _attribute(
        kind | nested,
        _attribute(1 | nested, _attribute(1, source), _attribute(2, target)),
        _attribute(
            2 | nested,
            _attribute(1, bytes([socket.IPPROTO_UDP])),
            _attribute(2, struct.pack("!H", ports[0])),
            _attribute(3, struct.pack("!H", ports[1])),
        ),
    )


def _entry(number: int) -> bytes:
    """A request to make one connection (linux/netfilter/nfnetlink_conntrack.h)."""
    source = bytes([192, 0, 2, number >> 15 & 255])
    target, ports = bytes([198, 51, 100, 1]), (number & 0x7FFF | 0x8000, 9)
    body = (
        struct.pack("=BBH", socket.AF_INET, 0, 0)
        + _tuple(1, source, target, ports)
        + _tuple(2, target, source, ports[::-1])
        + _attribute(3, struct.pack("!I", ASSURED))
        + _attribute(7, struct.pack("!I", 600))
    )
    return struct.pack("=IHHII", 16 + len(body), NEW_CONNECTION, REQUEST_CREATE, number, 0) + body
