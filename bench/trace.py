"""How long a million packets take: dissection and analysis, and their memory.

`python -m bench.trace [MILLIONS]` makes two captures with our own engine through our own link (HTTP/2 and HTTP/3, six
connections each, both sides of the link, keys known) and dissects them; it needs to be allowed namespaces, and tshark.
To reach: 90 s and 2 GB on 2 cores for a million packets, the analysis after the dissection in 5 s.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from pathlib import Path

import pyarrow.compute as pc

from tests.engine.netns import Hosts
from tests.trace.make import record
from trifecta.trace import overview
from trifecta.trace.dissect import dissect

_REQUESTS = 36  # of 10 MB: half a million packets on both sides
_GIGABYTE = 1e9


class Memory:
    """The most memory of this process and all below it together, twenty times a second."""

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
        while not self._end.wait(0.05):
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


def main(millions: float = 1.0) -> int:
    """Make the captures, dissect and analyse them, print what it took."""
    delay = {"kind": "delay", "delay_ns": 5_000_000}
    requests = max(6, round(_REQUESTS * millions))
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder, Hosts() as hosts:
        files: list[Path] = []
        keys = Path(folder) / "keys"
        for protocol in ("h2", "h3"):
            capture, own_keys, summary = record(
                hosts,
                Path(folder) / protocol,
                protocol,
                link=[delay],
                back=[delay],
                requests=requests,
                connections=6,
                path="/bytes/10000000",
            )
            assert summary["errors"] == 0, summary
            files.append(capture)
            with keys.open("ab") as file:
                file.write(own_keys.read_bytes())
        with Memory() as memory:
            began = time.monotonic()
            found = dissect(files, keys)
            dissected = time.monotonic()
            rows = overview.by_connection(found)
            analysed = time.monotonic()
        octets = pc.sum(found.messages["response_body_bytes"]).as_py()
        assert octets == 2 * requests * 10_000_000, (octets, found.notes)
        assert len([one for one in rows if one["requests"]]) == 12, rows
        print(f"packets {found.packets.num_rows:,}, frames {found.frames.num_rows:,}, notes {found.notes}")
        print(f"dissection {dissected - began:.1f} s, set-up of all connections {analysed - dissected:.1f} s")
        print(f"memory {memory.most / _GIGABYTE:.2f} GB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0))
