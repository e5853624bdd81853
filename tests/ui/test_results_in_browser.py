"""Maps, ladders and reproductions of the page in Chromium and Firefox: by keyboard, by finger, on a narrow window."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.analysis.mapping.plane import a_plan, a_study, explore
from tests.browsing import NARROW, PATIENCE_MS, complaints_of, until
from tests.report.synthetic_reproduction import write_reproduction
from tests.report.test_report_ladder import found
from tests.ui.serving import serving
from trifecta.analysis.mapping.result import work_out
from trifecta.conclude import ladder_results
from trifecta.report.map import page as map_page


@pytest.fixture
def narrow(browser: Any) -> Iterator[Any]:
    """A page by finger, on a telephone's window; what it complains of fails the test."""
    context = browser.new_context(viewport=NARROW, has_touch=True)
    context.set_default_timeout(PATIENCE_MS)
    opened = context.new_page()
    complaints = complaints_of(opened)
    yield opened
    assert complaints == []
    assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth"), "wider than the window"
    context.close()


def test_a_map_is_walked_through_by_key_and_finger(narrow: Any, browser: Any, tmp_path: Path) -> None:
    from playwright.sync_api import expect

    plan = a_plan("6x5", blocks=20)
    study = a_study(plan)
    rows, stop, _ = explore(plan, study, lambda x, y: 0.5 * (x - 0.5) + 0.2 * y - 0.1)
    (tmp_path / "runs" / "map").mkdir(parents=True)
    map_page.write(work_out(plan, study, rows, ending=stop.reason, about={"argv": []}), tmp_path / "runs" / "map")
    with serving(tmp_path / "runs", tmp_path) as served:
        told = served.get("/api/found", {"name": "map"}).json
        said = {(one["i"], one["j"]): f"{one['said']}. {one['evidence']}" for one in told["places"]}
        assert len(set(said.values())) == 6 * 5
        narrow.goto(served.address)
        narrow.locator(".runs a").first.click()
        picture = narrow.get_by_role("group", name="Who wins where")
        words = narrow.locator("figure output").first
        picture.focus()
        walk = ["Home", "ArrowRight", "ArrowRight", "ArrowUp", "ArrowDown", "ArrowDown", "ArrowLeft", "ArrowUp", "End"]
        walk += ["ArrowUp", "ArrowRight"]
        places = [(0, 0), (1, 0), (2, 0), (2, 1), (2, 0), (2, 0), (1, 0), (1, 1), (5, 4), (5, 4), (5, 4)]
        for key, place in zip(walk, places, strict=True):
            narrow.keyboard.press(key)
            assert words.inner_text() == said[place], key
        box = picture.locator("svg").bounding_box()
        assert box is not None
        # Playwright has no finger in Firefox: there it is the mouse.
        touch = narrow.touchscreen.tap if browser.browser_type.name == "chromium" else narrow.mouse.click
        touch(box["x"] + 70, box["y"] + box["height"] - 50)  # the lower left place
        expect(words).to_have_text(said[0, 0])
        touch(box["x"] + box["width"] - 12, box["y"] + 30)  # the upper right one
        expect(words).to_have_text(said[5, 4])


def test_a_reproduction_has_its_claims(narrow: Any, tmp_path: Path) -> None:
    write_reproduction(tmp_path / "runs")
    with serving(tmp_path / "runs", tmp_path) as served:
        told = served.get("/api/found", {"name": "."}).json
        narrow.goto(served.address)
        narrow.locator(".runs li", has_text="reproduction").locator("a").first.click()
        narrow.locator("main h1").wait_for()
        until(narrow, "!document.querySelector('[aria-busy]')")
        assert told["headline"] in narrow.locator("main").inner_text()
        assert narrow.locator("main tbody tr").count() == len(told["table"]["rows"]) == 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_ladder_is_climbed_by_key(narrow: Any, tmp_path: Path, scheme: str) -> None:
    (tmp_path / "runs" / "small").mkdir(parents=True)
    ladder_results.write(tmp_path / "runs" / "small", found())
    narrow.emulate_media(color_scheme=scheme)
    with serving(tmp_path / "runs", tmp_path) as served:
        told = served.get("/api/found", {"name": "small"}).json
        narrow.goto(served.address)
        narrow.locator(".runs li", has_text="ladder").locator("a").first.click()
        narrow.get_by_role("heading", name="20 requests & a <script>", level=1).wait_for()
        until(narrow, "!document.querySelector('[aria-busy]')")
        assert narrow.locator(".lead").inner_text() == told["headline"]
        assert told["headline"].startswith("Held then: it holds under the published conditions; today no longer.")
        said = [one["said"] for one in told["rungs"]]
        assert len(set(said)) == 3 and "another client" in said[2]
        narrow.get_by_role("group", name="Rung by rung").focus()
        words = narrow.locator("figure output")
        for key, at in (("ArrowDown", 0), ("ArrowDown", 1), ("End", 2), ("ArrowUp", 1)):
            narrow.keyboard.press(key)
            assert words.inner_text() == said[at], key
        narrow.locator("figure summary").click()
        rows = narrow.locator("figure tbody tr").all_inner_texts()
        assert len(rows) == 4 and "V <b>" in rows[2], "published, and a row a rung"
        assert narrow.locator("main b, main script").count() == 0, "what is told is text"
        paper = narrow.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 24, 28)"}[scheme]
