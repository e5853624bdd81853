"""Whether a program that claims HTTP/3 really begins a QUIC connection when it is asked for one."""

from __future__ import annotations

import select
import socket
import subprocess
import time
from collections.abc import Callable, Sequence

_LIMIT_S = 10.0
_PAUSE_S = 0.01
_LEAST_BYTES = 1200  # of the datagram with a client's first packet (RFC 9000, section 14.1)
_LONG_HEADER = 0xC0  # with the fixed bit (RFC 9000, section 17.2)


def begins_quic(command: Callable[[int], Sequence[str]]) -> bool:
    """Run ``command(port)`` and see whether a QUIC client's first packet comes to that UDP port of 127.0.0.1.

    Nobody answers, and the program is ended then. False when it ends without one, or sends none within 10 s.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as there:
        there.bind(("127.0.0.1", 0))
        asking = subprocess.Popen(
            command(there.getsockname()[1]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            deadline, over = time.monotonic() + _LIMIT_S, False
            while not over:
                over = asking.poll() is not None or time.monotonic() > deadline  # before the last look
                if select.select([there], [], [], _PAUSE_S)[0]:
                    first = there.recv(2048)
                    return len(first) >= _LEAST_BYTES and first[0] & _LONG_HEADER == _LONG_HEADER
            return False
        finally:
            asking.kill()
            asking.wait()
