"""A tab of Chromium: what it does, told by the DevTools protocol and by the page itself."""

from __future__ import annotations

import asyncio
import base64
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from trifecta.implementations.browser import CRASHED, Recording, View, VisitFailed
from trifecta.implementations.browsers.cdp_errors import NO_NAME, error_class
from trifecta.implementations.browsers.cdp_network import NetworkLog
from trifecta.implementations.browsers.chromium_calls import Calls
from trifecta.implementations.browsers.page_times import PAGE_TIMES, take_page_times
from trifecta.implementations.visit import Visit

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, CDPSession, Page

_FRAME = {"format": "jpeg", "quality": 40, "maxWidth": 400, "maxHeight": 400, "everyNthFrame": 1}
_ERROR_PAGE_MS = 5_000


class ChromiumView(View):
    """A tab in a context of its own."""

    def __init__(self, calls: Calls, context: BrowserContext, page: Page, session: CDPSession) -> None:
        self._calls = calls
        self._context = context
        self._page = page
        self._session = session
        self._network = NetworkLog()
        self._frames: list[tuple[float, bytes]] = []
        self._filming = False
        self._started_ns = 0
        self._url = ""
        self._arrived = False
        self._crashed = asyncio.Event()
        page.on("crash", lambda _: self._crashed.set())

    async def prepare(self) -> None:
        """Listen to what the tab does."""
        for event in self._network.handlers():
            self._session.on(f"Network.{event}", lambda params, event=event: self._network.handlers()[event](params))
        self._session.on("Page.screencastFrame", self._frame)
        await self._calls.alive(self._session.send("Network.enable"))
        await self._calls.alive(self._session.send("Performance.enable", {"timeDomain": "timeTicks"}))

    async def navigate(self, url: str, *, frames: bool = False) -> None:
        """Go there, until the load event."""
        from playwright.async_api import Error

        self._network = NetworkLog()
        self._frames, self._filming, self._url, self._arrived = [], frames, url, False
        if frames:
            await self._calls.alive(self._session.send("Page.startScreencast", _FRAME))
        self._started_ns = time.monotonic_ns()
        going = asyncio.ensure_future(self._calls.alive(self._page.goto(url, wait_until="load", timeout=0)))
        crashing = asyncio.ensure_future(self._crashed.wait())
        try:
            await asyncio.wait({going, crashing}, return_when=asyncio.FIRST_COMPLETED)
            if self._crashed.is_set():
                raise VisitFailed(CRASHED, "the tab's process ended")
            response = going.result()
        except Error as error:
            words = " ".join(error.message.split())[:500]
            if error_class(words) == "status":  # Chromium shows a page of its own, which ends scripts when it comes
                with suppress(Error):
                    await self._page.wait_for_url(lambda at: at.startswith("chrome-error:"), timeout=_ERROR_PAGE_MS)
            raise VisitFailed(error_class(words), words) from error
        finally:
            for each in (going, crashing):
                each.cancel()
            await asyncio.gather(going, crashing, return_exceptions=True)
        self._arrived = True
        if response is not None and response.status >= 400:
            raise VisitFailed("status", f"the page was answered {response.status}")

    def _frame(self, event: dict[str, Any]) -> None:
        self._frames.append((event["metadata"]["timestamp"], base64.b64decode(event["data"])))
        acknowledged = self._session.send("Page.screencastFrameAck", {"sessionId": event["sessionId"]})
        task = asyncio.ensure_future(acknowledged)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def evaluate(self, expression: str) -> Any:
        """In the page's main world."""
        from playwright.async_api import Error

        try:
            return await self._calls.alive(self._page.evaluate(expression))
        except Error as error:
            words = " ".join(error.message.split())[:500]
            raise VisitFailed(CRASHED if self._crashed.is_set() else "browser:script", words) from error

    async def collect(self) -> Recording:
        """Everything since the navigation began."""
        from playwright.async_api import Error

        offset_ns = time.time_ns() - time.monotonic_ns()
        visit = Visit(self._started_ns, self._url)
        with suppress(Error):
            if self._filming and not self._crashed.is_set():
                await self._calls.alive(self._session.send("Page.stopScreencast"))
            if self._arrived and not self._crashed.is_set():
                metrics = await self._calls.alive(self._session.send("Performance.getMetrics"))
                metric_values = {each["name"]: each["value"] for each in metrics["metrics"]}
                times = await self._calls.alive(self._page.evaluate(PAGE_TIMES))
                take_page_times(visit, times, round(metric_values["NavigationStart"] * 1e9))
        network, self._network = self._network, NetworkLog()
        if self._calls.net_log is not None:
            self._calls.net_log.read()
            self._calls.net_log.tell(network.fetches)
        self._calls.strays += sum(fetch.error == NO_NAME for fetch in network.fetches)
        frames = [(round(at * 1e9) - offset_ns - visit.started_ns, picture) for at, picture in self._frames]
        self._frames = []
        return Recording(visit, network.fetches, frames)

    async def close_connections(self) -> None:
        """As the button "Flush socket pools" of chrome://net-internals does, in the context of this view."""
        page = await self._calls.alive(self._context.new_page())
        await self._calls.alive(page.goto("chrome://net-internals/#sockets"))
        await self._calls.alive(page.evaluate("chrome.send('flushSocketPools')"))
        await asyncio.sleep(0.1)
        await self._calls.alive(page.close())

    async def close(self) -> None:
        """With its context."""
        await self._calls.alive(self._context.close())
