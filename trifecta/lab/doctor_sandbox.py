"""Tries inside a sandbox of its own what a lab does, and prints what failed as JSON: name -> problem, '' when it works.

A problem may end with its own remedy, after a semicolon.

Run as a program, so that the sandbox is entered by a fresh process with one thread.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from trifecta.design.errors import CannotError, TrifectaError
from trifecta.lab import cgroups, linux, netem, sandbox
from trifecta.lab.containers import DockerEngine, docker_state
from trifecta.lab.doctor import UDP_BUFFER_BYTES
from trifecta.lab.engine import find_engine
from trifecta.lab.host_graph import host_graph

# Constants of linux/if_packet.h, linux/udp.h, asm-generic/socket.h, linux/sockios.h and linux/ethtool.h.
SOL_PACKET = 263
PACKET_VNET_HDR = 15
SOL_UDP = 17
UDP_SEGMENT = 103
UDP_GRO = 104
SO_RCVBUFFORCE = 33
SIOCETHTOOL = 0x8946
ETHTOOL_GTSO = 0x1E
ETH_P_ALL = 3


def _ip(*words: str) -> None:
    _run("ip", *words)


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=10, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise OSError(" ".join(done.stderr.split()) or f"exit code {done.returncode}")


def _veth() -> None:
    _ip("link", "add", "va", "type", "veth", "peer", "name", "vb")


def _packet_socket() -> None:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) as packets:
        packets.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)


def _tso() -> None:
    import array
    import fcntl

    value = array.array("B", struct.pack("II", ETHTOOL_GTSO, 0))
    request = struct.pack("16sP", b"va", value.buffer_info()[0])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket.fileno(), SIOCETHTOOL, request)
    if struct.unpack("II", value.tobytes())[1] == 0:
        raise OSError("off on a new veth")


def _udp_option(option: int, value: int) -> Callable[[], None]:
    def attempt() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
            datagrams.setsockopt(SOL_UDP, option, value)

    return attempt


def _fq() -> None:
    _run("tc", "qdisc", "replace", "dev", "vb", "root", "fq")


def _netem() -> None:
    """All that a path with ``emulator: netem`` needs; the error ends with its own remedy."""
    done = subprocess.run(["sh", "-c", netem.ASK], capture_output=True, text=True, check=False, timeout=10)
    if lack := netem.missing_support(done.stdout, own_network=True):
        raise OSError(f"{lack.problem}; {lack.remedy}")


def _ifb() -> None:
    _ip("link", "add", "ifb9", "type", "ifb")


def _realtime() -> None:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(linux.FIFO_PRIORITY))
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def _udp_buffers() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        with suppress(PermissionError):
            datagrams.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, UDP_BUFFER_BYTES)
        datagrams.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, UDP_BUFFER_BYTES)
        given = datagrams.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // 2  # the kernel doubles it, socket(7)
    if given < UDP_BUFFER_BYTES:
        raise OSError(f"{given} octets given of {UDP_BUFFER_BYTES}")


def _docker() -> None:
    """The Docker Engine starts and answers; a problem that ``docker_state`` knows is not retried."""
    if not docker_state("bridge").usable:
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        host_graph(["host1"], []) as topology,
        DockerEngine(topology, "host1", "bridge", find_engine(), Path(folder) / "docker.log"),
    ):
        pass


TRIALS: dict[str, Callable[[], None]] = {
    "veth": _veth,
    "AF_PACKET with vnet headers": _packet_socket,
    "super-packets (TSO)": _tso,
    "UDP segmentation offload": _udp_option(UDP_SEGMENT, 1200),
    "UDP receive offload": _udp_option(UDP_GRO, 1),
    "netem": _netem,
    "fq": _fq,
    "ifb": _ifb,
    "SCHED_FIFO": _realtime,
    "UDP buffers": _udp_buffers,
    "Docker": _docker,
}


def attempt_all() -> dict[str, str]:
    """What failed and why, by name; an empty text where it works."""
    problems: dict[str, str] = {}
    for name, attempt in TRIALS.items():
        try:
            attempt()
            problems[name] = ""
        except subprocess.TimeoutExpired as error:
            problems[name] = f"no end within {error.timeout:g} s"
        except (OSError, CannotError) as error:
            text = getattr(error, "strerror", None) or str(error) or type(error).__name__
            problems[name] = text.removeprefix("Error: ").rstrip(".")
    return problems


def main() -> int:
    """Enter a sandbox, try everything, print the problems; 3 with the reason when there is no sandbox."""
    try:
        sandbox.enter(cgroups.forget)
    except TrifectaError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(json.dumps(attempt_all()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
