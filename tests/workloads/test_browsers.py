"""Studies of a browser in the lab, with a stand-in for the browser: what is committed, what is said of failures."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest

from tests.workloads import drive_browsers as drive
from trifecta.design.levels import Surroundings
from trifecta.design.model import PageWorkload
from trifecta.design.study_file import parse_study
from trifecta.implementations.registry import BROWSERS, SERVERS
from trifecta.implementations.server import Command, ServerAdapter, ServerOptions, Site, Unsupported
from trifecta.lab.containers import ContainerPlace, docker_state
from trifecta.lab.place import LocalPlace
from trifecta.pages.builder import Builder
from trifecta.store.run import RunDirectory
from trifecta.store.views import connect
from trifecta.workloads.visits.place import NetworkKey, Place, ServerKey
from trifecta.workloads.visits.supported import browsers_supported

pytestmark = pytest.mark.lab
START = "https://www.tiny.lab/index.html"
URLS = [START, "https://www.tiny.lab/a.css", "https://cdn.tiny.lab/b.svg"]
THIRD_PARTY = "https://fonts.other.lab/a.css"
STUDY = """
study: tiny
workload: {{kind: page, page: {page}, visits: 2, warmup_visits: 1, settle: 50 ms{more}}}
factors: {{path: [{path}], protocol: [{protocols}]}}
paths:
  near: {{}}
  far: {{rtt: 10 ms}}
blocks: {{at_least: 1, at_most: {blocks}}}
budget: 2 min
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages") / "tiny"
    builder = Builder("tiny")
    html = b"<!doctype html><link rel=icon href=data:,><link rel=stylesheet href=/a.css><img src=https://cdn.tiny.lab/b.svg><p>Tiny."
    builder.add(START, 200, [("content-type", "text/html")], html)
    builder.add(URLS[1], 200, [("content-type", "text/css")], b"p{color:#123}" * 1000)
    svg = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><path d="M0 0h9v9z"/></svg>'
    builder.add(URLS[2], 200, [("content-type", "image/svg+xml")], svg)
    builder.write(folder, START, "Tiny", {"kind": "generated", "version": 1})
    return folder


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """A page whose style sheet comes from a third party."""
    builder = Builder("beside")
    html = f"<!doctype html><link rel=icon href=data:,><link rel=stylesheet href={THIRD_PARTY}><img src=/b.svg><p>Tiny."
    builder.add(START, 200, [("content-type", "text/html")], html.encode())
    builder.add(
        THIRD_PARTY, 200, [("content-type", "text/css"), ("access-control-allow-origin", "*")], b"p{color:#123}"
    )
    svg = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><path d="M0 0h9v9z"/></svg>'
    builder.add("https://www.tiny.lab/b.svg", 200, [("content-type", "image/svg+xml")], svg)
    facts: dict[str, Any] = {"kind": "generated", "version": 1}
    builder.write(tmp_path / "beside", START, "Beside", facts, ["fonts.other.lab"])
    return tmp_path / "beside"


def study(page: Path, path: str = "near", protocols: str = "h2, h3", blocks: int = 1, more: str = "") -> str:
    return STUDY.format(page=page, path=path, protocols=protocols, blocks=blocks, more=more)


def rows(folder: Path) -> list[dict[str, Any]]:
    return RunDirectory.open(folder).rows()


