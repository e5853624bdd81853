"""A browser that is none, for tests of the driver: ``python fake_browser.py`` is its driver, with a table of its own.

What it does in a visit is the last part of the URL's path.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time

from trifecta.implementations import registry
from trifecta.implementations.browser import (
    CRASHED,
    BrowserAdapter,
    BrowserFailed,
    Recording,
    RunningBrowser,
    View,
    VisitFailed,
)
from trifecta.implementations.server import Unsupported
from trifecta.implementations.table import BrokenBrowser, Table
from trifecta.implementations.visit import Fetch, Visit


class Fake(BrowserAdapter):
    name = "fake"
    source = "this file"

    def find(self):
        return "1"

    def declared(self):
        return {"tls_library": "none"}

    async def launch(self, job):
        if job.url.endswith("unsupported"):
            raise Unsupported("this browser is not for that; take another")
        if job.url.endswith("broken"):
            raise BrowserFailed(CRASHED, "it fell over")
        return Running(job)


class Running(RunningBrowser):
    version = "1.2.3"

    def __init__(self, job):
        (job.state / "profile").mkdir()
        # As browsers do: sessions of their own, deaf to polite signals, orphans, and stopped ones.
        deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
        self.process = subprocess.Popen([sys.executable, "-c", deaf, "fake-browser"], start_new_session=True)
        subprocess.Popen(["sh", "-c", "sleep 601 & kill -STOP $! & exit 0"], start_new_session=True).wait()
        self.pid = self.process.pid
        self.visits = 0

    async def open(self):
        self.visits += 1
        return Tab(self)

    async def close(self):
        self.process.kill()

    def stray_lookups(self):
        return 3


class Tab(View):
    def __init__(self, browser):
        self.browser = browser

    async def navigate(self, url, *, frames=False):
        self.url, self.started_ns = url, time.monotonic_ns()
        what = url.rpartition("/")[2]
        second = self.browser.visits >= 2
        if what == "slow":
            await asyncio.sleep(600)
        if what == "refused":
            raise VisitFailed("connect_refused", "nobody listens")
        if what == "crash" and second:
            self.browser.process.kill()
            raise BrowserFailed(CRASHED, "it ended")
        if what == "worker-dies" and second:
            os.kill(os.getpid(), 11)  # process 1 of a namespace: deaf to signals from inside
            os._exit(7)
        await asyncio.sleep(0.01)

    async def evaluate(self, expression):
        return None

    async def collect(self):
        if self.url.endswith("hang") and self.browser.visits >= 2:
            await asyncio.sleep(600)
        visit = Visit(self.started_ns, self.url, load_ns=10_000_000)
        fetch = Fetch(
            self.url, self.started_ns, kind="document", protocol="h3", status=200, connection="a", wire_bytes=110,
            header_bytes=10, body_bytes=100, decoded_bytes=100, done_ns=self.started_ns + 1,
        )  # fmt: skip
        if self.url.endswith("busy"):
            fetch.status, fetch.response_headers = 429, [("Retry-After", "7")]
        strange = Fetch(self.url + "?1", self.started_ns, status=404, missing=True, error="status", connection="b")
        return Recording(visit, [fetch, strange])

    async def close_connections(self):
        pass

    async def close(self):
        pass


if __name__ == "__main__":
    table = Table("browser", {"fake": "__main__:Fake"}, BrowserAdapter, BrokenBrowser, entries=lambda _: ([], []))
    table._loaded["fake"] = Fake()
    registry.BROWSERS = table
    from trifecta.implementations.browsers import driver, worker

    worker.ANSWER_TIMEOUT_S = 3.0
    sys.exit(driver.main(sys.argv[1:]))
