"""One event loop for all connections, in a thread of its own: asyncssh needs one, and nothing else of Trifecta has any.

The thread keeps connections alive while the run's own waits for a trial to end. It begins when it is first asked for:
a sandbox must be entered before any thread is (`trifecta.lab.sandbox.enter`).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from functools import cache
from typing import Any, TypeVar

Answer = TypeVar("Answer")


class Loop:
    """A running event loop. Its methods are for other threads."""

    def __init__(self) -> None:
        """Start the thread; it ends with the process."""
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="ssh", daemon=True).start()

    def wait(self, work: Coroutine[Any, Any, Answer], timeout_s: float) -> Answer:
        """What a coroutine gives, or raises; TimeoutError when that takes too long, and it is cancelled."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(timeout_s)
        except BaseException:
            future.cancel()
            raise

    def begin(self, work: Coroutine[Any, Any, object]) -> None:
        """Have a coroutine run by itself; it deals with its own errors."""
        asyncio.run_coroutine_threadsafe(work, self._loop)

    def soon(self, call: Callable[[], object]) -> None:
        """Have something called in the loop's thread, after what was handed over before."""
        self._loop.call_soon_threadsafe(call)


@cache
def the_loop() -> Loop:
    """The loop of this process."""
    return Loop()
