"""A Firefox that runs, and its tabs."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from contextlib import suppress
from typing import Any

from trifecta.contract.errors import ErrorClass
from trifecta.design.model import Protocol
from trifecta.implementations.browser import (
    CRASHED,
    HUNG,
    BrowserFailed,
    Job,
    Recording,
    RunningBrowser,
    View,
    VisitFailed,
)
from trifecta.implementations.browsers import firefox_fetches, firefox_profile, firefox_scripts
from trifecta.implementations.browsers.bidi import Bidi, BidiClosedError, BidiError, Params
from trifecta.implementations.browsers.page_times import PAGE_TIMES, take_page_times
from trifecta.implementations.visit import Visit

FILM_RATE, FILM_WIDTH = 10, 400
CONNECT_TIMEOUT_S = 10.0  # as that of the engine's load
ALPN = {"h1": "http/1.1", "h2": "h2", "h3": "h3"}
NUDGE_PATH = "/.well-known/trifecta-warm"  # as ``worker.WARM_PATH``
TICKETS_AT_MOST_S = 5.0
CLOCK_SLIP_NS = 1_000_000
STATUS_FAILED = 400


class FirefoxView(View):
    """A tab in a user context of its own: Firefox keeps caches, connections, tickets, names and cookies by context."""

    def __init__(self, browser: RunningFirefox, user_context: str, number: int, tab: str) -> None:
        """``number``: the context's name inside Firefox."""
        self._browser = browser
        self._user_context = user_context
        self._number = number
        self._tab = tab
        self._url = ""
        self._asked_ns = 0
        self._wall_ns = 0
        self._handshake_ns = 0
        self._filming = False
        self._requests: list[firefox_fetches.Request] = []

    async def navigate(self, url: str, *, frames: bool = False) -> None:
        """As :meth:`View.navigate`."""
        await self._take()
        self._requests = []
        if frames:
            await self._browser.call(firefox_scripts.FILM_START, FILM_RATE)
            self._filming = True
        self._url = url
        self._wall_ns = wall_ns()
        self._asked_ns = time.monotonic_ns()
        refused = ""
        try:
            await self._go()
        except BidiError as error:
            refused = error.message
        await self._take()
        if (lost := await self._browser.lost()) is not None:
            raise VisitFailed(lost, "the process of the tab crashed")
        # Of a redirected page the last request counts.
        page = next((each for each in reversed(self._requests) if each.get("main")), None)
        if page is not None:
            failed = firefox_fetches.error_of(page, self._browser.protocol)
            if failed is not None:
                other = f"it came over {page.get('protocol')}" if page.get("refused") else None
                raise VisitFailed(failed, other or page.get("tls_error") or page.get("error") or failed)
        if refused:
            raise VisitFailed("browser:other", refused)
        if page is None:
            raise VisitFailed("browser:other", "there was no request for it")
        if (page.get("status") or 0) >= STATUS_FAILED:
            raise VisitFailed("status", f"status {page['status']}")

    async def _go(self) -> None:
        """Navigate; VisitFailed when the request for the page is not sent within CONNECT_TIMEOUT_S."""
        loading = asyncio.ensure_future(
            self._browser.command(
                "browsingContext.navigate", {"context": self._tab, "url": self._url, "wait": "complete"}
            )
        )
        try:
            done, _ = await asyncio.wait({loading}, timeout=CONNECT_TIMEOUT_S)
            if not done and not await self._browser.call(firefox_scripts.CONNECTED, self._number):
                raise VisitFailed(
                    "quic:timeout" if self._browser.protocol == "h3" else "connect_timeout",
                    f"no connection within {CONNECT_TIMEOUT_S:g} s",
                )
            await loading
        finally:
            loading.cancel()
            with suppress(asyncio.CancelledError, BidiError, BrowserFailed):
                await loading

    async def evaluate(self, expression: str) -> Any:
        """As :meth:`View.evaluate`."""
        try:
            result = await self._browser.command(
                "script.evaluate",
                {
                    "expression": f"(async () => JSON.stringify(await ({expression})) ?? 'null')()",
                    "awaitPromise": True,
                    "userActivation": True,
                    "target": {"context": self._tab},
                },
            )
        except BidiError as error:
            raise VisitFailed(await self._browser.lost() or "browser:script", str(error)) from None
        if result.get("type") != "success":
            raise VisitFailed("browser:script", str(result.get("exceptionDetails", {}).get("text", "")))
        return json.loads(result["result"]["value"])

    async def collect(self) -> Recording:
        """As :meth:`View.collect`."""
        frames: list[list[Any]] = []
        if self._filming:
            frames = await self._browser.call(firefox_scripts.FILM_STOP, FILM_WIDTH)
            self._filming = False
        visit = Visit(self._asked_ns, self._url)
        decoded: list[list[Any]] = []
        # A page of which nothing came has no times: there Firefox shows one of its own.
        with suppress(VisitFailed):
            if await self.evaluate("document.documentURI.startsWith('http')"):
                times = await self.evaluate(PAGE_TIMES)
                take_page_times(visit, times, round(times["origin"] * 1e6) - self._wall_ns)
                decoded = await self.evaluate(firefox_scripts.DECODED)
        await self._take()
        slipped_ns = abs(wall_ns() - self._wall_ns)
        if slipped_ns > CLOCK_SLIP_NS:
            raise BrowserFailed("browser:clock", f"the wall clock was set by {slipped_ns / 1e6:.3g} ms meanwhile")
        own = [each for each in self._requests if each.get("context") == self._number]
        self._browser.strays += sum(each.get("host") not in self._browser.hosts for each in self._requests)
        fetches = firefox_fetches.fetches(
            own,
            decoded,
            wall_ns=self._wall_ns,
            protocol=self._browser.protocol,
            now_ns=self._asked_ns,
        )
        self._handshake_ns = max(
            (each.secured_ns - each.connect_start_ns for each in fetches if each.secured_ns and each.connect_start_ns),
            default=0,
        )
        return Recording(
            visit,
            fetches,
            [(round(at * 1e6) - self._wall_ns - visit.started_ns, base64.b64decode(jpeg)) for at, jpeg in frames],
        )

    async def close_connections(self) -> None:
        """As :meth:`View.close_connections`, once session tickets of HTTP/3 are there.

        neqo keeps a ticket back for three probe timeouts, in case a NEW_TOKEN frame comes for it, and hands it over
        with the next packet. Before the first measurements of the path settle, that is three times three round trips
        and the delay of an acknowledgement (RFC 9002, sections 5.3 and 6.2.1); a handshake takes one round trip and
        more. The page of a quick visit may have ended by then: one small request more goes to each host.
        """
        if self._browser.protocol == "h3":
            await asyncio.sleep(min(TICKETS_AT_MOST_S, 0.2 + 9 * self._handshake_ns / 1e9))
            urls = [f"https://{host}:{self._browser.port}{NUDGE_PATH}" for host in sorted(self._browser.hosts)]
            script = f"""Promise.allSettled({json.dumps(urls)}.map((url) =>
                fetch(url, {{mode: "no-cors", cache: "no-store", credentials: "include"}}))).then(() => null)"""
            with suppress(VisitFailed):
                await self.evaluate(script)
            await self._take()
        await self._browser.call(firefox_scripts.CLOSE_CONNECTIONS)

    async def close(self) -> None:
        """As :meth:`View.close`."""
        with suppress(BidiError):
            await self._browser.command("browsingContext.close", {"context": self._tab})
        await self._browser.command("browser.removeUserContext", {"userContext": self._user_context})

    async def _take(self) -> None:
        self._requests += await self._browser.call(firefox_scripts.TAKE)


