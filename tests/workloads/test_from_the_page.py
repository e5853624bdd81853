"""A race that is really measured: started from the page, stopped, resumed, watched to its end, opened and compared."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.browsing import WIDE, chromium, needs_chromium, needs_firefox
from tests.ui.serving import Served, serving
from tests.ui.test_browser import _in_firefox, _until
from tests.workloads.test_checks_fail import _engine_missing
from trifecta.store.run import RunDirectory
from trifecta.ui import watching

__all__ = ["chromium"]
pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(bool(_engine_missing()), reason=_engine_missing() or "built"),
    pytest.mark.timeout(600),
]
BLOCKS = 8
SETTINGS = f"path=far connection=reused server=origin protocol=h2,h3 blocks.at_least={BLOCKS} blocks.at_most={BLOCKS}"
PATIENCE_MS = 240_000


@pytest.fixture
def measuring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """The page over an empty folder, which starts what a user's would; it may look more often than beside a real run,
    which takes longer.
    """
    monkeypatch.setattr(watching, "SHARE", 1.0)
    (tmp_path / "runs").mkdir()
    with serving(tmp_path / "runs", tmp_path, (sys.executable, "-m", "trifecta")) as served:
        yield served


def finished(folder: Path) -> int:
    """The trials of a run that is over, each there once: all of it, or as many as it takes on a machine so busy that
    none counts.
    """
    run = RunDirectory.open(folder)
    assert run.facts["state"] in ("blocks", "decided", "unmeasurable")
    rows = run.rows()
    assert len({(row["block"], row["arm"]) for row in rows}) == len(rows)
    assert len(rows) == 3 * BLOCKS or run.facts["state"] == "unmeasurable"
    return len(rows)


@needs_chromium
def test_a_race_is_started_stopped_resumed_watched_opened_and_compared(
    chromium: Any,
    measuring: Served,
    tmp_path: Path,
) -> None:
    page = chromium.new_page(viewport=WIDE)
    page.set_default_timeout(PATIENCE_MS)
    complaints: list[str] = []
    page.on("pageerror", lambda one: complaints.append(str(one)))
    page.goto(measuring.address)
    folders: list[Path] = []
    for number in range(2):
        page.get_by_role("button", name="Measure a study").click()
        page.get_by_label("Set").fill(SETTINGS)
        page.get_by_role("button", name="Start", exact=True).click()
        page.locator(".status", has_text=" trials").wait_for()
        (folder,) = set((tmp_path / "runs").iterdir()) - set(folders)
        folders.append(folder)
        if number == 0:
            page.get_by_role("button", name="Stop").click()
            page.get_by_role("button", name="Resume").wait_for()
            assert RunDirectory.open(folder).facts["state"] == "interrupted"
            page.get_by_role("button", name="Resume").click()
        page.get_by_text("being measured").wait_for()
        page.locator(".status .tag", has_text="ended").wait_for()
        page.locator(".status", has_text=f"{finished(folder)} trials").wait_for()
        reason = RunDirectory.open(folder).facts["ended_because"]
        assert page.locator("main").inner_text().count(reason) == 1, "why it ended is said once"
        page.get_by_role("link", name="What it says", exact=True).click()
        page.locator(".lead", has_text="HTTP/3").wait_for()
        page.goto(f"http://127.0.0.1:{measuring.port}/#/")
        page.get_by_role("heading", name="Runs", exact=True).wait_for()
        time.sleep(1)  # the next one has another second in its name
    for folder in folders:
        page.get_by_label(f"compare {folder.name}", exact=True).check()
    page.get_by_role("button", name="Compare the two").click()
    page.get_by_role("heading", name="Two runs beside each other").wait_for()
    page.get_by_text("that both runs ask").wait_for()
    assert complaints == []
    page.close()


@needs_firefox
def test_firefox_starts_a_race_watches_it_to_its_end_and_opens_it(measuring: Served, tmp_path: Path) -> None:
    async def session(bidi: Any, context: str) -> None:
        async def seen(script: str) -> Any:
            return await _until(lambda: bidi.call(context, f"() => {script}"), PATIENCE_MS / 1000)

        where = {"context": context, "url": measuring.address, "wait": "complete"}
        await bidi.command("browsingContext.navigate", where)
        assert await seen("document.querySelector('.tools button.main') !== null")
        await bidi.call(context, "() => document.querySelector('.tools button.main').click()")
        assert await seen("document.querySelector('dialog #settings') !== null")
        fill = f"document.querySelector('#settings').value = '{SETTINGS}'"
        await bidi.call(context, f"() => {{ {fill}; document.querySelector('dialog button.main').click(); }}")
        assert await seen("document.querySelector('.status .tag.now') !== null")
        assert await seen("document.querySelector('.status .tag')?.textContent === 'ended'")
        (folder,) = (tmp_path / "runs").iterdir()
        assert f"{finished(folder)} trials" in await seen("document.querySelector('.status').textContent")
        await bidi.call(context, "() => document.querySelector('.buttons a').click()")
        assert "HTTP/3" in await seen("document.querySelector('.lead')?.textContent")

    with ThreadPoolExecutor(1) as apart:
        apart.submit(asyncio.run, _in_firefox(tmp_path, session)).result()
