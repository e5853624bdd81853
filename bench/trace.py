"""How long a million packets take: dissection and analysis, and their memory.

`python -m bench.trace [MILLIONS [CONNECTIONS]]` makes captures with our own engine through our own link (both sides of
it, keys known), and dissects and analyses them: a million packets over few connections (HTTP/2 and HTTP/3, six each,
10 MB a response), 5,000 connections of one small request each (three protocols), and a million packets over 5,000
connections. It needs to be allowed namespaces, and tshark. To reach: 90 s and 2 GB on 2 cores for a million packets,
the analysis after the dissection in 5 s. CPU time is printed too, for it does not depend on what else there is to do.
A capture that lacks packets, because the disk was too slow for the link, ends it: it says nothing.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from tests.engine.netns import Hosts
from tests.trace.make import record
from trifecta.trace.analyse import analyse
from trifecta.trace.dissect import dissect

_REQUESTS = 36  # of 10 MB: half a million packets on both sides
_RESPONSE = 130_000  # octets of a response: with one each, 5,000 connections have a million packets
_GIGABYTE = 1e9


class Memory:
    """The most memory of this process and all below it together, five times a second: more often is work itself."""

    def __init__(self) -> None:
        self.most = 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._end.wait(0.2):
            self.most = max(self.most, sum(_private(pid) for pid in _family(os.getpid())))


def _family(root: int) -> list[int]:
    found, at = [root], 0
    while at < len(found):
        for task in Path(f"/proc/{found[at]}/task").glob("*/children"):
            try:
                found += [int(one) for one in task.read_text().split()]
            except OSError:
                continue
        at += 1
    return found


def _private(pid: int) -> int:
    """Octets that this process alone has, and its share of what is common; pages of files do not count."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss_Anon:"))


class Clock:
    """Wall time, and CPU time of this process and of all below it that have ended."""

    def __init__(self) -> None:
        self._before = self._now()

    @staticmethod
    def _now() -> tuple[float, float]:
        return time.monotonic(), sum(os.times()[:4])

    def lap(self) -> str:
        """Since the last lap."""
        before, self._before = self._before, self._now()
        return f"{self._before[0] - before[0]:.1f} s ({self._before[1] - before[1]:.1f} CPU s)"


def _measure(what: str, files: list[Path], keys: Path, responses: int, connections: int) -> None:
    """Dissect and analyse as `trifecta trace --out` does. ``responses``: octets of content that must be found."""
    with Memory() as memory:
        clock = Clock()
        found = dissect(files, keys)
        dissected = clock.lap()
        told = analyse(found)
        analysed = clock.lap()
    octets = pc.sum(found.messages["response_body_bytes"]).as_py()
    if octets != responses:
        raise SystemExit(f"{what}: {octets:,} octets of content were found of {responses:,}: {found.notes}")
    assert len([one for one in told.connections if one["requests"]]) == connections, len(told.connections)
    print(
        f"{what}: packets {found.packets.num_rows:,}, frames {found.frames.num_rows:,}, connections {connections:,}, "
        f"metrics {told.metrics.num_rows:,}"
    )
    print(
        f"  dissection {dissected}, analysis {analysed}, memory {memory.most / _GIGABYTE:.2f} GB, notes {found.notes}"
    )


def main(millions: float = 1.0, connections: int = 5_000) -> int:
    """Make the captures, dissect and analyse them, print what it took."""
    delay = {"kind": "delay", "delay_ns": 5_000_000}
    requests = max(6, round(_REQUESTS * millions))
    each = connections // 3
    many: dict[str, Any] = {"requests": each, "connection_mode": "new", "connections": 8}
    size = round(_RESPONSE * millions * 5_000 / connections)
    few = {"requests": requests, "connections": 6, "path": "/bytes/10000000", "link": [delay], "back": [delay]}
    loads: list[tuple[str, tuple[str, ...], dict[str, Any], int, int]] = [
        ("large", ("h2", "h3"), few, 2 * requests * 10_000_000, 12),
        ("many short connections", ("h1", "h2", "h3"), many | {"path": "/bytes/1000"}, 3 * each * 1_000, 3 * each),
        ("many connections", ("h1", "h2", "h3"), many | {"path": f"/bytes/{size}"}, 3 * each * size, 3 * each),
    ]
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder, Hosts() as hosts:
        for what, protocols, load, octets, wanted in loads:
            files: list[Path] = []
            keys = Path(folder) / "keys"
            for protocol in protocols:
                capture, own_keys, summary = record(hosts, Path(folder) / what / protocol, protocol, **load)
                assert summary["errors"] == 0, summary
                files.append(capture)
                with keys.open("ab") as file:
                    file.write(own_keys.read_bytes())
            _measure(what, files, keys, octets, wanted)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*(kind(word) for kind, word in zip((float, int), sys.argv[1:], strict=False))))
