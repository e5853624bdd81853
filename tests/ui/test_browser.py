"""The page in Chromium and Firefox: found, opened, read, compared and followed by keyboard, narrow and dark."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.browsing import NARROW, PATIENCE_MS, WIDE, complaints_of, in_both, until, until_open
from tests.ui.serving import Served, serving
from tests.ui.test_live import arrive, shortened, written
from trifecta.store import trace_schema
from trifecta.trace import overview
from trifecta.ui import live


@pytest.fixture
def page(browser: Any, served: Served) -> Iterator[Any]:
    """The list, opened with the token; what the page complains of fails the test."""
    context = browser.new_context(viewport=WIDE)
    context.set_default_timeout(PATIENCE_MS)
    opened = context.new_page()
    complaints = complaints_of(opened)
    requests: list[str] = []
    opened.on("request", lambda one: requests.append(one.url))
    opened.goto(served.address)
    opened.get_by_role("link", name="The first").wait_for()
    yield opened
    assert complaints == []
    assert {url.split("/")[2] for url in requests} == {f"127.0.0.1:{served.port}"}  # nothing from elsewhere
    context.close()


def go(page: Any, served: Served, address: str) -> None:
    page.goto(f"http://127.0.0.1:{served.port}/#/{address}")
    page.locator("main h1").wait_for()
    until(page, "!document.querySelector('[aria-busy]')")


@in_both
def test_a_person_finds_a_run_and_opens_it_by_keyboard_alone(page: Any, served: Served) -> None:
    assert "token" not in page.url
    page.get_by_label("Search").focus()
    page.keyboard.type("second")
    until(page, "document.querySelectorAll('.runs li').length === 1")
    page.get_by_role("link", name="The second").focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="The second", level=1).wait_for()
    assert "HTTP/3" in page.locator(".lead").inner_text()
    picture = page.get_by_role("group", name="Every comparison")
    picture.focus()
    page.keyboard.press("ArrowDown")
    first = page.locator("figure output").first.inner_text()
    page.keyboard.press("ArrowDown")
    assert "far" in first and page.locator("figure output").first.inner_text() != first
    page.keyboard.press("Enter")  # opens the cell that it is of
    page.locator("details.fold[open] .tables caption").first.wait_for()
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"


def test_runs_that_were_cut_and_runs_that_were_stopped_are_chosen_together(page: Any, served: Served) -> None:
    """One that still says "running" and is not written was cut: both are interrupted, in one word."""

    def as_cut_and_stopped(route: Any) -> None:
        answer = route.fetch()
        told = answer.json()
        for one, state in zip(told["runs"], ("running", "interrupted"), strict=False):
            one["state"] = state
        route.fulfill(response=answer, json=told)

    page.route("**/api/runs*", as_cut_and_stopped)
    page.reload()
    page.get_by_role("link", name="The first").wait_for()
    choice = page.get_by_role("combobox", name="State")
    words = choice.locator("option").all_inner_texts()
    assert len(set(words)) == len(words) and "interrupted" in words
    choice.select_option("interrupted")
    until(page, "document.querySelectorAll('.runs li').length === 2")


def test_every_picture_has_its_table(page: Any, served: Served) -> None:
    go(page, served, "run/first")
    page.locator("section[aria-label='Cells'] summary").first.click()
    page.locator("details.fold canvas").wait_for()
    until(page, "document.querySelectorAll('figure').length === 3")
    for figure in page.locator("figure").all():
        figure.get_by_text("Table").click()
        assert figure.locator("tbody tr").count() >= 2 and figure.locator("caption").inner_text()
        assert figure.locator("tbody th[scope=row]").count() == figure.locator("tbody tr").count()
    hidden = page.evaluate(
        "[...document.querySelectorAll('figure svg, figure canvas')].every(e => e.ariaHidden === 'true')"
    )
    assert hidden
    # The policy lets Observable Plot's own style in.
    styled = "[...document.querySelectorAll('svg.plot style')].map(one => one.sheet.cssRules.length > 0)"
    assert set(page.evaluate(styled)) == {True}


def test_a_click_on_a_point_opens_its_samples_with_har_and_film_strip(page: Any, served: Served) -> None:
    go(page, served, "run/first")
    page.get_by_role("combobox", name="Against").select_option("block")
    picture = page.get_by_role("group", name="against block")
    picture.focus()
    page.keyboard.press("Home")
    for _ in range(3):  # t00003, which has files
        page.keyboard.press("ArrowRight")
    assert "t00003" in page.locator("section[aria-label^='Any metric'] output").inner_text()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="t00003").wait_for()
    trial = page.locator("section[aria-label='A trial']")
    assert trial.locator("canvas").count() == 1
    trial.locator("figure").get_by_text("Table").click()
    assert trial.locator("figure tbody tr").count() == 40, "a row a request"
    assert trial.get_by_role("link", name="0.har").count() == 1
    until(page, "document.querySelector('.films img').naturalWidth === 40")
    picture.scroll_into_view_if_needed()
    box = picture.locator("svg").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] - 60, box["y"] + box["height"] / 2)
    until(page, "!document.querySelector('section[aria-label=\"A trial\"] h3')?.textContent.startsWith('t00003')")
    trial.locator("canvas").wait_for()


def test_a_trial_s_packets_are_told_once_they_are_dissected(browser: Any, growing: Path, tmp_path: Path) -> None:
    (growing / "trace").mkdir()
    connection = {"capture": "t00002", "connection": 7, "protocol": "h3", "transport": "quic", "packets": 1234}
    messages = [{"capture": "t00002", "connection": 7, "stream": 4 * number, "method": "GET", "path": f"/{number}.bin",
                 "status": 200} for number in range(3)]  # fmt: skip
    messages.append({"capture": "t00003", "method": "GET", "path": "/of-another-trial"})
    for name, schema, rows in (
        ("connections", trace_schema.CONNECTIONS, [connection]),
        ("messages", trace_schema.MESSAGES, messages),
    ):
        table = pa.Table.from_pylist([dict.fromkeys(schema.names) | row for row in rows], schema=schema.arrow())
        pq.write_table(table, growing / "trace" / f"{name}.parquet")
    overview.note_tables(growing)
    with serving(growing.parent, tmp_path) as served:
        context = browser.new_context(viewport=NARROW, color_scheme="dark")
        context.set_default_timeout(PATIENCE_MS)
        opened = context.new_page()
        complaints = complaints_of(opened)
        opened.goto(served.address)
        go(opened, served, "run/growing")
        opened.get_by_role("combobox", name="Against").select_option("block")
        picture = opened.get_by_role("group", name="against block")
        picture.focus()
        for key in ("Home", "ArrowRight", "ArrowRight", "Enter"):
            opened.keyboard.press(key)
        opened.get_by_role("heading", name="t00002").wait_for()
        trial = opened.locator("section[aria-label='A trial']")
        tables = {}
        for name in ("Connections on the wire", "Messages on the wire"):
            trial.locator("summary", has_text=name).click()
            table = trial.get_by_role("region", name=name)
            table.locator("tbody tr").first.wait_for()
            heads, rows = table.locator("thead th").all_inner_texts(), table.locator("tbody tr")
            cells = [row.locator("th, td").all_inner_texts() for row in rows.all()]
            tables[name] = [dict(zip(heads, one, strict=True)) for one in cells]
        told = {"capture": "t00002", "connection": "7", "protocol": "h3", "transport": "quic", "packets": "1234"}
        assert tables["Connections on the wire"] == [told]
        assert [one["path"] for one in tables["Messages on the wire"]] == ["/0.bin", "/1.bin", "/2.bin"]
        assert opened.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
        assert complaints == []
        context.close()


def test_a_finished_run_goes_on_for_as_long_as_is_asked(page: Any, served: Served, folder: Path) -> None:
    go(page, served, "run/first")
    page.get_by_label("this much longer").fill("5 min")
    page.get_by_role("button", name="Resume or extend").click()
    page.wait_for_url("**/#/live/first")
    end = time.monotonic() + 60
    while (job := served.get("/api/jobs").json["jobs"][-1])["code"] is None:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert job["said"] == [str(["resume", str(folder / "first"), "--budget", "5 min"])]


def test_two_runs_are_chosen_and_compared(page: Any, served: Served) -> None:
    for name in ("first", "below/second"):
        page.get_by_label(f"compare {name}", exact=True).check()
    page.get_by_role("button", name="Compare the two").click()
    page.get_by_role("heading", name="Two runs beside each other").wait_for()
    assert "Of 6 questions that both runs ask" in page.locator("main").inner_text()
    page.locator("figure summary").click()
    assert page.locator("figure tbody tr").count() == 6


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("address", ["", "run/first", "live/first", "compare/first/below%2Fsecond"])
def test_nothing_is_wider_than_a_narrow_window_and_both_schemes_have_their_colours(
    page: Any, served: Served, address: str, scheme: str
) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size(NARROW)
    go(page, served, address)
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 24, 28)"}[scheme]
    page.locator("#theme").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != paper


def test_a_run_is_followed_and_stopped(browser: Any, growing: Path, tmp_path: Path, fast: None) -> None:
    later = shortened(growing, 24)
    with serving(growing.parent, tmp_path) as served, written(growing) as process:
        opened = browser.new_page(viewport=WIDE)
        opened.set_default_timeout(PATIENCE_MS)
        opened.goto(served.address)
        opened.get_by_role("link", name="The second").click()
        opened.locator(".status", has_text="24 trials").wait_for()
        arrive(growing, later[:8])
        opened.locator(".status", has_text="32 trials").wait_for()
        opened.get_by_role("heading", name="Block by block").wait_for()
        opened.locator("#theme").click()  # which draws the page anew, with all that was seen
        opened.get_by_role("heading", name="Block by block").wait_for()
        arrive(growing, later[8:])
        opened.locator(".status", has_text="48 trials").wait_for()
        opened.get_by_role("button", name="Stop").click()
        assert process.wait(timeout=30) == 0
        opened.get_by_role("button", name="Resume").wait_for()
        opened.close()


POINTS = "section[aria-label='Block by block'] details"
ROWS = f"""((table) => table && (table.open = true) && [...table.querySelectorAll("tbody tr")].map(
  (row) => [...row.cells].map((cell) => cell.textContent.trim()).join(" ")))(document.querySelector({POINTS!r}))"""


def points_of(page: Any, points: int) -> list[str]:
    """The table of how an interval closed in, once it has so many points; each event draws it anew, folded."""
    ends = time.monotonic() + PATIENCE_MS / 1000
    while len(rows := page.evaluate(ROWS) or []) != points:
        assert time.monotonic() < ends, rows
        time.sleep(0.05)
    return list(rows)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_cell_of_a_run_that_has_ended_shows_how_its_intervals_closed_in(
    browser: Any, growing: Path, tmp_path: Path, scheme: Any
) -> None:
    later = shortened(growing, 24)
    for first in (0, 8, 16):
        arrive(growing, later[first : first + 8])
    with serving(growing.parent, tmp_path) as served:
        context = browser.new_context(viewport=NARROW, color_scheme=scheme)
        context.set_default_timeout(PATIENCE_MS)
        opened = context.new_page()
        complaints = complaints_of(opened)
        opened.goto(served.address)
        go(opened, served, "run/growing")
        opened.locator("details.fold > summary", has_text="new connections").click()
        opened.get_by_role("heading", name="Block by block").wait_for()
        rows = points_of(opened, 4)
        assert [one.split()[0] for one in rows] == ["3", "4", "5", "6"] and len(set(rows)) == 4
        section = opened.get_by_role("region", name="Block by block")
        assert section.locator("canvas").is_visible()
        assert "SELECT blocks, verdict" in section.locator("pre").text_content()
        choice = section.get_by_role("combobox", name="Comparison")
        others = choice.locator("option").all_inner_texts()
        assert len(others) == 3 and others[0] in section.locator("figcaption").inner_text()
        choice.select_option(others[2])
        assert others[2] in section.locator("figcaption").inner_text()
        assert points_of(opened, 4) != rows
        section.get_by_role("group", name=f"{others[2]} after each block").focus()
        opened.keyboard.press("End")
        assert section.locator("output").first.inner_text().startswith("after 6 blocks: ")
        assert opened.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
        assert complaints == []
        context.close()


def test_a_page_that_is_loaded_again_has_the_points_of_earlier_blocks(
    browser: Any, growing: Path, tmp_path: Path, fast: None
) -> None:
    later = shortened(growing, 24)
    with serving(growing.parent, tmp_path) as served, written(growing):
        context = browser.new_context(viewport=WIDE)
        context.set_default_timeout(PATIENCE_MS)
        opened = context.new_page()
        opened.goto(served.address)
        opened.get_by_role("link", name="The second").click()
        opened.locator(".status", has_text="24 trials").wait_for()
        arrive(growing, later[:8])
        assert [one.split()[0] for one in points_of(opened, 2)] == ["3", "4"]
        arrive(growing, later[8:16])
        before = points_of(opened, 3)
        assert [one.split()[0] for one in before] == ["3", "4", "5"] and len(set(before)) == 3
        opened.reload()
        assert points_of(opened, 3) == before
        arrive(growing, later[16:])
        after = points_of(opened, 4)
        assert after[:3] == before and after[3].split()[0] == "6"
        other = context.new_page()
        other.goto(f"http://127.0.0.1:{served.port}/#/live/growing")
        assert points_of(other, 4) == after
        shortened(growing, 40)  # its last block is taken back, as where a run lost trials and was resumed
        assert points_of(opened, 3) == points_of(other, 3) == before
        context.close()


def test_what_came_before_the_connection_broke_is_forgotten(page: Any, served: Served, folder: Path) -> None:
    state = live.Follower(folder / "first", "first").document()
    shown = {name: state["cells"][0]["verdicts"][0][name] for name in ("cell", "arm", "reference")}
    points = [{"block": block, "said": "", "mark": 1, "ratio": 1.2, "low": 1.1, "high": 1.3} for block in (3, 4)]
    asked: list[Any] = []
    page.route("**/api/live?*", lambda route: asked.append(route))  # noqa: PLW0108 - Playwright marks the function

    def answer(past: list[Any], **differs: Any) -> None:
        while not asked:
            page.wait_for_timeout(20)
        events = {"past": past, "state": state | differs}
        lines = [f"event: {kind}\ndata: {json.dumps(data)}\n\n" for kind, data in events.items()]
        asked.pop().fulfill(content_type="text/event-stream", body="retry: 50\n\n" + "".join(lines))

    page.goto(f"http://127.0.0.1:{served.port}/#/live/first")
    answer([{**shown, "keep": 0, "points": points}])
    assert len(points_of(page, 2)) == 2
    answer([], of="9 trials")  # of a run whose blocks were taken back meanwhile
    page.locator(".status", has_text="9 trials").wait_for()
    assert page.locator("section[aria-label='Block by block']").count() == 0


CLOSING = """async () => {
  const { closing } = await import("/assets/js/charts.js");
  const end = (i, by) => (i < 6 ? null : 1.2 + by / i);
  const one = (i) => ({ block: i, ratio: 1.2, low: end(i, -1), high: end(i, 1), mark: 1, said: "" });
  const seen = [...Array(12).keys()].map(one);
  document.getElementById("main").replaceChildren(closing("closing", seen));
  await new Promise((drawn) => setTimeout(drawn, 300));
  const canvas = document.querySelector("figure canvas"), half = canvas.width / 2;
  const pixels = canvas.getContext("2d").getImageData(half, 0, half, canvas.height).data;
  let orange = 0;
  for (let i = 0; i < pixels.length; i += 4) orange += pixels[i] > 150 && pixels[i + 1] < 130 && pixels[i + 2] < 90;
  return orange;
}"""


def test_the_band_of_an_interval_does_not_hide_its_ratio(page: Any) -> None:
    page.emulate_media(color_scheme="light")
    assert page.evaluate(CLOSING) > 300, "the line of the ratio in the right half"


@in_both
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])  # another port of the same site, and another site
def test_another_site_s_page_reads_nothing_though_the_browser_has_the_cookie(
    browser: Any, served: Served, tmp_path: Path, host: str
) -> None:
    before = served.get("/api/jobs").json
    context = browser.new_context()
    context.set_default_timeout(PATIENCE_MS)
    mine = context.new_page()
    mine.goto(served.address)
    mine.get_by_role("link", name="The first").wait_for()
    (tmp_path / "index.html").write_text("<p>another site</p>")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = ["python3", "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as other:
        try:
            until_open(port, lambda: other.poll() is None)
            page = context.new_page()
            page.goto(f"http://{host}:{port}/")
            target = f"http://127.0.0.1:{served.port}"
            for path in ("/api/runs", "/"):
                asked = f"fetch('{target}{path}', {{credentials: 'include'"
                assert page.evaluate(f"{asked}}}).then(a => a.text(), e => 'refused')") == "refused"
                opaque = f"{asked}, mode: 'no-cors'}}).then(a => a.type, e => 'refused')"
                assert page.evaluate(opaque) in ("opaque", "refused")
            sent = "{method: 'POST', mode: 'no-cors', credentials: 'include', body: '{}'}"
            page.evaluate(f"fetch('{target}/api/start', {sent}).catch(() => 0)")
            page.evaluate("document.body.append(document.createElement('iframe'))")
            framed = "new Promise(done => { const f = document.querySelector('iframe');"
            assert page.evaluate(f"{framed} f.onload = () => done(f.contentDocument); f.src = '{target}/'; }})") is None
            assert served.get("/api/jobs").json == before
        finally:
            other.terminate()
    context.close()


def test_without_the_token_the_page_says_where_to_get_it(browser: Any, served: Served) -> None:
    context = browser.new_context()
    context.set_default_timeout(PATIENCE_MS)
    fresh = context.new_page()
    assert fresh.goto(f"http://127.0.0.1:{served.port}/").status == 403
    assert "trifecta ui" in fresh.locator("body").inner_text()
    context.close()
