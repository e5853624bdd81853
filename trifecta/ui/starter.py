"""Starts commands for the page's server, at the priority that the user started it with.

The server makes itself the least important process of the machine, and what it starts would inherit that: a measurement
would lose every race for a processor. So it starts this program first, which starts the others when it is told to. One
JSON document a line: ``{"id", "argv", "cwd", "log"}`` in, ``{"id", "code"}`` out once it has ended. At the end of its
input it stops what still runs, as Ctrl-C does, and waits.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
from pathlib import Path

Running = dict[str, "subprocess.Popen[bytes]"]


def main() -> None:
    """Do what the lines of standard input say until it ends."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # Ctrl-C is the server's; then its end of the pipe closes
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: Running = {}
    with selectors.DefaultSelector() as waiting:
        waiting.register(0, selectors.EVENT_READ)
        waiting.register(read, selectors.EVENT_READ)
        buffered = b""
        while True:
            ready = {key.fd for key, _ in waiting.select()}
            if read in ready:
                os.read(read, 4096)
                _reap(running)
            if 0 in ready:
                piece = os.read(0, 65536)
                if not piece:
                    break
                *lines, buffered = (buffered + piece).split(b"\n")
                for line in lines:
                    _start(json.loads(line), running)
    for one in running.values():
        one.send_signal(signal.SIGINT)
    for one in running.values():
        one.wait()


def _start(order: dict[str, str], running: Running) -> None:
    try:
        with Path(order["log"]).open("wb") as log:
            process = subprocess.Popen(
                order["argv"], cwd=order["cwd"], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, preexec_fn=_listen,  # noqa: PLW1509 - no thread here
            )  # fmt: skip
    except OSError as error:
        Path(order["log"]).write_text(f"{error}\n", encoding="utf-8")
        _write_message({"id": order["id"], "code": 127})
    else:
        running[order["id"]] = process


def _listen() -> None:
    """What is ignored here would stay ignored there, and Ctrl-C is how a run is stopped."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def _reap(running: Running) -> None:
    for name, one in list(running.items()):
        if one.poll() is not None:
            del running[name]
            _write_message({"id": name, "code": one.returncode})


def _write_message(document: dict[str, str | int]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
