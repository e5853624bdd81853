"""A watch of a video in an open view: what the player saw, as times of CLOCK_MONOTONIC (docs/video.md).

The player (``trifecta/video/player``) plays when it is told to, notes what happens, and says it at the end. Meanwhile
it is asked once a second whether it still goes on. Its clock, ``performance.now()``, and CLOCK_MONOTONIC run alike; how
far they are apart is measured by asking it what time it is, before and after: half of the time that took is the most by
which a time here can be wrong, a millisecond or less on a machine that is not busy.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from trifecta.implementations.browser import Job, View, VisitFailed
from trifecta.implementations.browsers.player_report import (
    PLAYER,
    Clock,
    Report,
    dropped_floor,
    number,
    read_report,
    record,
)
from trifecta.implementations.browsers.records import Played

Answered = Callable[[Coroutine[Any, Any, Any]], Awaitable[Any]]
"""Waits for what a browser answers to a simple question, and not too long."""
_ASKED = 5  # for the time; the quickest answer counts
_LOOK_S = 1.0
_FIRST_LOOK_S = 0.1


async def watch(view: View, job: Job, answered: Answered, watch_ns: int | None = None) -> Played:
    """Play for ``job.watch.watch_ns``, or as long as said; what the player told."""
    if job.watch is None:
        raise ValueError("the job has no video")
    try:
        report = await play(view, answered, watch_ns or job.watch.watch_ns, job.visit_timeout_ns)
    except (VisitFailed, ValueError) as error:
        # The page is not our player, or a script of it failed.
        return Played(error=PLAYER, note=str(error))
    visit = dict(report.visit)
    if job.watch.floor is not None:
        visit["frames_dropped_floor"] = dropped_floor(report.rows, job.watch.floor)
    return Played(
        error=report.error,
        visit=visit,
        started_ns=report.started_ns,
        rows=report.rows,
        segments={url: (each.rung, each.segment, each.media_ns) for url, each in report.segments.items()},
        failed_url=report.failed_url,
        note=report.details,
    )


async def play(view: View, answered: Answered, watch_ns: int, timeout_ns: int) -> Report:
    """Let the player of an open view play for ``watch_ns`` from play on.

    ``timeout_ns`` is how long the first frame may take, at most as long as the watch. What goes wrong in the view
    itself is raised as there.
    """
    clock = await _clock(view, answered)
    await answered(view.evaluate("player.play()"))
    began = time.monotonic_ns()
    await asyncio.sleep(_FIRST_LOOK_S)
    while True:
        state = record(await answered(view.evaluate("player.state()")))
        pressed = number(state.get("began"))
        if state.get("failure") or state.get("ended"):
            break
        now = time.monotonic_ns()
        if pressed is None:  # it waits for its place in a segment
            if now - began > timeout_ns:
                break
            await asyncio.sleep(_FIRST_LOOK_S)
            continue
        since = now - (clock.offset_ns + round(pressed * 1e6))
        if number(state.get("firstFrame")) is None and since > min(timeout_ns, watch_ns):
            break
        if since >= watch_ns:
            break
        await asyncio.sleep(min(_LOOK_S, (watch_ns - since) / 1e9))
    return read_report(await answered(view.evaluate("player.finish()")), clock)


async def _clock(view: View, answered: Answered) -> Clock:
    best: Clock | None = None
    for _ in range(_ASKED):
        before = time.monotonic_ns()
        value = number(await answered(view.evaluate("performance.now()")))
        after = time.monotonic_ns()
        error = (after - before) // 2
        if value is not None and (best is None or error < best.error_ns):
            best = Clock(before + error - round(value * 1e6), error)
    if best is None:
        raise ValueError("the page does not report its time")
    return best
