"""Traffic for tests and benchmarks of the link: run inside a namespace, one JSON line of results on standard output.

Programs: ``flood``, ``udp-sink``, ``udp-send``, ``udp-receive``, ``tcp-send``, ``tcp-receive``.
"""

from __future__ import annotations

import argparse
import array
import ctypes
import hashlib
import json
import socket
import struct
import sys
import time

UDP_SEGMENT, UDP_GRO = 103, 104  # linux/udp.h
SO_TIMESTAMPNS = 35
SO_RCVBUFFORCE = 33
PATTERN = bytes(0x61 + i % 26 for i in range(26 * 4096))


class _Iovec(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class _Message(ctypes.Structure):
    """struct mmsghdr with its struct msghdr."""

    _fields_ = (
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint32),
        ("iovecs", ctypes.c_void_p),
        ("iovec_count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
        ("sent", ctypes.c_uint),
    )


def _udp(address: str) -> socket.socket:
    return socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)


def flood(address: str, port: int, payload: int, seconds: float) -> dict[str, object]:
    """Send as fast as possible with sendmmsg(2)."""
    with _udp(address) as sender:
        sender.connect((address, port))
        batch = 64
        data = ctypes.create_string_buffer(payload)
        iovec = _Iovec(ctypes.cast(data, ctypes.c_void_p), payload)
        messages = (_Message * batch)()
        for message in messages:
            message.iovecs = ctypes.cast(ctypes.pointer(iovec), ctypes.c_void_p)
            message.iovec_count = 1
        libc = ctypes.CDLL(None)
        sent, start = 0, time.monotonic()
        while time.monotonic() - start < seconds:
            sent += max(libc.sendmmsg(sender.fileno(), messages, batch, 0), 0)
        return {"sent": sent, "seconds": time.monotonic() - start}


def udp_sink(address: str, port: int, seconds: float) -> dict[str, object]:
    """Own the port and read nothing: else the kernel answers each datagram of a flood with an ICMP error."""
    with _udp(address) as sink:
        sink.bind((address, port))
        print(json.dumps({"ready": True}), flush=True)
        time.sleep(seconds)
    return {}


def udp_send(address: str, port: int, count: int, payload: int, segments: int, rate: float) -> dict[str, object]:
    """Send numbered datagrams, `segments` to a system call (UDP GSO), at `rate` datagrams a second (0: no limit)."""
    with _udp(address) as sender:
        sender.connect((address, port))
        if segments > 1:
            sender.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, payload)
        start = time.monotonic()
        for first in range(0, count, segments):
            now_ns = time.monotonic_ns()
            some = min(segments, count - first)
            fill = bytes(payload - 16)
            sender.send(b"".join(struct.pack("!QQ", first + i, now_ns) + fill for i in range(some)))
            if rate:
                ahead = start + (first + some) / rate - time.monotonic()
                if ahead > 0:
                    time.sleep(ahead)
        return {"sent": count, "seconds": time.monotonic() - start}


def udp_receive(address: str, port: int, file: str, idle: float, gro: bool) -> dict[str, object]:
    """Take numbered datagrams until none comes for a while; (number, one-way delay in ns) of each go to a file."""
    rows = array.array("q")
    buffers = merged = 0
    with _udp(address) as receiver:
        receiver.bind((address, port))
        receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 256 << 20)
        receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        if gro:
            receiver.setsockopt(socket.IPPROTO_UDP, UDP_GRO, 1)
        receiver.settimeout(20)
        print(json.dumps({"ready": True}), flush=True)
        offset = time.time_ns() - time.monotonic_ns()
        while True:
            try:
                data, control, _, _ = receiver.recvmsg(65536, 256)
            except TimeoutError:
                break
            receiver.settimeout(idle)
            size, at_ns = len(data), 0
            for level, kind, value in control:
                if level == socket.IPPROTO_UDP and kind == UDP_GRO:
                    size = struct.unpack("i", value[:4])[0]
                elif level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
                    seconds, ns = struct.unpack("qq", value[:16])
                    at_ns = seconds * 1_000_000_000 + ns - offset
            buffers += 1
            merged += size < len(data)
            for start in range(0, len(data), max(size, 1)):
                if start + 16 <= len(data):
                    number, sent_ns = struct.unpack_from("!QQ", data, start)
                    rows.append(number)
                    rows.append(at_ns - sent_ns)
    with open(file, "wb") as out:  # noqa: PTH123
        rows.tofile(out)
    return {"received": len(rows) // 2, "buffers": buffers, "merged": merged}


def tcp_send(address: str, port: int, size: int, seconds: float) -> dict[str, object]:
    """Send `size` octets of the pattern, or for some seconds."""
    digest, sent, start = hashlib.sha256(), 0, time.monotonic()
    with socket.create_connection((address, port), timeout=60) as stream:
        while sent < size if size else time.monotonic() - start < seconds:
            # Positions differ in their content, so that octets in the wrong place are noticed.
            chunk = struct.pack("!Q", sent) + PATTERN
            chunk = chunk[: size - sent] if size else chunk
            if size:
                digest.update(chunk)
            stream.sendall(chunk)
            sent += len(chunk)
        stream.shutdown(socket.SHUT_WR)
        stream.settimeout(60)
        stream.recv(1)
    return {"sent": sent, "seconds": time.monotonic() - start, "sha256": digest.hexdigest()}


def tcp_receive(address: str, port: int, check: bool) -> dict[str, object]:
    """Take one connection to its end."""
    digest, received, start = hashlib.sha256(), 0, 0.0
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, port), family=family) as server:
        print(json.dumps({"ready": True}), flush=True)
        server.settimeout(30)
        stream, _ = server.accept()
        buffer = bytearray(1 << 20)
        with stream:
            stream.settimeout(60)
            start = time.monotonic()
            while count := stream.recv_into(buffer):
                received += count
                if check:
                    digest.update(memoryview(buffer)[:count])
        seconds = time.monotonic() - start
    return {"received": received, "seconds": seconds, "sha256": digest.hexdigest()}


def main() -> None:
    """Run the program named on the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--address", required=True)
    parser.add_argument("--port", type=int, default=9010)
    parser.add_argument("--payload", type=int, default=64)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--segments", type=int, default=1)
    parser.add_argument("--rate", type=float, default=0)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--size", type=int, default=0)
    parser.add_argument("--file", default="/dev/null")
    parser.add_argument("--idle", type=float, default=1)
    parser.add_argument("--gro", action="store_true")
    parser.add_argument("--no-check", action="store_true")
    a = parser.parse_args()
    programs = {
        "flood": lambda: flood(a.address, a.port, a.payload, a.seconds),
        "udp-sink": lambda: udp_sink(a.address, a.port, a.seconds),
        "udp-send": lambda: udp_send(a.address, a.port, a.count, a.payload, a.segments, a.rate),
        "udp-receive": lambda: udp_receive(a.address, a.port, a.file, a.idle, a.gro),
        "tcp-send": lambda: tcp_send(a.address, a.port, a.size, a.seconds),
        "tcp-receive": lambda: tcp_receive(a.address, a.port, not a.no_check),
    }
    print(json.dumps(programs[a.program]()), flush=True)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
