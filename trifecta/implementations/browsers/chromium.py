"""Chromium of the distribution, driven over the Chrome DevTools Protocol by Playwright (docs/browsers.md)."""

from __future__ import annotations

import re
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from trifecta.contract.common import Declared
from trifecta.design import extras
from trifecta.design.errors import CannotError
from trifecta.implementations.browser import (
    CRASHED,
    BrowserAdapter,
    BrowserFailed,
    Job,
    RunningBrowser,
    View,
    extra_there,
)
from trifecta.implementations.browsers import chromium_flags
from trifecta.implementations.browsers.chromium_calls import Calls
from trifecta.implementations.browsers.chromium_view import ChromiumView
from trifecta.implementations.browsers.net_log import NetLog
from trifecta.implementations.server import Unsupported

if TYPE_CHECKING:
    from playwright.async_api import Browser, Playwright

_COMMANDS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
_VERSION = re.compile(r"(?:Chromium|Chrome) (\d+(?:\.\d+)+)")


class Chromium(BrowserAdapter):
    """Chromium, or Chrome where that is installed."""

    name = "chromium"
    source = "Debian package chromium, with certutil of libnss3-tools"

    def find(self) -> str:
        """Its version, as it says itself."""
        extra_there()
        if shutil.which("certutil") is None:
            raise Unsupported("certutil is not installed; run: sudo apt-get install -y libnss3-tools")
        program = _program()
        try:
            output = subprocess.run(
                [program, "--version"], capture_output=True, text=True, check=False, timeout=20,
                stdin=subprocess.DEVNULL,
            ).stdout  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unsupported(f"{program} cannot be run ({error}); install it again") from error
        match = _VERSION.search(output)
        if match is None:
            raise Unsupported(f"{program} --version says no version: {output.strip()[:100]!r}")
        return match[1]

    def declared(self) -> Declared:
        """What Chromium's source says."""
        return {"tls_library": "BoringSSL", "congestion_control": {"tcp": "the kernel's", "quic": "cubic"}}

    def load(self) -> None:
        """Playwright."""
        try:
            extras.load("playwright.async_api")
        except CannotError as error:
            raise Unsupported(str(error)) from error

    async def launch(self, job: Job) -> RunningBrowser:
        """Start it through Playwright, with flags that are all our own."""
        from playwright.async_api import Error, async_playwright

        program = _program()
        environment = chromium_flags.home(job)
        net_log = chromium_flags.net_log_file(job)
        driver = await async_playwright().start()
        try:
            browser = await driver.chromium.launch(
                executable_path=program,
                ignore_default_args=True,
                args=[
                    *chromium_flags.flags(job, net_log=net_log),
                    f"--user-data-dir={job.state / 'profile'}",
                    "about:blank",
                ],
                env=dict(environment),
                timeout=0,
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
            )
        except Error as error:
            raise BrowserFailed(CRASHED, _words(error.message)) from error
        return await RunningChromium.of(driver, browser, job, None if net_log is None else NetLog(net_log))


def _words(message: str) -> str:
    """What Playwright says of a browser that did not start, without the command line, on one line."""
    lines = (line.strip() for line in message.splitlines())
    return " ".join(line for line in lines if line and not line.startswith(("<launch", "Call log", "- <launch")))[:1500]


def _program() -> str:
    for command in _COMMANDS:
        path = shutil.which(command)
        if path:
            return path
    raise Unsupported("chromium is not installed; run: sudo apt-get install -y chromium libnss3-tools")


class RunningChromium(RunningBrowser):
    """A Chromium whose views are browser contexts: profiles in memory that share the processes and nothing else."""

    def __init__(self, driver: Playwright, browser: Browser, job: Job, net_log: NetLog | None) -> None:
        self._driver = driver
        self._browser = browser
        self._job = job
        self._calls = Calls(browser, net_log)
        self._agent: str | None = None
        """What is said in the place of Chromium's own user agent; None: that."""
        self.version = browser.version

    @classmethod
    async def of(cls, driver: Playwright, browser: Browser, job: Job, net_log: NetLog | None) -> RunningChromium:
        """Find out which processes are the browser's."""
        running = cls(driver, browser, job, net_log)
        session = await browser.new_browser_cdp_session()
        info = await session.send("SystemInfo.getProcessInfo")
        if job.elsewhere is not None:
            own = await session.send("Browser.getVersion")
            running._agent = f"{own['userAgent']} {job.elsewhere.agent}"
        await session.detach()
        running.pid = next(int(each["id"]) for each in info["processInfo"] if each["type"] == "browser")
        running.helpers = frozenset({_parent_of(running.pid)})
        return running

    async def open(self) -> View:
        """A browser context of its own with one tab."""
        width, height = self._job.viewport
        # Requests of workers are not seen, and nobody is to be asked uncounted.
        workers: Literal["allow", "block"] = "allow" if self._job.elsewhere is None else "block"
        context = await self._calls.alive(
            self._browser.new_context(
                viewport={"width": width, "height": height}, service_workers=workers, user_agent=self._agent
            )
        )
        page = await self._calls.alive(context.new_page())
        session = await self._calls.alive(context.new_cdp_session(page))
        view = ChromiumView(self._calls, context, page, session)
        await view.prepare()
        return view

    def stray_lookups(self) -> int:
        """What pages asked for elsewhere: a rule answers that there is no such name, so that nobody is asked."""
        return self._calls.strays

    async def close(self) -> None:
        """Close the browser, then Playwright."""
        await self._browser.close()
        with suppress(Exception):
            await self._driver.stop()


def _parent_of(pid: int) -> int:
    after_name = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return int(after_name[1])
