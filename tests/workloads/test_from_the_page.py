"""A race that is really measured: started from the page, stopped, resumed, watched to its end, opened and compared."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browsing import WIDE, browser
from tests.ui.serving import Served, serving
from tests.workloads.test_checks_fail import _engine_missing
from trifecta.store.run import RunDirectory
from trifecta.ui import file_polling

__all__ = ["browser"]
pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(bool(_engine_missing()), reason=_engine_missing() or "built"),
    pytest.mark.timeout(600),
]
BLOCKS = (8, 4)  # of the first race, which has to be stopped before its end, and of the second
PATIENCE_MS = 240_000


@pytest.fixture
def measuring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """The page over an empty folder, which starts what a user's would; it may look more often than beside a real run,
    which takes longer.
    """
    monkeypatch.setattr(file_polling, "SHARE", 1.0)
    (tmp_path / "runs").mkdir()
    with serving(tmp_path / "runs", tmp_path, (sys.executable, "-m", "trifecta")) as served:
        yield served


def settings(blocks: int) -> str:
    return f"path=far connection=reused server=origin protocol=h2,h3 blocks.at_least={blocks} blocks.at_most={blocks}"


def finished(folder: Path, blocks: int) -> int:
    """The trials of a run that is over, each there once: all of it, or as many as it takes on a machine so busy that
    none counts.
    """
    run = RunDirectory.open(folder)
    assert run.facts["state"] in ("blocks", "decided", "unmeasurable")
    rows = run.rows()
    assert len({(row["block"], row["arm"]) for row in rows}) == len(rows)
    assert len(rows) == 3 * blocks or run.facts["state"] == "unmeasurable"
    return len(rows)


@pytest.mark.parametrize("browser", ["chromium", pytest.param("firefox", marks=pytest.mark.long)], indirect=True)
def test_a_race_is_started_stopped_resumed_watched_opened_and_compared(
    browser: Any,
    measuring: Served,
    tmp_path: Path,
) -> None:
    page = browser.new_page(viewport=WIDE)
    page.set_default_timeout(PATIENCE_MS)
    complaints: list[str] = []
    page.on("pageerror", lambda one: complaints.append(str(one)))
    page.goto(measuring.address)
    folders: list[Path] = []
    for number, blocks in enumerate(BLOCKS):
        page.get_by_role("button", name="Measure a study").click()
        page.get_by_label("Set").fill(settings(blocks))
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
        page.locator(".status", has_text=f"{finished(folder, blocks)} trials").wait_for()
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
