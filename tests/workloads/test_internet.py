"""Servers elsewhere: two addresses of unlike speed, UDP blocked and throttled, a cache, 429, nginx, and pages."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.workloads.drive import REPOSITORY
from trifecta.implementations.registry import BROWSERS
from trifecta.implementations.server import Unsupported
from trifecta.implementations.servers.nginx import Nginx
from trifecta.store.views import connect

NFT = shutil.which("nft", path="/usr/sbin:/sbin:/usr/bin:/bin")
pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(1200),  # the first test raises the Internet, and runs every race in it
    pytest.mark.skipif(NFT is None, reason="nft is missing"),
]
OURS = ("--ca", "{ca}", "--yes", "--i-own-this", "--quiet", "--json", "--set", "connection=new")
QUICK = (*OURS, "--set", "pace=200/s", "--set", "connect_timeout=1 s")


def nginx_missing() -> str:
    try:
        Nginx().find()
    except Unsupported as missing:
        return str(missing)
    return ""


NGINX_MISSING = nginx_missing()


def browser_missing(name: str) -> str:
    try:
        BROWSERS[name].find()
    except Unsupported as missing:
        return str(missing)
    return ""


MISSING = {name: browser_missing(name) for name in ("chromium", "firefox")}
PAGES = "https://busy.lab:8443/pages/"
VISITED = ("--ca", "{ca}", "--yes", "--i-own-this", "--quiet", "--json", "--set", "pace=200/s", "--address", "IPv4")


def visit(folder: Path, page: str, *more: str) -> list[str]:
    return ["race", f"{PAGES}{page}", "--page", *VISITED, "--blocks", "1", "--out", str(folder), *more]


def visited(name: str) -> pytest.MarkDecorator:
    """Skips a test whose browser is missing."""
    return pytest.mark.skipif(bool(MISSING[name]), reason=MISSING[name] or "found")


def carried_out(
    folder: Path, commands: dict[str, list[str]], *, busy: Sequence[str] = (), nginx: bool = False, timeout_s: float
) -> dict[str, tuple[Path, dict[str, Any]]]:
    """By name the folder of each command's run and how it ended, all in one Internet; of ``busy`` its server asks for
    patience from the third trial on."""
    asked = {
        "commands": [*commands.values()],
        "nginx": nginx,
        "busy": {str([*commands].index(name)): str(folder / name) for name in busy},
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.workloads.internet", str(folder / "net"), json.dumps(asked)],
        capture_output=True, text=True, check=False, cwd=REPOSITORY, timeout=timeout_s,
    )  # fmt: skip
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(said) == len(commands), done.stderr
    return {name: (folder / name, one) for name, one in zip(commands, said, strict=True)}


def race(folder: Path, url: str, *more: str) -> list[str]:
    return ["race", url, *QUICK, "--out", str(folder), *more]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, dict[str, Any]]]:
    """Every race of this file, in one Internet."""
    folder = tmp_path_factory.mktemp("internet")
    over_ipv4 = ("--address", "IPv4")
    once = ("--set", "requests=1")  # a trial, where each takes long
    commands = {
        "two": race(folder / "two", "https://two.lab:8443/bytes/1000", "--blocks", "2", *once),
        "family": race(folder / "family", "https://two.lab:8443/bytes/1000", "--blocks", "2", *over_ipv4),
        "mute": race(folder / "mute", "https://mute.lab:8443/bytes/1000", "--blocks", "2", *over_ipv4),
        "throttled": race(
            folder / "throttled", "https://throttled.lab:8443/bytes/400000", "--blocks", "1", *over_ipv4, *once
        ),
        "cached": race(folder / "cached", "https://busy.lab:8443/cached", "--blocks", "2", *over_ipv4),
        "busy": race(folder / "busy", "https://busy.lab:8443/patience", "--blocks", "2", *over_ipv4),
        "later": race(folder / "later", "https://busy.lab:8443/later", "--blocks", "2", *over_ipv4),
    }
    if not NGINX_MISSING:
        commands["nginx"] = race(folder / "nginx", "https://nginx.lab:8443/page", "--blocks", "1", *over_ipv4)
    if not MISSING["chromium"]:
        commands["page"] = visit(folder / "page", "two.html")
        commands["beside"] = visit(folder / "beside", "beside.html")
        commands["secret"] = visit(folder / "secret", "secret.html")
    return carried_out(folder, commands, busy=["later"], nginx=not NGINX_MISSING, timeout_s=1150)


@pytest.fixture(scope="module")
def firefox_runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, dict[str, Any]]]:
    """The one of Firefox, in an Internet of its own."""
    folder = tmp_path_factory.mktemp("internet-firefox")
    commands = {"page": visit(folder / "page", "two.html", "--browser", "firefox")}
    return carried_out(folder, commands, timeout_s=300)


def looks(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "run.json").read_text())["elsewhere"]
    return found


def select(folder: Path, sql: str) -> list[tuple[Any, ...]]:
    with connect(folder) as connection:
        return connection.execute(sql).fetchall()


def test_two_addresses_of_a_name_are_never_mixed(runs: dict[str, Any]) -> None:
    folder, said = runs["two"]
    assert said["code"] in (0, 1), said["err"]
    found = select(
        folder,
        "SELECT cell, block, count(DISTINCT json_extract_string(server_json, 'address')), "
        "any_value(json_extract_string(server_json, 'address')), min(latency_p50_ns) FROM trials GROUP BY ALL",
    )
    assert {number for _, _, number, _, _ in found} == {1}
    by_address: dict[str, list[int]] = {}
    for cell, _, _, address, latency_ns in found:
        assert f"address={address}" in cell
        by_address.setdefault(address, []).append(latency_ns)
    assert set(by_address) == {"10.78.0.2", "fd78::3"}
    assert min(by_address["fd78::3"]) > 2 * max(by_address["10.78.0.2"])


def test_a_family_is_resolved_anew_for_every_block(runs: dict[str, Any]) -> None:
    folder, said = runs["family"]
    assert said["code"] in (0, 1), said["err"]
    sql = (
        "SELECT DISTINCT json_extract_string(server_json, 'address'), "
        "list_contains(json_extract_string(server_json, '$.resolved[*]'), '10.78.0.2') FROM trials"
    )
    assert select(folder, sql) == [("10.78.0.2", True)]


def test_udp_that_is_blocked_is_a_result_of_its_own(runs: dict[str, Any]) -> None:
    folder, said = runs["mute"]
    assert said["code"] in (0, 1), said["err"]
    (place,) = looks(folder)[0]["places"]
    assert (place["udp"], place["announced"]) == ("blocked", ["Alt-Svc"])
    assert {arm for (arm,) in select(folder, "SELECT DISTINCT arm FROM trials")} == {"h1", "h2", "h2#aa"}
    told = json.loads(said["out"])["elsewhere"]["said"]
    assert any("UDP is blocked: HTTP/3 is announced, and no packet came back" in one for one in told)


def test_udp_that_is_throttled_is_recognised(runs: dict[str, Any]) -> None:
    folder, said = runs["throttled"]
    assert said["code"] in (0, 1), said["err"]
    (place,) = looks(folder)[0]["places"]
    assert place["udp"] == "slow"
    assert "h3" in {arm for (arm,) in select(folder, "SELECT DISTINCT arm FROM trials")}
    assert any("UDP is slow" in one for one in json.loads(said["out"])["elsewhere"]["said"])


def test_a_cache_that_answers_one_protocol_otherwise_is_warned_of(runs: dict[str, Any]) -> None:
    folder, said = runs["cached"]
    assert said["code"] in (0, 1), said["err"]
    warned = select(folder, "SELECT evidence FROM checks WHERE \"check\" = 'answers' AND status = 'warn'")
    assert any("cache state" in evidence and "HIT" in evidence and "MISS" in evidence for (evidence,) in warned)


def test_a_server_that_asks_for_patience_is_not_raced(runs: dict[str, Any]) -> None:
    folder, said = runs["busy"]
    assert said["code"] == 3
    assert "was answered 429, which asks to slow down" in said["err"]
    assert not (folder / "run.json").exists()


def test_round_trips_are_those_of_the_paths(runs: dict[str, Any]) -> None:
    folder, _ = runs["two"]
    idle = {place["address"]: place["idle_rtt_ns"] for place in looks(folder)[0]["places"]}
    assert 9_000_000 < idle["10.78.0.2"] < 39_000_000 < idle["fd78::3"] < 160_000_000


def test_patience_that_is_asked_for_during_a_run_is_given(runs: dict[str, Any]) -> None:
    folder, said = runs["later"]
    assert said["code"] in (0, 1), said["err"]
    trials = select(
        folder,
        "SELECT trial, valid, json_extract_string(load_json, 'ended'), started_ns, ended_ns, "
        "json_extract_string(load_json, '/response_fields/retry-after/values/1') FROM trials ORDER BY trial",
    )
    assert len(trials) == 8, "the other trials are made"
    ((place, away),) = [(number, row) for number, row in enumerate(trials) if row[2] == "status"]
    assert place >= 3
    assert (away[1], away[5]) == (False, "1")
    # The last trial has nothing behind it but a look, which is not made while the server is to be left alone.
    if place + 1 < len(trials):
        assert trials[place + 1][3] - away[4] >= 900_000_000
        assert [look["when"] for look in looks(folder)] == ["before", "after"]
    why = select(folder, f"SELECT evidence FROM checks WHERE \"check\" = 'errors' AND scope = '{away[0]}'")
    assert "the server asked to slow down (429 or 503)" in why[0][0]


@pytest.mark.skipif(bool(NGINX_MISSING), reason=NGINX_MISSING or "found")
def test_nginx_is_raced_over_every_protocol(runs: dict[str, Any]) -> None:
    folder, said = runs["nginx"]
    assert said["code"] in (0, 1), said["err"]
    (place,) = looks(folder)[0]["places"]
    assert (place["udp"], place["announced"]) == ("open", ["Alt-Svc"])
    assert {one["fields"]["server"].partition("/")[0] for one in place["answers"]} == {"nginx"}
    assert {one["content_bytes"] for one in place["answers"]} == {3000}
    assert {arm for (arm,) in select(folder, "SELECT DISTINCT arm FROM trials")} == {"h1", "h2", "h2#aa", "h3"}


def spoken(folder: Path) -> set[tuple[Any, ...]]:
    """What the arms were, whether to a third party, and over what requests were answered."""
    sql = "SELECT DISTINCT t.arm, f.third_party, f.protocol FROM trials AS t JOIN fetches AS f USING (trial)"
    return set(select(folder, sql))


@pytest.mark.parametrize(
    ("name", "where"),
    [
        pytest.param("chromium", "runs", marks=visited("chromium")),
        pytest.param("firefox", "firefox_runs", marks=[visited("firefox"), pytest.mark.long]),
    ],
)
def test_a_page_is_visited_over_every_protocol_at_one_address(
    request: pytest.FixtureRequest, name: str, where: str
) -> None:
    folder, said = request.getfixturevalue(where)["page"]
    assert said["code"] in (0, 1), said["err"]
    arms = {"h1": "h1", "h2": "h2", "h2#aa": "h2", "h3": "h3"}
    assert spoken(folder) == {(arm, False, protocol) for arm, protocol in arms.items()}
    visits = "SELECT trial, visit, count(*), count(DISTINCT url), bool_or(from_cache) FROM fetches GROUP BY ALL"
    assert {row[2:] for row in select(folder, visits)} == {(2, 2, False)}
    trials = select(
        folder,
        "SELECT error, errors, json_extract_string(server_json, 'address'), json_extract(load_json, 'requests_made'), "
        "json_extract(load_json, 'stray_lookups'), latency_p50_ns FROM trials",
    )
    assert {row[:4] for row in trials} == {(None, 0, trials[0][2], "6")}, "three visits of two requests each"
    assert {int(row[4]) for row in trials if name == "firefox"} <= {0}
    # A name, a handshake, the document and its style sheet, over a path of 10 ms.
    assert all(20_000_000 < row[5] < 20_000_000_000 for row in trials)
    (page,), (robots,) = (looks(folder)[0][part] for part in ("pages", "robots"))
    assert (page["browser"], page["requests"], page["third_parties"], page["unnamed"]) == (name, 2, {}, {})
    assert (robots["status"], robots["rule"]) == (200, "Allow: /")
    failed = select(folder, "SELECT \"check\", evidence FROM checks WHERE status = 'fail'")
    assert [row for row in failed if row[0] not in ("blocks", "machine", "browser", "headroom")] == []


@visited("chromium")
def test_the_server_is_told_who_visits(runs: dict[str, Any]) -> None:
    folder, _ = runs["page"]
    lines = [json.loads(line) for line in (folder.parent / "net" / "access.log").read_text().splitlines()]
    asked = {line["request"]["uri"]: line["request"]["headers"].get("User-Agent", [""])[0] for line in lines}
    assert "Chrome/" in asked["/pages/a.css"] or "Firefox/" in asked["/pages/a.css"]
    assert "trifecta/" in asked["/pages/a.css"]
    assert asked["/robots.txt"].startswith("trifecta/")


@visited("chromium")
def test_third_parties_are_found_by_looking_and_left_as_they_are(runs: dict[str, Any]) -> None:
    folder, said = runs["beside"]
    assert said["code"] in (0, 1), said["err"]
    arms = {"h2": "h2", "h2#aa": "h2", "h3": "h3"}
    own = {(arm, False, protocol) for arm, protocol in arms.items()}
    assert spoken(folder) == own | {(arm, True, "h2") for arm in arms}
    (page,) = looks(folder)[0]["pages"]
    assert page["third_parties"] == {"fast.lab": 1}
    beside = "SELECT DISTINCT json_extract_string(server_json, '/beside/fast.lab/address') FROM trials"
    assert select(folder, beside) == [("10.78.0.2",)]
    assert "third_parties: fast.lab" in (folder / "study.yaml").read_text()


@visited("chromium")
def test_what_robots_txt_forbids_is_not_asked_for(runs: dict[str, Any]) -> None:
    folder, said = runs["secret"]
    assert said["code"] == 3
    assert (
        f"{PAGES}secret.html: https://busy.lab:8443/robots.txt forbids it to trifecta (Disallow: /pages/secret)"
        in (said["err"])
    )
    assert said["err"].count("\n") == 1
    assert not (folder / "run.json").exists()
    assert "/pages/secret" not in (folder.parent / "net" / "access.log").read_text()
