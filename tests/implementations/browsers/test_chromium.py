"""Real visits of a real Chromium, on loopback."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from itertools import chain, pairwise

import psutil
import pytest

from tests.implementations.browsers.driving import REAL, Driver, rows
from tests.implementations.browsers.site import HOSTS, IMAGES, need, serving
from tests.implementations.browsers.test_har import validator
from tests.lab.ended import all_ended

pytestmark = pytest.mark.timeout(120)
REQUESTS = IMAGES + 3 + 2  # a frame of another site, with a picture
PHASES = (
    "started_ns",
    "connect_start_ns",
    "tcp_connected_ns",
    "secured_ns",
    "request_sent_ns",
    "first_byte_ns",
    "done_ns",
)


@pytest.fixture(scope="module", autouse=True)
def chromium():
    need("chromium")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("site"), alt_svc=True) as there:
        yield there


def drive(document):
    driver = Driver(REAL, "chromium", document)
    driver.hear("ready")
    family = driver.family()
    summary = driver.hear("summary")
    assert driver.end() == 0, driver.words()
    assert all_ended(family, 5)
    return summary


WORK: dict[str, tuple[str, int]] = {}


@pytest.mark.parametrize("protocol", ["h1", "h2", "h3"])
def test_a_cold_visit_is_measured(site, tmp_path, protocol):
    before = time.monotonic_ns()
    folders = {"frames_dir": str(tmp_path / "frames"), "har_dir": str(tmp_path / "har")}
    summary = drive(site.config(tmp_path, protocol=protocol, filmstrip=True, **folders))
    after = time.monotonic_ns()
    assert (summary["errors"], summary["ended"], summary["left_out"]) == (0, "requests", {})
    assert summary["cpu_user_ns"] > 50_000_000
    fetches = [row for row in rows(tmp_path, "fetches") if row["visit"] == 1]
    assert len(fetches) == REQUESTS
    assert {row["protocol"] for row in fetches} == {protocol}
    sizes = {each.name: each.stat().st_size for each in site.folder.iterdir()}
    for row in fetches:
        assert row["body_bytes"] == row["decoded_bytes"] == sizes[row["url"].rpartition("/")[2]], row
        assert 0 < row["header_bytes"] < 600
        known = [(name, row[name]) for name in (*PHASES, "done_ns") if row[name] is not None]
        times = [value for _, value in known]
        # Another thread notes the end of sending than the one that meets the answer, and may have to wait for a CPU: on
        # a busy machine "sent" was read 9 ms after the first octet. The answer follows all that came before sending.
        answered = [(name, value) for name, value in known if name != "request_sent_ns"]
        sent = known[: [name for name, _ in known].index("request_sent_ns") + 1]
        for (_, earlier), (name, later) in chain(pairwise(answered), pairwise(sent)):
            assert later > earlier - 200_000, (name, row)
        assert before < times[0] < times[-1] < after
    _, visit = rows(tmp_path, "visits")
    assert visit["connections"] == 2 if protocol != "h1" else 2 < visit["connections"] <= 8
    assert (visit["quic_connections"] == 0) == (protocol != "h3")
    assert 0 < visit["ttfb_ns"] <= visit["dom_content_loaded_ns"] <= visit["load_ns"] < after - before
    assert 0 < visit["fcp_ns"] <= visit["lcp_ns"]
    assert visit["browser_cpu_ns"] > 0
    assert visit["speed_index_ns"] is None  # no measured visit is filmed
    main = fetches[0]
    assert (main["tcp_connected_ns"] is None) == (protocol == "h3")
    assert main["secured_ns"] is not None
    WORK[protocol] = visit["work"], visit["requests"]
    assert len(set(WORK.values())) == 1
    sample = rows(tmp_path, "samples")[1]
    assert sample["done_ns"] - sample["started_ns"] == visit["load_ns"]
    assert (sample["protocol"], sample["status"], sample["error"]) == (protocol, 200, None)
    filmed = rows(tmp_path, "visits")[0]
    assert 0 < filmed["speed_index_ns"] <= filmed["visually_complete_ns"]
    assert [each.suffix for each in (tmp_path / "frames" / "0").iterdir()]
    archive = json.loads((tmp_path / "har" / "1.har").read_text(encoding="utf-8"))
    validator().validate(archive)
    assert len(archive["log"]["entries"]) == REQUESTS


def test_a_repeated_view_resumes_and_has_its_cache(site, tmp_path):
    drive(site.config(tmp_path, protocol="h3", view="repeat", warmup_visits=0))
    (visit,) = rows(tmp_path, "visits")
    assert (visit["connections"], visit["resumed_connections"], visit["zero_rtt_connections"]) == (2, 2, 2)


@pytest.mark.long
def test_a_warm_view_finds_its_connections(site, tmp_path):
    drive(site.config(tmp_path, protocol="h2", view="warm", warmup_visits=0))
    fetches = rows(tmp_path, "fetches")
    assert len(fetches) == REQUESTS
    own = [row for row in fetches if HOSTS[2] not in row["url"]]  # a frame of another site is kept apart
    assert all(row["connection_reused"] and row["connect_start_ns"] is None for row in own)
    assert not any(row["from_cache"] for row in fetches)


@pytest.mark.long
def test_alt_svc_leads_to_http3(site, tmp_path):
    drive(site.config(tmp_path, protocol="h3", discovery="alt-svc", warmup_visits=0))
    protocols = [row["protocol"] for row in rows(tmp_path, "fetches")]
    assert protocols[0] == "h2"
    assert "h3" in protocols


def test_what_fails_in_a_page_is_in_its_rows(site, tmp_path):
    document = site.config(tmp_path, "broken.html", protocol="h1", warmup_visits=0, visit_timeout_ns=6_000_000_000)
    summary = drive(document)
    assert summary["stray_lookups"] == 1
    found = {row["url"].rpartition("//")[2].partition("/")[0]: row["error"] for row in rows(tmp_path, "fetches")[3:]}
    assert found == {
        f"{HOSTS[0]}:{site.refusing}": "connect_refused",
        f"{HOSTS[0]}:{site.port}": "status",
        "www.elsewhere.example": "browser:name",
        f"{HOSTS[0]}:{site.silent}": None,  # which is why load never comes
    }
    (visit,) = rows(tmp_path, "visits")
    assert (visit["failed_requests"], visit["error"], visit["load_ns"]) == (3, "timeout", None)


@pytest.mark.parametrize("protocol", ["h2", pytest.param("h3", marks=pytest.mark.long)])
def test_a_certificate_of_another_authority_is_refused(site, tmp_path, protocol):
    from trifecta.lab.certificates import make_certificates

    other = make_certificates(tmp_path / "other", HOSTS, ["127.0.0.1"]).authority
    drive(site.config(tmp_path, protocol=protocol, warmup_visits=0) | {"ca_file": str(other)})
    (visit,) = rows(tmp_path, "visits")
    assert visit["error"] in ("tls:certificate", "quic:transport")


def test_a_server_without_http3_fails_hard(tmp_path):
    with serving(tmp_path, ("h1", "h2")) as there:
        drive(there.config(tmp_path, protocol="h3", warmup_visits=0))
    (visit,) = rows(tmp_path, "visits")
    assert visit["error"] == "quic:transport"
    assert not any(row["protocol"] for row in rows(tmp_path, "fetches"))


@pytest.mark.parametrize("victim", [pytest.param("renderer", marks=pytest.mark.long), "browser", "driver"])
def test_a_crash_is_a_row_and_leaves_nothing(site, tmp_path, victim):
    document = site.config(tmp_path, "broken.html", protocol="h2", visit_timeout_ns=3_000_000_000, warmup_visits=0)
    site.forget_asked()
    driver = Driver(REAL, "chromium", document | {"visits": 2})
    pid = driver.hear("ready")["pid"]
    site.wait_asked()
    family = driver.family()
    if victim == "renderer":
        renderers = [each for each in family if "--type=renderer" in each.cmdline()]
        for each in renderers:
            with suppress(psutil.NoSuchProcess):
                each.kill()
    elif victim == "browser":
        next(each for each in family if each.pid == pid).kill()
    else:
        driver.process.kill()
    code = driver.end(60)
    assert all_ended(family, 5)
    assert not list((tmp_path / "work").rglob("profile"))
    if victim == "driver":
        return
    assert code == 0
    errors = [row["error"] for row in rows(tmp_path, "visits")]
    assert errors == ["browser:crashed", "timeout" if victim == "renderer" else "browser:crashed"]
    driver.process.stdout.close()
