"""Firefox through the driver: the protocol forced, what it tells, views, failures, and nothing left behind."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from PIL import Image, ImageStat

from tests.implementations.browsers import visiting
from tests.implementations.browsers.visiting import CDN, SECOND, WWW, Site
from tests.trace import qvis

pytestmark = pytest.mark.timeout(120)
RESOURCES = 7


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    visiting.need("firefox")
    with visiting.site(tmp_path_factory.mktemp("firefox")) as made:
        yield made


def browsers(processes: list[psutil.Process]) -> list[psutil.Process]:
    """The browser itself, not its helpers."""
    found = []
    for each in processes:
        with suppress(psutil.NoSuchProcess):  # what helps a browser to start ends meanwhile
            found += [each] if "--headless" in each.cmdline() else []
    return found


def test_every_protocol_and_view_does_the_same_work(site: Site) -> None:
    work, logs = {}, site.folder / "qlog"
    logs.mkdir()
    for protocol, view in (("h1", "warm"), ("h2", "repeat"), ("h3", "cold")):
        began_ns = time.monotonic_ns()
        summary = visiting.visit("firefox", site.config(protocol=protocol, view=view, qlog_dir=str(logs)))
        (visit,), fetches = site.rows("visits"), site.rows("fetches")
        assert summary["errors"] == 0, summary["words"]
        assert summary["stray_lookups"] == 0
        assert {fetch["protocol"] for fetch in fetches} == {protocol}
        assert len(fetches) == visit["requests"] == RESOURCES
        assert visit["failed_requests"] == 0
        assert visit["origins"] == 2
        assert 0 < visit["ttfb_ns"] < visit["dom_content_loaded_ns"] <= visit["load_ns"]
        assert visit["fcp_ns"] is not None
        assert visit["lcp_ns"] is not None
        assert began_ns < visit["started_ns"] < visit["started_ns"] + visit["load_ns"] < time.monotonic_ns()
        for fetch in fetches:
            assert fetch["error"] is None
            assert fetch["status"] == 200
            assert visit["started_ns"] - SECOND // 10 < fetch["started_ns"] < fetch["done_ns"]
        page = fetches[0]
        assert page["kind"] == "document"
        assert page["tls_version"] == "1.3"
        assert page["connection_reused"] is (view == "warm")
        assert page["resumed"] is (view == "repeat")
        assert visit["tcp_connections" if protocol == "h3" else "quic_connections"] == 0
        work[view] = visit["work"]
    assert len(set(work.values())) == 1
    written = sorted(logs.iterdir())
    assert {file.name.partition("_")[0] for file in written} == {WWW, CDN}
    for file in written:
        # neqo writes some events late; qvis sorts them.
        assert set(qvis.complaints(file)) <= {"times are not in order"}, file
        head, events = qvis.load(file)
        assert head["trace"]["vantage_point"]["type"] == "client"
        assert any(one["name"] == "transport:packet_sent" for one in events)
    assert not [path for path in (site.folder / "work").rglob("*") if path.is_file()]


@pytest.mark.long
def test_a_page_that_never_loads_is_a_timeout_and_the_next_visit_goes_on(site: Site) -> None:
    url = f"https://{WWW}:{site.port}/never.html"
    summary = visiting.visit("firefox", site.config(url=url, visits=2, visit_timeout_ns=6 * SECOND))
    assert summary["errors"] == 2
    assert summary["ended"] == "requests"
    for visit in site.rows("visits"):
        assert visit["error"] == "timeout"
        assert visit["load_ns"] is None
        assert visit["dom_content_loaded_ns"] is not None
        assert (visit["requests"], visit["failed_requests"]) == (2, 1)


def test_a_browser_that_crashes_loses_its_visits_and_leaves_nothing(site: Site) -> None:
    config = site.config(url=f"https://{WWW}:{site.port}/never.html", visits=2)
    with visiting.driver("firefox", config) as driver:
        assert driver.stdout is not None
        while "ready" not in json.loads(driver.stdout.readline()):
            pass
        started = visiting.family(driver)
        (browser,) = browsers(started)
        browser.kill()
        summary = json.loads(driver.stdout.readline())["summary"]
        assert driver.wait(30) == 0
    assert summary["ended"] == "crashed"
    assert {visit["error"] for visit in site.rows("visits")} == {"browser:crashed"}
    assert not visiting.alive(started)


def test_a_killed_driver_leaves_nothing(site: Site) -> None:
    config = site.config(url=f"https://{WWW}:{site.port}/never.html")
    with visiting.driver("firefox", config) as driver:
        assert driver.stdout is not None
        while "ready" not in json.loads(driver.stdout.readline()):
            pass
        started = visiting.family(driver)
        assert browsers(started)
        driver.send_signal(signal.SIGKILL)
        assert not visiting.alive(started)


@pytest.mark.long
def test_a_server_without_http3_fails_and_is_never_asked_over_tcp(tmp_path: Path) -> None:
    visiting.need("firefox")
    with visiting.site(tmp_path, protocols=("h1", "h2")) as site:
        summary = visiting.visit("firefox", site.config(protocol="h3"))
        assert summary["errors"] == 1
        (visit,), (fetch,) = site.rows("visits"), site.rows("fetches")
    assert visit["error"] == "quic:timeout"
    assert fetch["protocol"] is None
    assert fetch["error"] is not None


@pytest.mark.long
def test_another_protocol_than_the_one_asked_for_is_refused(tmp_path: Path) -> None:
    visiting.need("firefox")
    with visiting.site(tmp_path, protocols=("h1",)) as site:
        visiting.visit("firefox", site.config(protocol="h2"))
        (visit,), (fetch,) = site.rows("visits"), site.rows("fetches")
    assert visit["error"] == fetch["error"] == "tls:alpn"
    assert fetch["protocol"] == "h1"


@pytest.mark.long
def test_http3_is_found_by_alt_svc(tmp_path: Path) -> None:
    visiting.need("firefox")
    with visiting.site(tmp_path, alt_svc=True) as site:
        summary = visiting.visit("firefox", site.config(protocol="h3", discovery="alt-svc", warmup_visits=1))
        fetches = [fetch for fetch in site.rows("fetches") if not fetch["warmup"]]
    assert summary["errors"] == 0
    assert fetches[0]["protocol"] == "h2"
    assert {fetch["protocol"] for fetch in fetches} == {"h2", "h3"}


@pytest.mark.long
def test_a_repeated_visit_over_http3_resumes_its_session(site: Site) -> None:
    summary = visiting.visit("firefox", site.config(protocol="h3", view="repeat", visits=3))
    assert summary["errors"] == 0, summary["words"]
    pages = [fetch for fetch in site.rows("fetches") if fetch["kind"] == "document"]
    assert [(page["resumed"], page["connection_reused"]) for page in pages] == [(True, False)] * 3


@pytest.mark.long
def test_the_film_strip_shows_the_page_the_right_way_up(site: Site) -> None:
    folder = site.folder / "frames"
    summary = visiting.visit("firefox", site.config(filmstrip=True, warmup_visits=1, frames_dir=str(folder)))
    assert summary["errors"] == 0, summary["words"]
    pictures = sorted((folder / "0").iterdir(), key=lambda path: int(path.stem))
    assert pictures
    with Image.open(pictures[-1]) as last:
        grey = last.convert("L")
        assert grey.width == 400
        upper = ImageStat.Stat(grey.crop((0, 0, grey.width, grey.height // 2)))
        lower = ImageStat.Stat(grey.crop((0, grey.height // 2, grey.width, grey.height)))
    assert upper.stddev[0] > 20  # pictures and words
    assert lower.extrema[0][0] > 240  # nothing
    assert site.rows("visits")[0]["speed_index_ns"] is not None


@pytest.mark.long
def test_an_authority_that_is_not_the_labs_is_refused(tmp_path: Path) -> None:
    visiting.need("firefox")
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with visiting.site(tmp_path / "a") as site, visiting.site(tmp_path / "b") as other:
        ca_file = str(other.folder / "pki" / "ca.pem")
        for protocol in ("h2", "h3"):
            visiting.visit("firefox", site.config(protocol=protocol, ca_file=ca_file))
            assert site.rows("visits")[0]["error"] == "tls:certificate"
