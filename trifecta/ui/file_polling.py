"""Who looks at files, how often: a measurement on this machine must not feel that a page is open.

Runs that are followed are looked at once a second, read when something changed, and left alone for so long that all of
it stays below `SHARE` of a processor, but for what was saved before (`Allowance`). Answers of the list are worked out
only while no run of the folder is being written.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import anyio.to_thread

from trifecta.design.errors import TrifectaError
from trifecta.ui import reading
from trifecta.ui.history import History
from trifecta.ui.index import Index
from trifecta.ui.live import Follower

LOOK_S = 1.0
SHARE = 0.005
SAVED_S = 0.2
"""So much of a processor may be used at once after a while without a look: the first ones of a run, which read most."""
KEEP_S = 10.0
"""The index is written to the cache no more often than this."""
QUIET_S = 1.0
"""Answers of the list are worked out once nobody has asked for anything for so long."""
PATIENCE_S = 5.0
"""The next of them waits no longer for that: several open lists may never leave so much time between two questions."""
HEARTBEAT_S = 15.0
"""A line goes to a page that follows at least so often, so that one that is gone is noticed."""


class Allowance:
    """How long to rest after a look: all of them use `SHARE` of a processor at most, and `SAVED_S` once."""

    def __init__(self, now_s: float) -> None:
        """All is saved at ``now_s``."""
        self._saved_s, self._since_s = SAVED_S, now_s

    def spend(self, cost_s: float, now_s: float) -> float:
        """The pause in s that a look demands which has cost so much of a processor, and is over now."""
        self._saved_s = min(SAVED_S, self._saved_s + SHARE * (now_s - self._since_s)) - cost_s
        self._since_s = now_s
        return max(LOOK_S, -self._saved_s / SHARE)


class Watcher:
    """Follows runs for the pages that show them; each run is read once, however many pages do."""

    def __init__(self) -> None:
        """Nothing is followed yet."""
        self.reading = anyio.CapacityLimiter(1)  # of what may take seconds
        self.looking = anyio.CapacityLimiter(1)  # of what takes a moment, and is not to wait for that
        self._followed: dict[Path, tuple[Follower, History, set[asyncio.Queue[str]]]] = {}
        self._last: dict[Path, str] = {}
        self._woken = asyncio.Event()
        self._ended = False

    def end(self) -> None:
        """No page is told anything more: the server is about to wait for its answers to end."""
        self._ended = True
        for *_, queues in self._followed.values():
            for queue in queues:
                queue.put_nowait("")

    async def follow(self, folder: Path, name: str) -> AsyncIterator[str]:
        """Server-sent events: how the run's intervals closed in and where it stands now, and both after each change."""
        queue: asyncio.Queue[str] = asyncio.Queue()
        followed = Follower(folder, name), History(folder), set[asyncio.Queue[str]]()
        follower, history, queues = self._followed.setdefault(folder, followed)
        queues.add(queue)  # before the past is told, so that nothing falls between
        if folder in self._last:
            queue.put_nowait(self._last[folder])
        self._woken.set()
        try:
            # News that come meanwhile say what they replace: told twice, they change nothing.
            yield await anyio.to_thread.run_sync(lambda: _event("past", history.document()), limiter=self.looking)
            while not self._ended:
                try:
                    yield await asyncio.wait_for(queue.get(), HEARTBEAT_S)
                except TimeoutError:
                    yield ": still here\n\n"
        finally:
            queues.discard(queue)
            if not queues and self._followed.get(folder, (None,))[0] is follower:
                del self._followed[folder]
                self._last.pop(folder, None)

    async def run(self) -> None:
        """Look and read until cancelled."""
        allowance = Allowance(time.monotonic())
        while True:
            if not self._followed:
                self._woken.clear()
                await self._woken.wait()
            spent_s = 0.0
            for folder, (follower, history, queues) in list(self._followed.items()):
                news, event, cost_s = await anyio.to_thread.run_sync(
                    _read_changes, follower, history, limiter=self.looking
                )
                spent_s += cost_s
                if event is not None:
                    self._last[folder] = event
                    for queue in queues:
                        queue.put_nowait(news + event)
            await asyncio.sleep(allowance.spend(spent_s, time.monotonic()))


def _read_changes(follower: Follower, history: History) -> tuple[str, str | None, float]:
    """What is new of the intervals and what to say after it, as events, and what it cost in s of a processor."""
    began = time.thread_time()
    news, event = "", None
    if follower.changed():
        try:
            document = follower.document()
            about = follower.about
            with about.naming():
                documents = history.changes(about)
            news = _event("past", documents) if documents else ""
            event = _event("state", document)
        except TrifectaError as error:
            event = _event("problem", {"error": " ".join(str(error).split())})
        except Exception as error:  # said on the page; other runs are followed on
            event = _event("problem", {"error": f"internal error: {type(error).__name__}: {error}"})
    return news, event, time.thread_time() - began


def _event(kind: str, document: object) -> str:
    return f"event: {kind}\ndata: {json.dumps(document, ensure_ascii=False)}\n\n"


class Answering:
    """Works out the answers that the list lacks, one after the other, while nothing is measured."""

    def __init__(self, index: Index, reader: anyio.CapacityLimiter) -> None:
        """Those of ``index``; only who holds ``reader`` reads a run."""
        self._index, self._reader = index, reader
        self._busy = False
        self._asked_s = 0.0
        self._woken = asyncio.Event()

    def wake(self, *, busy: bool) -> None:
        """The list was asked for; ``busy``: a run of the folder is being written."""
        self._busy = busy
        self._woken.set()

    def asked(self) -> None:
        """A page wants something: it comes first."""
        self._asked_s = time.monotonic()

    async def run(self) -> None:
        """Answer until cancelled."""
        kept_s = 0.0
        while True:
            await self._woken.wait()
            self._woken.clear()
            due_s = time.monotonic() + PATIENCE_S
            while not self._busy and (waiting := self._index.unanswered()):
                if (left_s := min(self._asked_s + QUIET_S, due_s) - time.monotonic()) > 0:
                    await asyncio.sleep(left_s)
                    continue
                await anyio.to_thread.run_sync(self._index.answer, waiting[0], reading.answer, limiter=self._reader)
                due_s = time.monotonic() + PATIENCE_S
                if time.monotonic() - kept_s > KEEP_S:
                    await anyio.to_thread.run_sync(self._index.keep)
                    kept_s = time.monotonic()
            await anyio.to_thread.run_sync(self._index.keep)


@asynccontextmanager
async def background(*tasks: Watcher | Answering) -> AsyncIterator[None]:
    """While these run beside the server."""
    running = [asyncio.create_task(one.run()) for one in tasks]
    try:
        yield
    finally:
        for one in running:
            one.cancel()
        for one in running:
            with suppress(asyncio.CancelledError):
                await one
