"""Firefox, by WebDriver BiDi and without geckodriver. What it tells and what not: docs/browsers.md."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from trifecta.contract.common import Declared
from trifecta.design.errors import CannotError
from trifecta.implementations.browser import (
    CRASHED,
    BrowserAdapter,
    BrowserFailed,
    Job,
    RunningBrowser,
    extra_there,
)
from trifecta.implementations.browsers import firefox_profile
from trifecta.implementations.browsers.bidi import Bidi, BidiClosedError, BidiError
from trifecta.implementations.browsers.firefox_view import RunningFirefox
from trifecta.implementations.server import Unsupported
from trifecta.lab.private_files import cover_names

PROGRAMS = ("firefox-esr", "firefox")
OLDEST = 142  # the first whose BiDi reaches the browser's own window


class Firefox(BrowserAdapter):
    """Mozilla's Firefox."""

    name = "firefox"
    source = "https://www.mozilla.org/firefox; apt install firefox-esr libnss3-tools"

    def find(self) -> str:
        """As :meth:`BrowserAdapter.find`."""
        extra_there()
        program = self._program()
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30, check=False)
        version = done.stdout.strip().rpartition(" ")[2]
        major = version.partition(".")[0]
        if not major.isdigit():
            raise Unsupported(f"{program} --version says no version: {(done.stdout + done.stderr).strip()[:200]!r}")
        if int(major) < OLDEST:
            raise Unsupported(f"Firefox {version} is too old, {OLDEST} or newer is needed: {self.source}")
        if shutil.which("certutil") is None:
            raise Unsupported("certutil is missing, which gives Firefox the lab's authority: apt install libnss3-tools")
        return version

    def declared(self) -> Declared:
        """As :meth:`BrowserAdapter.declared`."""
        return {
            "tls_library": "NSS",
            "quic_library": "neqo",
            "congestion_control": {"tcp": "the kernel's", "quic": "cubic"},  # network.http.http3.cc_algorithm
        }

    async def launch(self, job: Job) -> RunningBrowser:
        """As :meth:`BrowserAdapter.launch`."""
        program = self._program()
        if job.elsewhere is not None:
            try:
                cover_names()  # those of the page are told to Firefox itself
            except CannotError as error:
                raise Unsupported(str(error)) from error
        profile = await asyncio.to_thread(firefox_profile.make_profile, job)
        with (job.state / "firefox.log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                program,
                "--headless",
                "--no-remote",
                "--profile",
                str(profile),
                "--remote-debugging-port=0",
                "--remote-allow-system-access",
                "about:blank",
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=firefox_profile.environment(job),
            )
        try:
            session = await Bidi.connect(await _address(process, profile, job.state / "firefox.log"))
            windows = await session.command("browsingContext.getTree", {"moz:scope": "chrome", "maxDepth": 0})
            version = str((await session.command("session.status")).get("version", "")) or self.find()
            running = RunningFirefox(process, session, str(windows["contexts"][0]["context"]), version, job)
            await running.prepare()
        except (BidiClosedError, BidiError) as error:
            raise BrowserFailed(CRASHED, f"it does not do what is asked: {error}") from None
        return running

    def _program(self) -> str:
        decision = next((path for path in map(shutil.which, PROGRAMS) if path), None)
        if decision is None:
            raise Unsupported(f"Firefox is missing: {self.source}")
        head = b""
        with suppress(OSError), Path(decision).open("rb") as file:
            head = file.read(4096)
        if b"/snap/" in head or "/snap/" in str(Path(decision).resolve()):
            raise Unsupported(f"{decision} is a snap, which cannot run inside the lab: install Mozilla's own package")
        return decision


async def _address(process: asyncio.subprocess.Process, profile: Path, log: Path) -> str:
    """Where BiDi listens: Firefox writes it to a file of its profile."""
    file = profile / "WebDriverBiDiServer.json"
    while True:
        with suppress(OSError, ValueError, KeyError, TypeError):
            address = json.loads(file.read_text(encoding="utf-8"))
            return f"ws://{address['ws_host']}:{int(address['ws_port'])}/session"
        if process.returncode is not None:
            words = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise BrowserFailed(CRASHED, f"it ended with {process.returncode}: {' | '.join(words[-3:])[:500]}")
        await asyncio.sleep(0.02)
