"""Chromium of the distribution, driven over the Chrome DevTools Protocol by Playwright (docs/browsers.md)."""

from __future__ import annotations

import asyncio
import base64
import re
import shutil
import subprocess
import time
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from trifecta.implementations.browsers import chromium_flags
from trifecta.implementations.browsers.browser import (
    CRASHED,
    BrowserAdapter,
    BrowserFailed,
    Errand,
    Recording,
    RunningBrowser,
    View,
    VisitFailed,
)
from trifecta.implementations.browsers.cdp_errors import error_class
from trifecta.implementations.browsers.cdp_network import NetworkLog
from trifecta.implementations.browsers.net_log import NetLog
from trifecta.implementations.browsers.page_times import PAGE_TIMES, take_page_times
from trifecta.implementations.browsers.records import Visit
from trifecta.implementations.server import Unsupported

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, CDPSession, Page, Playwright

Value = TypeVar("Value")
_COMMANDS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
_VERSION = re.compile(r"(?:Chromium|Chrome) (\d+(?:\.\d+)+)")
_FRAME = {"format": "jpeg", "quality": 40, "maxWidth": 400, "maxHeight": 400, "everyNthFrame": 1}


class Chromium(BrowserAdapter):
    """Chromium, or Chrome where that is installed."""

    name = "chromium"
    source = "Debian package chromium, with certutil of libnss3-tools"

    def find(self) -> str:
        """Its version, as it says itself."""
        if shutil.which("certutil") is None:
            raise Unsupported("certutil is not installed; run: sudo apt-get install -y libnss3-tools")
        program = _program()
        try:
            said = subprocess.run(
                [program, "--version"], capture_output=True, text=True, check=False, timeout=20,
                stdin=subprocess.DEVNULL,
            ).stdout  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unsupported(f"{program} cannot be run ({error}); install it again") from error
        found = _VERSION.search(said)
        if found is None:
            raise Unsupported(f"{program} --version says no version: {said.strip()[:100]!r}")
        return found[1]

    def declared(self) -> dict[str, Any]:
        """What Chromium's source says."""
        return {"tls_library": "BoringSSL", "congestion_control": {"tcp": "the kernel's", "quic": "cubic"}}

    def load(self) -> None:
        """Playwright."""
        try:
            import playwright.async_api  # noqa: F401
        except ImportError as error:
            raise Unsupported(f"Playwright is not installed ({error}); run: make setup") from error

    async def launch(self, errand: Errand) -> RunningBrowser:
        """Start it through Playwright, with flags that are all our own."""
        from playwright.async_api import Error, async_playwright

        program = _program()
        environment = chromium_flags.home(errand)
        net_log = chromium_flags.net_log_file(errand)
        driver = await async_playwright().start()
        try:
            browser = await driver.chromium.launch(
                executable_path=program,
                ignore_default_args=True,
                args=[
                    *chromium_flags.flags(errand, net_log=net_log),
                    f"--user-data-dir={errand.state / 'profile'}",
                    "about:blank",
                ],
                env=dict(environment),
                timeout=0,
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
            )
        except Error as error:
            raise BrowserFailed(CRASHED, " ".join(str(error).split())[:1500]) from error
        return await RunningChromium.of(driver, browser, errand, None if net_log is None else NetLog(net_log))


def _program() -> str:
    for command in _COMMANDS:
        found = shutil.which(command)
        if found:
            return found
    raise Unsupported("chromium is not installed; run: sudo apt-get install -y chromium libnss3-tools")


