"""What the kernel really does, where the link depends on it.

A failure here means that the kernel, not the link, changed.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.engine.netns import CLIENT_MAC, SERVER, SERVER_MAC, Hosts, can_make_namespaces

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(not can_make_namespaces(), reason="network namespaces are not allowed here"),
]

SOL_PACKET = 263
PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING, PACKET_QDISC_BYPASS = 15, 23, 20
SO_TIMESTAMPNS = 35
UDP_SEGMENT = 103
CLONE_NEWNET = 0x40000000
VNET_HEADER = 10
NEEDS_CSUM = 1
GSO_UDP_L4 = 5
_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def inside(hosts: Hosts, host: str) -> Iterator[None]:
    """Sockets made in here belong to the host."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{hosts.namespace(host)}", os.O_RDONLY)
    try:
        assert _libc.setns(there, CLONE_NEWNET) == 0
        yield
    finally:
        assert _libc.setns(home, CLONE_NEWNET) == 0
        os.close(there)
        os.close(home)


def packet_socket(hosts: Hosts, host: str, device: str) -> socket.socket:
    with inside(hosts, host):
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sock.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    sock.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    sock.setsockopt(SOL_PACKET, PACKET_QDISC_BYPASS, 1)
    sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    sock.settimeout(2)
    with inside(hosts, host):
        sock.bind((device, 3))  # ETH_P_ALL
    return sock


def wanted(capture: socket.socket, ethertype: int = 0x0800) -> tuple[bytes, list[tuple[int, int, bytes]]]:
    """The next frame of this type with its control messages; hosts with IPv6 send some frames by themselves."""
    while True:
        frame, control, _, _ = capture.recvmsg(70_000, 256)
        if struct.unpack_from("!H", frame, VNET_HEADER + 12)[0] == ethertype:
            return frame, control


def udp_socket(hosts: Hosts, host: str) -> socket.socket:
    with inside(hosts, host):
        return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    with Hosts() as hosts:
        yield hosts


def vnet(frame: bytes) -> tuple[int, int, int, int, int, int]:
    """flags, gso_type, hdr_len, gso_size, csum_start, csum_offset."""
    flags, gso_type, *words = struct.unpack_from("=BBHHHH", frame)
    return flags, gso_type, words[0], words[1], words[2], words[3]


def test_a_datagram_comes_with_its_checksum_still_to_be_made(hosts: Hosts) -> None:
    """Corrupting such a frame as it is would give damaged data a good checksum later."""
    with packet_socket(hosts, "middle", "ra") as capture, udp_socket(hosts, "client") as sender:
        sender.sendto(b"x" * 100, (SERVER, 9))
        frame = wanted(capture)[0]
    flags, gso_type, _, _, start, offset = vnet(frame)
    assert (flags, gso_type) == (NEEDS_CSUM, 0)
    assert (start, offset) == (34, 6)
    assert frame[VNET_HEADER : VNET_HEADER + 12] == bytes.fromhex((SERVER_MAC + CLIENT_MAC).replace(":", ""))


def test_super_packets_of_udp_arrive_whole_with_their_segment_size(hosts: Hosts) -> None:
    with packet_socket(hosts, "middle", "ra") as capture, udp_socket(hosts, "client") as sender:
        sender.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 1_000)
        sender.sendto(b"x" * 8_500, (SERVER, 9))
        frame = wanted(capture)[0]
    assert vnet(frame)[1] == GSO_UDP_L4
    assert vnet(frame)[3] == 1_000
    assert len(frame) == VNET_HEADER + 42 + 8_500


@pytest.mark.parametrize("good", [True, False])
def test_veth_lets_the_receiver_check_a_final_checksum(hosts: Hosts, good: bool) -> None:
    """A frame with a wrong checksum must be refused by the receiving host, or corruption would reach applications."""
    with (
        packet_socket(hosts, "middle", "ra") as capture,
        packet_socket(hosts, "middle", "rb") as out,
        udp_socket(hosts, "server") as receiver,
        udp_socket(hosts, "client") as sender,
    ):
        receiver.bind((SERVER, 9))
        receiver.settimeout(0.5)
        sender.sendto(b"payload!", (SERVER, 9))
        frame = bytearray(wanted(capture)[0])
        ip_and_udp = bytes(frame[VNET_HEADER + 14 :])
        pseudo = ip_and_udp[12:20] + bytes([0, 17]) + ip_and_udp[24:26]
        datagram = ip_and_udp[20:26] + b"\0\0" + ip_and_udp[28:]
        total = sum(struct.unpack(f"!{len(pseudo + datagram) // 2}H", pseudo + datagram))
        while total > 0xFFFF:
            total = (total & 0xFFFF) + (total >> 16)
        frame[:VNET_HEADER] = bytes(VNET_HEADER)
        frame[VNET_HEADER + 40 : VNET_HEADER + 42] = struct.pack("!H", (~total & 0xFFFF) or 0xFFFF)
        if not good:
            frame[-1] ^= 1
        out.send(frame)
        if good:
            assert receiver.recv(100) == b"payload!"
        else:
            with pytest.raises(TimeoutError):
                receiver.recv(100)


def test_a_receive_timestamp_is_the_time_of_arrival_not_of_reading(hosts: Hosts) -> None:
    with packet_socket(hosts, "middle", "ra") as capture, udp_socket(hosts, "client") as sender:
        # The kernel starts to stamp packets from a work queue (net_enable_timestamp); before, at reading.
        time.sleep(0.2)
        before = time.time_ns()
        sender.sendto(b"x", (SERVER, 9))
        after = time.time_ns()
        time.sleep(0.05)
        _, control = wanted(capture)
    seconds, ns = next(struct.unpack("qq", value[:16]) for _, kind, value in control if kind == SO_TIMESTAMPNS)
    assert before <= seconds * 1_000_000_000 + ns <= after


def test_frames_to_another_host_are_seen_without_promiscuous_mode(hosts: Hosts) -> None:
    """The middle's devices have other addresses than the frames they carry."""
    with packet_socket(hosts, "middle", "ra") as capture, udp_socket(hosts, "client") as sender:
        sender.sendto(b"x", (SERVER, 9))
        assert wanted(capture)[0]
    assert "PROMISC" not in hosts.run("middle", ["ip", "link", "show", "ra"])


def test_own_frames_are_not_seen_again(hosts: Hosts) -> None:
    """Else what the link sends out of a device would come back in by it."""
    with packet_socket(hosts, "middle", "ra") as capture, packet_socket(hosts, "middle", "ra") as sender:
        frame = bytes(VNET_HEADER) + bytes.fromhex((CLIENT_MAC + SERVER_MAC).replace(":", "")) + b"\x88\xb5" + bytes(46)
        sender.send(frame)
        capture.settimeout(0.2)
        with pytest.raises(TimeoutError):
            wanted(capture, 0x88B5)


def test_real_time_scheduling_leaves_others_their_share() -> None:
    """sched(7): a real-time thread that spins is stopped when it takes more than this of each second."""
    runtime = int(Path("/proc/sys/kernel/sched_rt_runtime_us").read_text())
    period = int(Path("/proc/sys/kernel/sched_rt_period_us").read_text())
    assert runtime == -1 or runtime <= period
