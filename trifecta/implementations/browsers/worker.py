"""Makes the visits of a trial, the same for every browser; ``driver.py`` starts it in namespaces of its own.

It says on its pipe, a line of JSON each: ``loaded``, ``ready``, ``visit`` (a ``VisitRecord``), ``note`` (for the log),
and at its end ``done`` or ``failed``. Whatever happens to it, the visits said before are kept.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

from trifecta.analysis import speed_index
from trifecta.contract.errors import ErrorClass
from trifecta.implementations.browser import (
    HUNG,
    BrowserAdapter,
    BrowserFailed,
    Job,
    Recording,
    RunningBrowser,
    View,
    VisitFailed,
)
from trifecta.implementations.browsers import har, jobs, namespaced_worker, playback, visit_traffic
from trifecta.implementations.browsers.records import (
    VisitRecord,
    apply_played,
    number_connections,
    summarise,
    tell_third_parties,
)
from trifecta.implementations.server import Unsupported
from trifecta.implementations.visit import Visit
from trifecta.lab.engine import EXIT_UNSUPPORTED

LAUNCH_TIMEOUT_S = 60.0  # a cold machine reads 300 MB of program
ANSWER_TIMEOUT_S = 30.0  # a browser that does not answer a simple question for so long is taken for hung
CLOSE_TIMEOUT_S = 5.0
WARM_PATH = "/.well-known/trifecta-warm"  # tiny: a recording has no answer to it, so it is a 404
_FORMER_WATCH_NS = 3_000_000_000  # of the watch before a repeated one: it opens every connection
EXIT_FAILED = 1
Value = TypeVar("Value")


class Worker:
    """What is known while the visits are made."""

    def __init__(self, adapter: BrowserAdapter, write: int) -> None:
        """``write``: the descriptor to the driver."""
        self.name = adapter.name
        self._adapter = adapter
        self._write = write

    def say(self, key: str, document: Any) -> None:
        """A line to the driver."""
        self._send(f'{{"{key}":{json.dumps(document, separators=(",", ":"))}}}')

    def _send(self, text: str) -> None:
        data = text.encode() + b"\n"
        while data:
            data = data[os.write(self._write, data) :]

    async def work(self, job: Job) -> None:
        """All visits of a job."""
        try:
            async with asyncio.timeout(LAUNCH_TIMEOUT_S):
                browser = await self._adapter.launch(job)
        except Unsupported as error:
            self.say("failed", {"code": EXIT_UNSUPPORTED, "message": str(error)})
            return
        except (BrowserFailed, TimeoutError, OSError) as error:
            words = str(error) or f"did not start within {LAUNCH_TIMEOUT_S:g} s"
            self.say("failed", {"code": EXIT_FAILED, "message": f"browser {self._adapter.name}: {words}"})
            return
        self.say("ready", {"browser": self._adapter.name, "version": browser.version, "pid": browser.pid})
        lost: BrowserFailed | None = None
        patience, due_ns = False, 0
        for number in range(job.warmup_visits + job.visits):
            if job.elsewhere is not None and lost is None:
                await asyncio.sleep(max(0, due_ns - time.monotonic_ns()) / 1e9)
                due_ns = time.monotonic_ns() + job.elsewhere.least_gap_ns
            record = VisitRecord(number, number < job.warmup_visits, Visit(time.monotonic_ns(), job.url))
            if lost is None:
                try:
                    await _Visiting(browser, job, self).make(record)
                except BrowserFailed as error:
                    lost = error
                    self.say("note", f"visit {number}: {error.error}: {error}")
            if lost is not None:
                record.visit.error = lost.error
            user, system = _cpu_ns(browser)
            self._send(f'{{"visit":{record.to_json()}}}')
            self.say("cpu", [user, system])
            patience = job.elsewhere is not None and visit_traffic.refused(record.fetches)
            if patience:
                break  # nothing more is asked of anybody
        if lost is None:
            try:
                async with asyncio.timeout(CLOSE_TIMEOUT_S):
                    await browser.close()
            except (BrowserFailed, TimeoutError) as error:
                self.say("note", f"it did not end by itself: {error or 'no answer'}")
        outcome = {"stray_lookups": browser.stray_lookups(), "lost": lost and lost.error, "patience": patience}
        self.say("done", outcome)


def _cpu_ns(browser: RunningBrowser) -> tuple[int, int]:
    return namespaced_worker.cpu_ns(browser.helpers)


async def answered(call: Coroutine[Any, Any, Value]) -> Value:
    """What a browser answers to a simple question; BrowserFailed when it does not."""
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            return await call
    except TimeoutError:
        raise BrowserFailed(HUNG, f"no answer within {ANSWER_TIMEOUT_S:g} s") from None


class _Visiting:
    """One visit."""

    def __init__(self, browser: RunningBrowser, job: Job, worker: Worker) -> None:
        self._browser = browser
        self._job = job
        self._worker = worker
        self._frames: list[tuple[int, bytes]] = []
        self._loaded_cpu_ns = 0

    async def make(self, record: VisitRecord) -> None:
        """Fill in the record; BrowserFailed when the browser is lost, with what is known until then filled in."""
        job = self._job
        view = await answered(self._browser.open())
        try:
            error = await self._before(view)
            if error is None:
                filmed = job.warmup_visits - 1  # a camera slows a page down: no measured visit is filmed
                url = job.watch.player_url if job.watch else job.url
                before = sum(_cpu_ns(self._browser))
                error = await self._go(view, url, frames=job.filmstrip and record.number == filmed)
                played = None
                if error is None and job.watch is not None:
                    played = await playback.watch(view, job, answered)
                    error = played.error
                    if error is not None:
                        self._worker.say("note", f"visit {record.number}: {error}: {played.note}")
                if error is None and job.watch is not None:
                    self._loaded_cpu_ns = sum(_cpu_ns(self._browser))
                recording = await answered(view.collect())
                self._take(record, recording)
                if error is None:
                    record.visit.browser_cpu_ns = self._loaded_cpu_ns - before
                if played is not None:
                    apply_played(record, played)
            record.visit.error = record.visit.error or error
        except VisitFailed as error:
            self._worker.say("note", f"visit {record.number}: {error.error}: {error}")
            record.visit.error = error.error
        finally:
            await answered(view.close())
        self._after(record)

    async def _before(self, view: View) -> ErrorClass | None:
        """What comes before the measured visit; its error class."""
        job = self._job
        error: ErrorClass | None = None
        if job.view == "warm":
            first = f"https://{job.hosts[0]}{'' if job.port == 443 else f':{job.port}'}"
            error = await self._go(view, first + WARM_PATH, expect_success=False)
            # Connections of requests with and without credentials are kept apart (WHATWG Fetch, 2.6): most have them.
            others = [f"https://{host}{'' if job.port == 443 else f':{job.port}'}{WARM_PATH}" for host in job.hosts]
            script = f"""Promise.allSettled({json.dumps(others)}.map(url =>
                fetch(url, {{mode: "no-cors", cache: "no-store", credentials: "include"}}))).then(() => null)"""
            await answered(view.evaluate(script))
            await answered(view.collect())
        elif job.view == "repeat":
            error = await self._go(view, job.watch.player_url if job.watch else job.url)
            if error is None and job.watch is not None:
                error = (await playback.watch(view, job, answered, _FORMER_WATCH_NS)).error
            await answered(view.collect())
            await answered(view.close_connections())
        return error

    async def _go(
        self, view: View, url: str, *, frames: bool = False, expect_success: bool = True
    ) -> ErrorClass | None:
        """Navigate, wait for load and for what comes late; the error class."""
        try:
            async with asyncio.timeout(self._job.visit_timeout_ns / 1e9):
                await view.navigate(url, frames=frames)
        except TimeoutError:
            return "timeout"
        except VisitFailed as error:
            if error.error == "status" and not expect_success:
                return None
            self._worker.say("note", f"{url}: {error.error}: {error}")
            return error.error
        self._loaded_cpu_ns = sum(_cpu_ns(self._browser))
        await asyncio.sleep(self._job.settle_ns / 1e9)
        return None

    def _take(self, record: VisitRecord, recording: Recording) -> None:
        number_connections(recording.fetches)
        tell_third_parties(recording.fetches, self._job.third_parties)
        summarise(recording.visit, recording.fetches)
        record.visit, record.fetches = recording.visit, recording.fetches
        self._frames = recording.frames

    def _after(self, record: VisitRecord) -> None:
        """What is worked out when nothing is measured: Speed Index, the film strip and the archive."""
        visual = speed_index.visual(self._frames) if record.visit.error is None else None
        if visual is not None:
            record.visit.speed_index_ns, record.visit.visually_complete_ns = visual
        if self._job.frames_dir is not None and self._frames:
            folder = self._job.frames_dir / str(record.number)
            folder.mkdir(parents=True, exist_ok=True)
            for at_ns, picture in self._frames:
                (folder / f"{max(0, at_ns) // 1_000_000}.jpg").write_bytes(picture)
        if self._job.har_dir is not None:
            self._job.har_dir.mkdir(parents=True, exist_ok=True)
            archive = har.document(
                record,
                browser=self._worker.name,
                version=self._browser.version,
                title=self._job.url,
                wall_offset_ns=time.time_ns() - time.monotonic_ns(),
            )
            text = json.dumps(archive, indent=1, ensure_ascii=False)
            (self._job.har_dir / f"{record.number}.har").write_text(text, encoding="utf-8")


def main(name: str, read: int, write: int) -> None:
    """The worker's program: everything is imported before the configuration is read."""
    from trifecta.implementations.registry import BROWSERS

    adapter = BROWSERS[name]
    worker = Worker(adapter, write)
    try:
        adapter.load()
    except Unsupported as error:
        worker.say("failed", {"code": EXIT_UNSUPPORTED, "message": str(error)})
        return
    worker.say("loaded", {"browser": name, "declared": dict(adapter.declared())})
    with os.fdopen(read, "rb") as pipe:
        line = pipe.readline()
        if not line:
            return
        job = jobs.job_of(jobs.read(line))
        files = (
            job.ca_file, job.keylog_file, job.netlog_file, job.frames_dir, job.har_dir, job.qlog_dir,
        )  # fmt: skip
        state = namespaced_worker.private_folder(job.state, [path for path in files if path is not None])
        job = dataclasses.replace(job, state=state)
        asyncio.run(worker.work(job))