def test_visits_are_made_over_each_protocol_and_everything_is_committed(tmp_path: Path, page: Path) -> None:
    folder = tmp_path / "run"
    driver = {"urls": URLS, "look_up": "stray.example.org"}
    code, outcome, errors = drive.finish(folder, study=study(page, "far", "h1, h2, h3"), driver=driver)
    assert code == 0, errors
    assert outcome["trials"] == 4
    views = connect(folder)
    spoken = "SELECT DISTINCT t.protocol, f.protocol, t.client FROM trials t JOIN fetches f USING (trial) ORDER BY 1"
    assert views.execute(spoken).fetchall() == [(name, name, "chromium") for name in ("h1", "h2", "h3")]
    counts = "SELECT count(*), count(*) FILTER (warmup) FROM visits"
    assert views.execute(counts).fetchall() == [(12, 4)]
    assert views.execute("SELECT count(*), count(DISTINCT url) FROM fetches").fetchall() == [(36, 3)]
    assert views.execute("SELECT DISTINCT status, error FROM fetches").fetchall() == [(200, None)]
    for row in rows(folder):
        load, link, server = (json.loads(row[f"{name}_json"]) for name in ("load", "link", "server"))
        assert row["error"] is None
        assert row["samples"] == 2
        # Three requests, each on a new connection: no less than two round trips of 10 ms each.
        assert row["latency_p50_ns"] > 60_000_000
        assert row["fcp_p50_ns"] == 5_000_002  # of the visits 1 and 2, between which the median lies
        assert list(link["links"]) == ["client-router"]
        assert link["links"]["client-router"]["a_to_b"]["delivered"] > 0
        assert (server["host"], server["address"], server["page"]) == ("web", "192.168.2.2", "tiny")
        # What the fake browser starts to ask with is not its own: it is the driver's, and was found in what it reaped.
        assert load["driver_cpu_ns"] > 10_000_000
        assert load["stray_names"] == {"stray.example.org": load["stray_lookups"]}
        trial = row["trial"]
        assert sorted(path.name for path in (folder / "har" / trial).iterdir()) == ["0.har", "1.har", "2.har"]
        assert (folder / "frames" / trial / "2" / "0.jpg").is_file()
        assert json.loads(row["probe_json"])["wire"] == "client-router"
        assert json.loads(row["probe_json"])["rtt_ns"]["min"] == pytest.approx(10e6, rel=0.2)
    assert not list(folder.rglob(".tmp-*"))


def test_paths_have_networks_of_their_own_and_all_wires_can_be_impaired(tmp_path: Path, page: Path) -> None:
    folder = tmp_path / "run"
    text = study(page, "near, far", more=", impaired: all, filmstrip: false")
    code, _, errors = drive.finish(folder, study=text, driver={"urls": URLS[:1]})
    assert code == 0, errors
    found = {(row["path"], row["link_json"] is None): row["latency_p50_ns"] for row in rows(folder)}
    assert set(found) == {("near", True), ("far", False)}
    assert found["far", False] > 60_000_000  # two round trips over three wires of 10 ms
    wires = {tuple(json.loads(row["link_json"])["links"]) for row in rows(folder) if row["link_json"]}
    assert wires == {("client-router", "router-switch", "switch-web")}
    assert not (folder / "frames").exists()
    checks = connect(folder).execute("SELECT evidence FROM checks WHERE \"check\" = 'path'").fetchall()
    assert len(checks) == len(rows(folder))
    assert not any("no link" in evidence for (evidence,) in checks)


def test_a_driver_that_dies_fails_its_trial_and_leaves_nothing(tmp_path: Path, page: Path) -> None:
    folder = tmp_path / "run"
    code, outcome, errors = drive.finish(folder, study=study(page), driver={"urls": URLS, "die": 1})
    assert code == 0, errors
    assert (outcome["trials"], outcome["valid"]) == (3, 0)
    assert {row["error"] for row in rows(folder)} == {"client chromium: was killed by signal 9"}
    for name in ("samples", "visits", "fetches", "har", "frames"):
        assert not list((folder / name).iterdir())


def test_a_crashed_browser_is_rows_and_what_has_no_answer_is_told(tmp_path: Path, page: Path) -> None:
    folder = tmp_path / "run"
    driver = {"urls": [*URLS, "https://www.tiny.lab/random-1"], "crash": 2}
    code, outcome, errors = drive.finish(folder, study=study(page), driver=driver)
    assert code == 0, errors
    assert (outcome["trials"], outcome["valid"]) == (3, 0)
    for row in rows(folder):
        assert json.loads(row["error_classes_json"]) == {"browser:crashed": 1}
        assert list(json.loads(row["load_json"])["left_out"]) == ["https://www.tiny.lab/random-1"]


@pytest.mark.parametrize(
    ("driver", "code", "words"),
    [({"fail": 3}, 3, "client chromium cannot work: error: the browser is not in the mood"), ({"fail": 1}, 0, "")],
)
def test_what_no_trial_could_do_ends_the_run_and_what_one_could_not_does_not(
    tmp_path: Path, page: Path, driver: dict[str, Any], code: int, words: str
) -> None:
    folder = tmp_path / "run"
    ended, _, errors = drive.finish(folder, study=study(page), driver={"urls": URLS, **driver})
    assert (ended, words in errors) == (code, True), errors
    if code == 0:
        assert {row["error"] for row in rows(folder)} == {"client chromium: the browser is not in the mood"}


