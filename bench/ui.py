"""What `trifecta ui` takes: 1,000 runs listed, a run of 10 million samples opened, a run followed while it grows.

    python -m bench.ui [--runs 1000] [--samples 10000000] [--seconds 60]

All runs are invented (tests/report/synthetic.py), in a temporary folder. The server is the command itself, in a process
of its own; times are those of whole answers to one client, the first ones with what the server imports, and those
until Chromium and Firefox have drawn what was asked for. Of the followed run a trial is finished every second, and
every fourth ends a block; what the server used is its processor time over the time that passed, a page being open.
Limits are those of issue 23; exit code 1 where one is missed.
"""

from __future__ import annotations

import argparse
import http.client
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

LIST_S, PICTURE_S, SHARE = 0.3, 2.0, 0.01
BLOCKS = 9
# The page goes elsewhere, and a frame with what is looked for comes.
DRAWN = """([place, what]) => new Promise((done) => {
  const began = performance.now();
  const look = () => document.querySelector(what) ? done(performance.now() - began) : requestAnimationFrame(look);
  location.hash = place;
  requestAnimationFrame(look);
})"""
TRIALS = 12 * 4 * BLOCKS


class Server:
    """The command, and one client that has its cookie."""

    def __init__(self, folder: Path) -> None:
        """Over ``folder``."""
        command = [sys.executable, "-m", "trifecta", "ui", str(folder)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        self.port = int(self.address.split(":")[2].split("/")[0])
        self.cookie = f"trifecta-{self.port}={self.address.partition('token=')[2]}"

    def open(self, path: str, **fields: str) -> http.client.HTTPResponse:
        """An answer that is still to be read."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("GET", f"{path}?{urlencode(fields)}", headers={"cookie": self.cookie})
        return connection.getresponse()

    def took(self, path: str, **fields: str) -> float:
        """Seconds that a whole answer takes."""
        began = time.perf_counter()
        answer = self.open(path, **fields)
        body = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {body[:300]!r}")
        return time.perf_counter() - began

    def cpu_s(self) -> float:
        """Processor time so far, of all of its threads."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """A server that is ended as by Ctrl-C."""
    made = Server(folder)
    try:
        yield made
    finally:
        made.process.send_signal(2)
        made.process.wait()


def listing(folder: Path, runs: int) -> list[tuple[str, float, float]]:
    """Many runs in one folder, whose answers are known."""
    from tests.store.sealed import small
    from trifecta.ui.index import Index

    pattern = small(folder.parent / "pattern")
    for number in range(runs):
        shutil.copytree(pattern, folder / f"race-{number:05}")
    index = Index(folder)
    index.look()
    for one in index.unanswered():
        index.answer(
            one, lambda path, _: f"HTTP/3 was faster than HTTP/2 in 3 of 12 cells of {path.name}; 9 stay open."
        )
    index.keep()
    with serving(folder) as server:
        first = server.took("/api/runs")
        again = statistics.median(server.took("/api/runs") for _ in range(9))
        found = [(f"list of {runs:,} runs, the first", first, LIST_S), ("the same, median of nine", again, LIST_S)]
        return found + drawn(server, folder, "", ".runs li:nth-child(20)", f"list of {runs:,} runs", LIST_S)


def opening(folder: Path, samples: int) -> list[tuple[str, float, float]]:
    """A large run: its first picture, then what reads samples."""
    from tests.report.synthetic import Shape, write_run
    from tests.store.sealed import seal

    run = seal(write_run(folder / "large", Shape(blocks=BLOCKS, samples_per_trial=samples // TRIALS)))
    cell = "path=far,connection=new,server=origin"
    with serving(folder) as server:
        server.took("/api/runs")
        found = [
            ("the first picture of it", server.took("/api/first", name="large"), PICTURE_S),
            ("all that is said of it, its files compared", server.took("/api/run", name="large"), 10.0),
            ("the same again", server.took("/api/run", name="large"), 5.0),
            ("a metric against a factor", server.took("/api/values", name="large", metric="latency_p50_ns",
                                                       factor="path"), 5.0),
            ("the samples of a trial", server.took("/api/trial", name="large", trial="t00003"), 5.0),
            ("a cell's samples, curves and tables", server.took("/api/cell", name="large", cell=cell), 10.0),
        ]  # fmt: skip
        found += drawn(server, folder, "run/large", "main figure svg", "first picture of it", PICTURE_S)
    size = sum(path.stat().st_size for path in run.rglob("*") if path.is_file())
    print(f"{samples:,} samples in {TRIALS} trials, {size / 1e6:,.0f} MB")
    return found


def drawn(
    server: Server, folder: Path, place: str, what: str, words: str, limit: float
) -> list[tuple[str, float, float]]:
    """Seconds from a click on another part of the open page until this is drawn, median of five, in both browsers."""
    from tests.browsing import CHROMIUM, FIREFOX, launched, until

    found = []
    for name, there in (("chromium", CHROMIUM), ("firefox", FIREFOX)):
        if there is None:
            print(f"{name} is not installed: nothing is drawn in it")
            continue
        with launched(name, folder.parent) as browser:
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(server.address)
            until(page, "document.querySelector('.runs li') !== null")
            times = []
            for _ in range(5):
                page.evaluate("location.hash = '#/two'")
                until(page, f"document.querySelector({what!r}) === null")
                times.append(page.evaluate(DRAWN, [f"#/{place}", what]) / 1e3)
            found.append((f"{words}, drawn in {name}, median of five", statistics.median(times), limit))
    return found


def following(folder: Path, seconds: int) -> list[tuple[str, float, float]]:
    """A run that grows by a trial a second while a page follows it: the server's share of a core."""
    from tests.report.synthetic import Shape, write_run
    from tests.ui.test_live import arrive, judge, shortened

    shape = Shape(blocks=40, samples_per_trial=60, paths=("far",), connections=("new", "reused"), servers=("origin",))
    run = write_run(folder / "growing", shape)
    judge(run)
    later = shortened(run, 32)
    events: list[bytes] = []
    with serving(folder) as server:
        answer = server.open("/api/live", name="growing")
        threading.Thread(
            target=lambda: events.extend(line for line in answer if line[:5] == b"data:"), daemon=True
        ).start()
        arrive(run, later[:1])
        time.sleep(20)  # what opening costs is over
        before, began = server.cpu_s(), time.monotonic()
        told = len(events)
        while time.monotonic() - began < seconds:
            arrive(run, later[1:5])
            del later[1:5]
            time.sleep(4)
        used = (server.cpu_s() - before) / (time.monotonic() - began)
        told = len(events) - told
    print(f"{told} times in {seconds} s the page was told where the run stands")
    return [("share of a core while a run is followed", used, SHARE)]


def main() -> int:
    """Print a line a figure; the exit code."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--runs", type=int, default=1000)
    reader.add_argument("--samples", type=int, default=10_000_000)
    reader.add_argument("--seconds", type=int, default=60)
    asked = reader.parse_args()
    missed = False
    with tempfile.TemporaryDirectory(prefix="trifecta-bench-ui-") as made:
        os.environ["TRIFECTA_CACHE"] = f"{made}/cache"
        parts = ((listing, asked.runs), (opening, asked.samples), (following, asked.seconds))
        for make, size in parts:
            if size:
                folder = Path(made) / make.__name__ / "runs"
                folder.mkdir(parents=True)
                for words, value, limit in make(folder, size):
                    missed |= value > limit
                    print(f"{words}: {value:.3f} (limit {limit:g}){' MISSED' if value > limit else ''}", flush=True)
                shutil.rmtree(folder.parent)
    return int(missed)


if __name__ == "__main__":
    raise SystemExit(main())
