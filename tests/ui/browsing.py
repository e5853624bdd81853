"""What tests of the page in browsers share."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from typing import Any

import pytest

CHROMIUM, FIREFOX = shutil.which("chromium"), shutil.which("firefox-esr") or shutil.which("firefox")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs the distribution's chromium")
needs_firefox = pytest.mark.skipif(FIREFOX is None, reason="needs the distribution's firefox")
PATIENCE_MS = 120_000
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 420, "height": 800}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


def until(page: Any, script: str, within_s: float = 60) -> None:
    """Wait for what a script says; the page's policy lets no text become a program, so it is asked from here."""
    end = time.monotonic() + within_s
    while not page.evaluate(script):
        assert time.monotonic() < end, script
        time.sleep(0.05)