def test_a_driver_that_hangs_is_ended(tmp_path: Path, page: Path) -> None:
    folder = tmp_path / "run"
    code, outcome, errors = drive.finish(
        folder,
        study=study(page, protocols="h2"),
        driver={"urls": URLS, "hang": 1},
        faults={"load": {"*": {"total_timeout_ns": 300_000_000}}},
        grace_s=0.5,
    )
    assert code == 0, errors
    assert outcome["trials"] == 2
    assert {row["error"] for row in rows(folder)} == {"client chromium: did not end within 0.8 s"}


def test_a_killed_run_leaves_no_process_and_is_resumed(tmp_path: Path, page: Path) -> None:
    folder = tmp_path / "run"
    request: dict[str, Any] = {"study": study(page, more=", filmstrip: false"), "driver": {"urls": URLS}}
    process = drive.start(folder, **request)
    assert process.stdout is not None
    for line in process.stdout:
        if json.loads(line)[:2] == ["trial_started", "t00001"]:
            break
    children = psutil.Process(process.pid).children(recursive=True)
    assert len(children) > 3
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=20)
    _, alive = psutil.wait_procs(children, timeout=20)
    assert alive == []
    code, outcome, errors = drive.finish(folder, **request, resume=True)
    assert code == 0, errors
    assert outcome["trials"] == 3
    found = rows(folder)
    assert [row["trial"] for row in found] == [f"t0000{number}" for number in range(3)]
    assert sorted(path.stem for path in (folder / "visits").iterdir()) == [row["trial"] for row in found]
    assert pq.read_table(folder / "visits" / "t00002.parquet").num_rows == 3
    assert not list(folder.rglob(".tmp-*"))


def test_chromium_loads_a_page_over_the_protocol_asked_for(tmp_path: Path, page: Path) -> None:
    try:
        BROWSERS["chromium"].find()
    except Unsupported as missing:
        pytest.skip(str(missing))
    folder = tmp_path / "run"
    code, outcome, errors = drive.finish(folder, study=study(page, "far", "h1, h3", more=", filmstrip: false"))
    assert code == 0, errors
    assert outcome["trials"] == 3
    views = connect(folder)
    spoken = "SELECT DISTINCT t.protocol, f.protocol FROM trials t JOIN fetches f USING (trial) ORDER BY 1"
    assert views.execute(spoken).fetchall() == [("h1", "h1"), ("h3", "h3")]
    fetched = "SELECT DISTINCT trial, visit, list(DISTINCT url ORDER BY url) FROM fetches GROUP BY trial, visit"
    assert {tuple(urls) for _, _, urls in views.execute(fetched).fetchall()} == {tuple(sorted(URLS))}
    for row in rows(folder):
        assert row["error"] is None
        assert row["errors"] == 0
        # What the document names needs at least two round trips more: for it, and to the other host.
        assert 30_000_000 < row["latency_p50_ns"] < 20_000_000_000
        assert row["fcp_p50_ns"] > 0
        assert sorted(path.suffix for path in (folder / "har" / row["trial"]).iterdir()) == [".har"] * 3
    assert not list(folder.rglob(".tmp-*"))


def test_chromium_speaks_http2_to_third_parties_in_every_arm(tmp_path: Path, beside: Path) -> None:
    try:
        BROWSERS["chromium"].find()
    except Unsupported as missing:
        pytest.skip(str(missing))
    folder = tmp_path / "run"
    code, outcome, errors = drive.finish(folder, study=study(beside, "far", "h1, h2, h3", more=", filmstrip: false"))
    assert code == 0, errors
    assert outcome["trials"] == 4
    views = connect(folder)
    spoken = (
        "SELECT DISTINCT t.protocol, f.origin, f.third_party, f.protocol FROM trials t JOIN fetches f USING (trial)"
    )
    assert set(views.execute(spoken).fetchall()) == {
        one for arm in ("h1", "h2", "h3")
        for one in ((arm, "www.tiny.lab:443", False, arm), (arm, "fonts.other.lab:443", True, "h2"))
    }  # fmt: skip
    counted = "SELECT DISTINCT requests, third_party_requests, third_party_connections FROM visits"
    assert views.execute(counted).fetchall() == [(3, 1, 1)]
    connections = "SELECT DISTINCT protocol, tcp_connections > 0, quic_connections > 0 FROM visits ORDER BY 1"
    assert views.execute(connections).fetchall() == [("h1", True, False), ("h2", True, False), ("h3", False, True)]
    checks = "SELECT DISTINCT status, evidence LIKE '%all 2 requests to the page%s third parties (%) used HTTP/2%' "
    assert views.execute(checks + "FROM checks WHERE \"check\" = 'protocol'").fetchall() == [("pass", True)]
    for row in rows(folder):
        server = json.loads(row["server_json"])
        assert (server["host"], server["address"].rpartition(".")[0]) == ("web", "192.168.2")
        assert server["beside"]["thirdparty"]["address"] == "192.168.2.4"
        assert server["beside"]["thirdparty"]["cpu_ns"] > 0
        # The document needs two round trips of 10 ms at least, the style sheet three more on a new connection over TCP.
        assert row["latency_p50_ns"] > 45_000_000


