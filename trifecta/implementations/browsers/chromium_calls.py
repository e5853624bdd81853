"""Calls to a running Chromium, which end when the browser does, and what its tabs count together."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from trifecta.implementations.browser import CRASHED, BrowserFailed
from trifecta.implementations.browsers.net_log import NetLog

if TYPE_CHECKING:
    from playwright.async_api import Browser

Value = TypeVar("Value")


class Calls:
    """What a tab needs of its browser."""

    def __init__(self, browser: Browser, net_log: NetLog | None) -> None:
        """``net_log``: where Chromium writes what it does on the network, if it does."""
        self.net_log = net_log
        self.strays = 0
        self._gone = asyncio.Event()
        browser.on("disconnected", lambda _: self._gone.set())

    async def alive(self, call: Coroutine[Any, Any, Value]) -> Value:
        """The result of a call to the browser; BrowserFailed when the browser is gone."""
        from playwright.async_api import Error

        doing = asyncio.ensure_future(call)
        gone = asyncio.ensure_future(self._gone.wait())
        try:
            await asyncio.wait({doing, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not doing.done():
                raise BrowserFailed(CRASHED, "the browser ended")
            return doing.result()
        except Error as error:
            await asyncio.sleep(0.05)  # that it is gone may be heard a moment later
            if self._gone.is_set():
                raise BrowserFailed(CRASHED, "the browser ended") from error
            raise
        finally:
            for each in (doing, gone):
                each.cancel()
                with suppress(asyncio.CancelledError, Error):
                    await each
