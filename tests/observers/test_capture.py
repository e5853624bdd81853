"""Captures without another program: what crosses is in the file, and what cannot be kept is said."""

from __future__ import annotations

import json
import struct
import time
from pathlib import Path

import pytest

from tests.lab.inside import run_inside
from trifecta.observers import capture

pytestmark = pytest.mark.lab

SEND = """
import json, socket, sys
from pathlib import Path
from trifecta.lab.network import SERVER_ADDRESS, SERVER_ADDRESS_6, two_hosts
from trifecta.observers.capture import Capture
with (
    two_hosts() as lab,
    Capture(lab.host("client"), {device!r}, 7000, Path({file!r})) as capture,
    lab.host("client").inside(),
):
    packets = 0
    for family, address in ((socket.AF_INET, SERVER_ADDRESS), (socket.AF_INET6, SERVER_ADDRESS_6)):
        with socket.socket(family, socket.SOCK_DGRAM) as sender:
            for octets in (1, 700, 1400):
                sender.sendto(b"u" * octets, (address, 7000))
            sender.sendto(b"x" * 50, (address, 7001))
        with socket.socket(family) as caller:
            caller.setblocking(False)
            caller.connect_ex((address, 7000))
print(json.dumps([capture.problem, capture.packets, capture.missed]))
"""


def said(device: str, file: Path) -> list[object]:
    done = run_inside(SEND.format(device=device, file=str(file)))
    assert done.returncode == 0, done.stderr
    found: list[object] = json.loads(done.stdout)
    return found


def read(file: Path) -> list[tuple[int, bytes]]:
    """Times (ns) and frames of a capture, as the format is described by the IETF draft of pcap."""
    data = file.read_bytes()
    assert struct.unpack_from("=IHHiIII", data) == (0xA1B23C4D, 2, 4, 0, 0, capture.SNAP_BYTES, 1)
    found, at = [], 24
    while at < len(data):
        seconds, nanoseconds, kept, length = struct.unpack_from("=IIII", data, at)
        assert kept == length
        found.append((seconds * 10**9 + nanoseconds, data[at + 16 : at + 16 + kept]))
        at += 16 + kept
    return found


def test_everything_of_the_port_is_in_the_file_whole_and_in_its_time(tmp_path: Path) -> None:
    began_ns = time.time_ns()
    assert said("eth0", tmp_path / "c.pcap") == [None, 8, 0]
    packets = read(tmp_path / "c.pcap")
    assert len(packets) == 8
    # Ethernet 14, IPv4 20, IPv6 40, UDP 8 octets; a SYN has its options besides
    udp = [len(frame) for _, frame in packets if frame[23 if frame[12:14] == b"\x08\0" else 20] == 17]
    assert udp == [14 + head + 8 + octets for head in (20, 40) for octets in (1, 700, 1400)]
    times = [time_ns for time_ns, _ in packets]
    assert began_ns <= times[0] <= times[-1] <= time.time_ns()
    assert times == sorted(times)


LATE = """
import json, socket, threading, time
from pathlib import Path
from trifecta.lab.network import SERVER_ADDRESS, two_hosts
from trifecta.observers.capture import Capture

def on_its_way():
    while capture._ends_s is None:
        time.sleep(0.001)
    time.sleep(0.1)  # as long as the path takes
    sender.sendto(b"late", (SERVER_ADDRESS, 7000))

with two_hosts() as lab:
    with lab.host("client").inside():
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with Capture(lab.host("client"), "eth0", 7000, Path({file!r}), 900_000_000) as capture:
        sender.sendto(b"in time", (SERVER_ADDRESS, 7000))
        threading.Thread(target=on_its_way).start()
print(json.dumps([capture.problem, capture.packets]))
"""


def test_what_the_path_still_holds_at_the_end_is_in_the_file(tmp_path: Path) -> None:
    done = run_inside(LATE.format(file=str(tmp_path / "c.pcap")))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [None, 2]


def test_a_device_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert said("eth7", tmp_path / "c.pcap") == ["no capture: No such device (eth7, c.pcap)", 0, 0]


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    problem, _, _ = said("eth0", Path("/dev/full"))
    assert problem == "the capture ends early: No space left on device (full)"


@pytest.mark.parametrize(
    ("frame", "of_it"),
    [
        (b"", False),
        (b"\0" * 12 + b"\x08\x06" + b"\0" * 28, False),  # ARP
        (b"\0" * 12 + b"\x08\0\x45" + b"\0" * 8 + b"\x06" + b"\0" * 10 + b"\x1b\x58\0\1", True),  # TCP from 7000
        (b"\0" * 12 + b"\x08\0\x45" + b"\0" * 8 + b"\x11" + b"\0" * 10 + b"\0\1\x1b\x58", True),  # UDP to 7000
        (b"\0" * 12 + b"\x08\0\x45" + b"\0" * 8 + b"\x11" + b"\0" * 10 + b"\0\1\x1b\x59", False),
        (b"\0" * 12 + b"\x08\0\x45" + b"\0" * 5 + b"\x07\0\0\x11", True),  # a fragment
        (b"\0" * 12 + b"\x08\0\x45", False),
        (b"\0" * 12 + b"\x86\xdd", False),
    ],
)
def test_frames_are_told_apart(frame: bytes, of_it: bool) -> None:
    assert capture._is_of(frame, 7000) is of_it