@pytest.mark.parametrize("name", ["origin", "nginx"])
def test_the_server_of_a_page_runs_in_a_container(tmp_path: Path, page: Path, name: str) -> None:
    state = docker_state("host")
    try:
        SERVERS[name].find()
        SERVERS[name].check_workload(PageWorkload(place="docker-host"))
    except Unsupported as missing:
        pytest.skip(str(missing))
    if not state.usable:
        pytest.skip(f"{state.reason}; {state.remedy}")
    folder = tmp_path / "run"
    text = study(page, "far", "h1, h3", more=", filmstrip: false, place: docker-host")
    text = text.replace("factors: {", f"factors: {{server: [{name}], ")
    code, outcome, errors = drive.finish(folder, study=text, driver={"urls": URLS})
    assert code == 0, errors
    assert outcome["trials"] == 3
    spoken = "SELECT DISTINCT t.protocol, f.protocol, f.status FROM trials t JOIN fetches f USING (trial) ORDER BY 1"
    assert connect(folder).execute(spoken).fetchall() == [("h1", "h1", 200), ("h3", "h3", 200)]
    assert (folder / "logs" / "docker.log").is_file()
    for row in rows(folder):
        server = json.loads(row["server_json"])
        assert (server["name"], server["address"], server["restarts"]) == (name, "192.168.2.2", 0)
        assert server["cpu_ns"] > 0


def test_where_a_server_is_started() -> None:
    native, contained = (ServerKey("origin", ServerOptions(), (), "web", place) for place in ("native", "docker-host"))
    place = Place(NetworkKey(), [native, contained], Path("engine"), Path("log"))
    place._docker["web"] = SimpleNamespace()  # type: ignore[assignment]
    place.network = SimpleNamespace(host=lambda _: SimpleNamespace())  # type: ignore[assignment]
    assert isinstance(place.at(native), LocalPlace)
    assert isinstance(place.at(contained), ContainerPlace)
    assert place.address == {native: "192.168.2.2", contained: "192.168.2.11"}
    six = Place(NetworkKey(ipv6=True), [native, contained], Path("engine"), Path("log"))
    assert six.address == {native: "fd7a:2::2", contained: "fd7a:2::11"}


def test_a_server_that_cannot_offer_http_1_1_alone_is_left_out_beside_third_parties(
    tmp_path: Path, beside: Path, page: Path
) -> None:
    class Stubborn(ServerAdapter):
        name, source = "stubborn", "a test"

        def find(self) -> str:
            return "1"

        def command(self, site: Site, options: ServerOptions) -> Command:
            raise NotImplementedError

    for folder, protocols, left_out in ((beside, "h1, h2", 1), (beside, "h2, h3", 0), (page, "h1, h2", 0)):
        text = study(folder, protocols=protocols).replace("path: [near]", "path: [near], server: [stubborn, origin]")
        asked = parse_study(text, "study.yaml", [], Surroundings(servers=["stubborn", "origin"]))
        servers = {"stubborn": Stubborn(), "origin": SERVERS["origin"]}
        found = browsers_supported(asked, servers, {"chromium": BROWSERS["chromium"]})
        assert len(found.left_out) == left_out
        assert len(found.cells) == 2 - left_out
        if left_out:
            assert found.left_out[0]["reason"].startswith(
                "stubborn cannot offer HTTP/1.1 alone, which a page with third"
            )
