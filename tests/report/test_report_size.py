"""How long a report is in a browser and on paper, and that a link unfolds what it leads to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browsing import chromium, needs_chromium

__all__ = ["chromium"]
SCREENS = PAGES = 8

pytestmark = needs_chromium


def opened(chromium: Any, run: Path, anchor: str = "", width: int = 1280) -> Any:
    page = chromium.new_page(viewport={"width": width, "height": 900})
    page.goto((run / "report.html").as_uri() + anchor)
    return page


def test_it_has_at_most_eight_screens_and_eight_pages(chromium: Any, run: Path, tmp_path: Path) -> None:
    page = opened(chromium, run)
    assert page.evaluate("document.documentElement.scrollHeight") <= SCREENS * 900
    file = tmp_path / "report.pdf"
    page.pdf(path=file, format="A4")
    assert file.read_bytes().count(b"/Type /Page\n") <= PAGES
    assert b"/Type /Page\n" in file.read_bytes()
    page.close()


@pytest.mark.parametrize("width", [420, 1280])
def test_nothing_is_wider_than_the_window(chromium: Any, run: Path, width: int) -> None:
    page = opened(chromium, run, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.get_by_role("button", name="Unfold all").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


def test_a_link_unfolds_what_it_leads_to_and_the_contents_stay(chromium: Any, run: Path) -> None:
    page = opened(chromium, run, "#cell-7")
    assert page.locator("#cell-7 > details").get_attribute("open") is not None
    assert page.locator("#cell-6 > details").get_attribute("open") is None
    contents = page.locator("nav.contents").bounding_box()
    assert contents is not None and contents["y"] == 0
    title = page.locator("#cell-7-title").bounding_box()
    assert title is not None and contents["height"] <= title["y"] < 900
    page.close()
