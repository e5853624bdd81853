"""A browser that loads a site through the recording proxy, and remembers what the page asked for."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from trifecta.design import extras
from trifecta.design.errors import CannotError

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Request

VIEWPORT = (1350, 940)  # that of measured visits: what is loaded may depend on it
_QUIET_NS, _SILENT_NS, _SCREENS, _TICK_MS = 500_000_000, 5_000_000_000, 30, 100
_COMMANDS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = (
    "--disable-quic",
    "--proxy-bypass-list=<-loopback>",
    "--disable-features=Translate,OptimizationHints,MediaRouter",
)


@dataclass
class Load:
    """What a page asked for, and how it ended."""

    url: str
    """Where it was when it was loaded: redirects were followed."""
    title: str = ""
    asked: dict[tuple[str, str], str] = field(default_factory=dict)
    """(method, URL) -> what for, in Chromium's words."""
    websockets: list[str] = field(default_factory=list)
    problem: str | None = None
    """Why the load event did not come."""


@contextmanager
def browsing(proxy_port: int, temporary: Path) -> Iterator[Browser]:
    """A headless Chromium behind the proxy on loopback; its profile and all its files are in ``temporary``."""
    extras.load("playwright.sync_api")
    from playwright.sync_api import Error, sync_playwright

    decision = next(filter(None, map(shutil.which, _COMMANDS)), None)
    if decision is None:
        raise CannotError("recording a URL needs Chromium; run: sudo apt-get install -y chromium")
    flags = [*_FLAGS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]  # its sandbox does not work for root
    with _temporary_files_in(temporary), sync_playwright() as driver:
        try:
            browser = driver.chromium.launch(
                executable_path=decision, proxy={"server": f"http://127.0.0.1:{proxy_port}"}, args=flags
            )
        except Error as error:
            raise CannotError(f"{decision} does not start: {' '.join(str(error).split())[:300]}") from error
        try:
            yield browser
        finally:
            with suppress(Error):
                browser.close()


@contextmanager
def _temporary_files_in(folder: Path) -> Iterator[None]:
    """For child processes: Playwright's driver takes the folder of the profile from its environment."""
    before = os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = before


def load(browser: Browser, url: str, *, timeout_ns: int, settle_ns: int) -> Load:
    """Load ``url`` as nobody who was there before, scroll to its end so that lazy pictures come, and wait for quiet."""
    from playwright.sync_api import Error

    # The proxy verifies the certificates of the servers; its own are for this browser only, which trusts it alone.
    context = browser.new_context(
        ignore_https_errors=True, viewport={"width": VIEWPORT[0], "height": VIEWPORT[1]}, service_workers="allow"
    )
    page_load, pending, last = Load(url), set(), time.monotonic_ns()
    end = last + timeout_ns

    def begun(request: Request) -> None:
        nonlocal last
        page_load.asked.setdefault((request.method, request.url), request.resource_type)
        pending.add(request)
        last = time.monotonic_ns()

    def ended(request: Request) -> None:
        nonlocal last
        pending.discard(request)
        last = time.monotonic_ns()

    context.on("request", begun)
    context.on("requestfinished", ended)
    context.on("requestfailed", ended)
    page = context.new_page()
    page.on("websocket", lambda socket: page_load.websockets.append(socket.url))

    def quiet(least_ns: int) -> None:
        since = time.monotonic_ns()
        while time.monotonic_ns() < end:
            now = time.monotonic_ns()
            # What is open and silent for long is a stream or a long poll, and may never end.
            if now - since >= least_ns and now - last >= (_SILENT_NS if pending else _QUIET_NS):
                return
            page.wait_for_timeout(_TICK_MS)

    try:
        page.goto(url, wait_until="load", timeout=max(1.0, timeout_ns / 1e6))
    except Error as error:
        page_load.problem = " ".join(str(error).split("Call log")[0].split())[:300]
    try:
        quiet(settle_ns)
        for _ in range(_SCREENS):
            if page.evaluate(
                "scrollBy(0, innerHeight), scrollY + innerHeight >= document.documentElement.scrollHeight"
            ):
                break
            page.wait_for_timeout(_TICK_MS)
        quiet(_QUIET_NS)
        page_load.url, page_load.title = page.url, page.title()
    except Error as error:
        page_load.problem = page_load.problem or " ".join(str(error).split("Call log")[0].split())[:300]
    with suppress(Error):
        context.close()
    return page_load