class RunningChromium(RunningBrowser):
    """A Chromium whose views are browser contexts: profiles in memory that share the processes and nothing else."""

    def __init__(self, driver: Playwright, browser: Browser, errand: Errand, net_log: NetLog | None) -> None:
        self._driver = driver
        self._browser = browser
        self._errand = errand
        self.net_log = net_log
        self.version = browser.version
        self._gone = asyncio.Event()
        browser.on("disconnected", lambda _: self._gone.set())

    @classmethod
    async def of(cls, driver: Playwright, browser: Browser, errand: Errand, net_log: NetLog | None) -> RunningChromium:
        """Find out which processes are the browser's."""
        running = cls(driver, browser, errand, net_log)
        session = await browser.new_browser_cdp_session()
        info = await session.send("SystemInfo.getProcessInfo")
        await session.detach()
        running.pid = next(int(each["id"]) for each in info["processInfo"] if each["type"] == "browser")
        running.helpers = frozenset({_parent_of(running.pid)})
        return running

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

    async def open(self) -> View:
        """A browser context of its own with one tab."""
        width, height = self._errand.viewport
        context = await self.alive(
            self._browser.new_context(viewport={"width": width, "height": height}, service_workers="allow")
        )
        page = await self.alive(context.new_page())
        session = await self.alive(context.new_cdp_session(page))
        view = ChromiumView(self, context, page, session)
        await view.prepare()
        return view

    async def close(self) -> None:
        """Close the browser, then Playwright."""
        await self._browser.close()
        with suppress(Exception):
            await self._driver.stop()


def _parent_of(pid: int) -> int:
    after_name = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return int(after_name[1])


class ChromiumView(View):
    """A tab in a context of its own."""

    def __init__(self, browser: RunningChromium, context: BrowserContext, page: Page, session: CDPSession) -> None:
        self._browser = browser
        self._context = context
        self._page = page
        self._session = session
        self._network = NetworkLog()
        self._frames: list[tuple[float, bytes]] = []
        self._filming = False
        self._started_ns = 0
        self._url = ""
        self._arrived = False

    async def prepare(self) -> None:
        """Listen to what the tab does."""
        for event in self._network.handlers():
            self._session.on(f"Network.{event}", lambda said, event=event: self._network.handlers()[event](said))
        self._session.on("Page.screencastFrame", self._frame)
        await self._browser.alive(self._session.send("Network.enable"))
        await self._browser.alive(self._session.send("Performance.enable", {"timeDomain": "timeTicks"}))

    async def navigate(self, url: str, *, frames: bool = False) -> None:
        """Go there, until the load event."""
        from playwright.async_api import Error

        self._network = NetworkLog()
        self._frames, self._filming, self._url, self._arrived = [], frames, url, False
        if frames:
            await self._browser.alive(self._session.send("Page.startScreencast", _FRAME))
        self._started_ns = time.monotonic_ns()
        try:
            response = await self._browser.alive(self._page.goto(url, wait_until="load", timeout=0))
        except Error as error:
            words = " ".join(error.message.split())[:500]
            raise VisitFailed(CRASHED if "crash" in words.lower() else error_class(words), words) from error
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
            return await self._browser.alive(self._page.evaluate(expression))
        except Error as error:
            words = " ".join(error.message.split())[:500]
            raise VisitFailed(CRASHED if "crash" in words.lower() else "browser:script", words) from error

    async def collect(self) -> Recording:
        """Everything since the navigation began."""
        from playwright.async_api import Error

        offset_ns = time.time_ns() - time.monotonic_ns()
        visit = Visit(self._started_ns, self._url)
        with suppress(Error):
            if self._filming:
                await self._browser.alive(self._session.send("Page.stopScreencast"))
            if self._arrived:
                metrics = await self._browser.alive(self._session.send("Performance.getMetrics"))
                told = {each["name"]: each["value"] for each in metrics["metrics"]}
                times = await self._browser.alive(self._page.evaluate(PAGE_TIMES))
                take_page_times(visit, times, round(told["NavigationStart"] * 1e9))
        network, self._network = self._network, NetworkLog()
        if self._browser.net_log is not None:
            self._browser.net_log.read()
            self._browser.net_log.tell(network.fetches)
        frames = [(round(at * 1e9) - offset_ns - visit.started_ns, picture) for at, picture in self._frames]
        self._frames = []
        return Recording(visit, network.fetches, frames)

    async def close_connections(self) -> None:
        """As the button "Flush socket pools" of chrome://net-internals does, in the context of this view."""
        page = await self._browser.alive(self._context.new_page())
        await self._browser.alive(page.goto("chrome://net-internals/#sockets"))
        await self._browser.alive(page.evaluate("chrome.send('flushSocketPools')"))
        await asyncio.sleep(0.1)
        await self._browser.alive(page.close())

    async def close(self) -> None:
        """With its context."""
        await self._browser.alive(self._context.close())
