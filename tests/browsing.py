"""What tests in browsers share."""

from __future__ import annotations

import shlex
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

CHROMIUM, FIREFOX = shutil.which("chromium"), shutil.which("firefox-esr") or shutil.which("firefox")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs the distribution's chromium")
needs_firefox = pytest.mark.skipif(FIREFOX is None, reason="needs the distribution's firefox")
BETWEEN = Path(__file__).with_name("firefox_for_playwright.py")
PATIENCE_MS = 120_000
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 420, "height": 800}


IN_CHROMIUM = pytest.param("chromium", marks=needs_chromium)
in_both = pytest.mark.parametrize(
    "browser", [IN_CHROMIUM, pytest.param("firefox", marks=needs_firefox)], indirect=True, scope="module"
)
"""For a test that asks both browsers in `make test`: Firefox takes three times as long, so the rest of it is long."""


@contextmanager
def launched(name: str, folder: Path) -> Iterator[Any]:
    """``chromium`` or ``firefox``, driven by Playwright; ``folder`` is for what starts it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        if name == "chromium":
            made = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        else:
            program = folder / "firefox"
            program.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, str(BETWEEN), str(FIREFOX)])} "$@"\n')
            program.chmod(0o755)
            made = playwright.firefox.launch(
                channel="moz-firefox", executable_path=program, args=["--remote-allow-system-access"]
            )
        yield made
        made.close()


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with launched("chromium", tmp_path_factory.mktemp("chromium")) as made:
        yield made


@pytest.fixture(scope="module", params=[IN_CHROMIUM, pytest.param("firefox", marks=[needs_firefox, pytest.mark.long])])
def browser(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Each of the two that a person may have."""
    with launched(request.param, tmp_path_factory.mktemp(request.param)) as made:
        yield made


def until(page: Any, script: str, within_s: float = 60) -> None:
    """Wait for what a script says; the page's policy lets no text become a program, so it is asked from here."""
    end = time.monotonic() + within_s
    while not page.evaluate(script):
        assert time.monotonic() < end, script
        time.sleep(0.05)


def complaints_of(page: Any) -> list[str]:
    """What a page complains of from now on."""
    found: list[str] = []
    page.on("console", lambda one: found.append(one.text) if one.type in ("error", "warning") else None)
    page.on("pageerror", lambda one: found.append(str(one)))
    return found


def until_open(port: int, runs: Callable[[], bool], within_s: float = 60) -> None:
    """Wait for a server that runs to listen on a port of this machine."""
    end = time.monotonic() + within_s
    while True:
        assert runs() and time.monotonic() < end, f"nobody listens on port {port}"
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)