class RunningFirefox(RunningBrowser):
    """A Firefox that runs, and its session."""

    def __init__(self, process: asyncio.subprocess.Process, session: Bidi, window: str, version: str, job: Job) -> None:
        """``window``: the browser's own window, where its scripts are called."""
        self._job = job
        self.pid = process.pid
        self.version = version
        self.session = session
        self.strays = 0
        self.protocol: Protocol = "h1"
        self.hosts: frozenset[str] = frozenset()
        self.port = 443
        self._viewport = (0, 0)
        self._crashes = 0
        self._process = process
        self._window = window

    async def prepare(self) -> None:
        """Watch the requests from here on."""
        job = self._job
        self.protocol = job.protocol
        self.hosts = frozenset(job.hosts)
        self.port = job.port
        self._viewport = job.viewport
        for host, address in job.addresses.items():
            await self.call(firefox_scripts.NAME, host, address)
        if job.elsewhere is not None:
            await self.call(firefox_scripts.AGENT, job.elsewhere.agent)
        if job.protocol == "h3" and job.discovery == "forced":
            for host in job.own_hosts:
                if not await self.call(firefox_scripts.FORCED, f"https://{host}:{job.port}/"):
                    raise BrowserFailed(HUNG, f"it does not take HTTP/3 for {host} as told")
        forced = ALPN[job.protocol] if job.discovery == "forced" else ""
        await self.call(firefox_scripts.WATCH, forced, " ".join(job.third_parties))

    async def open(self) -> View:
        """As :meth:`RunningBrowser.open`."""
        created = await self.command("browser.createUserContext")
        context = str(created["userContext"])
        tab = str((await self.command("browsingContext.create", {"type": "tab", "userContext": context}))["context"])
        width, height = self._viewport
        await self.command(
            "browsingContext.setViewport", {"context": tab, "viewport": {"width": width, "height": height}}
        )
        return FirefoxView(self, context, await self.call(firefox_scripts.INTERNAL_ID, context), tab)

    async def close(self) -> None:
        """As :meth:`RunningBrowser.close`."""
        try:
            with suppress(BidiClosedError, BidiError):
                await self.session.command("browser.close")
            await self._process.wait()
            await self.session.close()
        finally:  # also where it does not end: then the last events are missing
            firefox_profile.keep_qlogs(self._job)

    def stray_lookups(self) -> int | None:
        """Requests for names outside of the page's hosts: each would have been looked up."""
        return self.strays

    async def command(self, method: str, params: Params | None = None) -> Params:
        """A command; BrowserFailed when Firefox is gone."""
        try:
            return await self.session.command(method, params)
        except BidiClosedError as error:
            raise BrowserFailed(CRASHED, str(error)) from None

    async def lost(self) -> ErrorClass | None:
        """CRASHED when a process of the tab has crashed since this was asked last."""
        crashes = int(await self.call(firefox_scripts.CRASHES))
        new, self._crashes = crashes > self._crashes, crashes
        return CRASHED if new else None

    async def call(self, function: str, *arguments: str | float) -> Any:
        """Call a script of ``firefox_scripts`` in the browser's own window."""
        try:
            return await self.session.call(self._window, function, *arguments)
        except (BidiClosedError, BidiError) as error:
            raise BrowserFailed(CRASHED, str(error)) from None


def wall_ns() -> int:
    """What CLOCK_REALTIME is ahead of CLOCK_MONOTONIC: Firefox tells times as microseconds since 1970."""
    before_ns = time.monotonic_ns()
    now_ns = time.time_ns()
    return now_ns - (before_ns + time.monotonic_ns()) // 2
