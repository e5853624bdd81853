"""What crosses an interface, as a file for Wireshark: read from a packet socket, so that no other program is needed.

A packet socket (packet(7)) needs CAP_NET_RAW over the network namespace alone. The owner of a private user namespace
has it, whereas tcpdump(8) gives up privileges there in a way that the kernel refuses.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from trifecta.lab.host import Host

SNAP_BYTES = 262_144  # more than any frame the kernel passes whole: everything is kept
_ETH_P_ALL = 0x0003
_ETH_P_IP, _ETH_P_IPV6 = 0x0800, 0x86DD
_SOL_PACKET, _PACKET_STATISTICS = 263, 6  # linux/if_packet.h
_SO_RCVBUFFORCE = 33
_SO_TIMESTAMPNS = 35  # asm-generic/socket.h; the control message has the same number
_TIMESPEC = struct.Struct("@qq")
_BUFFER_BYTES = 32 << 20
_QUIET_S = 0.02  # at its end, beside the path's own time: what it still holds of an exchange that is over comes by then
_AFTER_S = 1.0  # a program that never stops sending must not keep the capture from ending
# https://datatracker.ietf.org/doc/draft-ietf-opsawg-pcap: nanoseconds, version 2.4, link type Ethernet.
_FILE_HEAD = struct.pack("=IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, SNAP_BYTES, 1)
_PACKET_HEAD = struct.Struct("=IIII")
_TCP, _UDP = 6, 17
_HEADS_BYTES = 14 + 60 + 4  # Ethernet, the longest header of IPv4, two ports


class Capture:
    """Writes what an interface of a host exchanges with a port, TCP and UDP, into a file; a context manager."""

    def __init__(self, host: Host, device: str, port: int, file: Path, rtt_ns: int = 0) -> None:
        """Prepare; ``file`` is made when it begins, in the libpcap format; ``rtt_ns``: the path's own."""
        self._host = host
        self._device = device
        self._port = port
        self._file = file
        self._quiet_ms = _QUIET_S * 1e3 + rtt_ns / 1e6
        self._socket: socket.socket | None = None
        self._ending = -1
        self._ends_s: float | None = None
        self.packets = 0
        """How many are in the file."""
        self.missed = 0
        """How many the kernel could not keep for it (PACKET_STATISTICS)."""
        self.problem: str | None = None
        """Why there is no capture, or not all of it, in one line; None while all is well."""

    def __enter__(self) -> Capture:
        """Begin: from here on every packet is seen. What goes wrong is in ``problem``."""
        try:
            with self._host.inside():
                self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)  # 0: nothing comes before bind()
            self._grow_buffer(self._socket)
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
            self._socket.setblocking(False)
            self._out = self._file.open("wb")
        except OSError as error:
            self._refused(error)
            return self
        try:
            self._out.write(_FILE_HEAD)
            self._socket.bind((self._device, _ETH_P_ALL))
        except OSError as error:
            self._out.close()
            self._refused(error)
            return self
        self._ending = os.eventfd(0, os.EFD_CLOEXEC)
        self._thread = threading.Thread(target=self._read, args=(self._socket, self._out), name="capture", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it: what the kernel holds by now is still written."""
        if self._socket is None:
            return
        self._ends_s = time.monotonic() + _AFTER_S
        os.eventfd_write(self._ending, 1)
        self._thread.join()
        os.close(self._ending)
        _, self.missed = struct.unpack("@II", self._socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8))
        self._socket.close()
        if self.missed and self.problem is None:
            self.problem = f"the capture lacks {self.missed} packets, which came faster than they could be written"

    def _refused(self, error: OSError) -> None:
        self.problem = f"no capture: {error.strerror or error} ({self._device}, {self._file.name})"
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _grow_buffer(self, packets: socket.socket) -> None:
        try:
            packets.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
        except PermissionError:  # needs CAP_NET_ADMIN over the machine; what net.core.rmem_max allows must do
            packets.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)

    def _read(self, packets: socket.socket, out: BinaryIO) -> None:
        """Until it is over and nothing is left."""
        waiting = select.poll()
        waiting.register(packets, select.POLLIN)
        waiting.register(self._ending, select.POLLIN)
        try:
            with out:
                while self._ends_s is None or time.monotonic() < self._ends_s:
                    try:
                        frame, control, _, _ = packets.recvmsg(SNAP_BYTES, socket.CMSG_SPACE(_TIMESPEC.size))
                    except BlockingIOError:
                        if self._ends_s is None:
                            waiting.poll()
                        elif not _comes_more(packets, self._quiet_ms):
                            return
                        continue
                    if _is_of(frame, self._port):
                        out.write(_PACKET_HEAD.pack(*_time_of(control), len(frame), len(frame)) + frame)
                        self.packets += 1
        except OSError as error:
            self.problem = f"the capture ends early: {error.strerror or error} ({self._file.name})"


def _comes_more(packets: socket.socket, within_ms: float) -> bool:
    """Whether there is a packet within so many ms."""
    waiting = select.poll()
    waiting.register(packets, select.POLLIN)
    return bool(waiting.poll(within_ms))


def _time_of(control: list[tuple[int, int, bytes]]) -> tuple[int, int]:
    """When the kernel saw a packet: seconds and nanoseconds of CLOCK_REALTIME."""
    for level, kind, data in control:
        if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS):
            seconds, nanoseconds = _TIMESPEC.unpack(data[: _TIMESPEC.size])
            return seconds & 0xFFFFFFFF, nanoseconds
    return 0, 0


def _is_of(frame: bytes, port: int) -> bool:
    """Whether an Ethernet frame carries TCP or UDP from or to a port (a fragment without ports counts as such)."""
    frame = frame[:_HEADS_BYTES].ljust(_HEADS_BYTES, b"\0")  # a short one has no port
    kind = int.from_bytes(frame[12:14], "big")
    if kind == _ETH_P_IP:
        protocol, at = frame[23], 14 + 4 * (frame[14] & 0x0F)
        fragment = int.from_bytes(frame[20:22], "big") & 0x1FFF
    elif kind == _ETH_P_IPV6:
        protocol, at, fragment = frame[20], 54, 0
    else:
        return False
    if protocol not in (_TCP, _UDP):
        return False
    return bool(fragment) or port in struct.unpack_from("!HH", frame, at)
