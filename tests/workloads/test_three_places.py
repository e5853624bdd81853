"""An operator's question, answered as docs/far.md says: one command, a file of twelve lines, three places."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.lab.inside import told_inside
from tests.lab.three_hosts import missing
from tests.workloads.test_checks_fail import _engine_missing
from tests.workloads.test_failures import assert_whole
from tests.workloads.test_hosts import amiss, private_in, rows
from tests.workloads.test_internet import NFT
from trifecta.store import parquet

WHY = missing() or _engine_missing()
pytestmark = [
    pytest.mark.lab,
    pytest.mark.long,  # a campaign of 72 trials between hosts; `test_hosts*.py` and `test_internet.py` have its parts
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(WHY), reason=WHY or "there"),
]
pytestmark.append(pytest.mark.skipif(NFT is None, reason="nft is missing"))
BLOCKS = 8
HELPERS = """
import json
from pathlib import Path
from tests.lab.three_places import NAME, PORT, TRIPS_MS, three_places
from tests.workloads.internet import add_filter
"""
inside = partial(told_inside, HELPERS, timeout_s=580)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The command, and once more after a network swallows what comes to one of the places over UDP."""
    folder = tmp_path_factory.mktemp("places")
    found = inside(
        folder,
        f"""
        with three_places(folder) as (hosts, authority):
            urls = {{place: hosts.url(place) for place in TRIPS_MS}}
            (folder / "places.yaml").write_text(
                "study: three-places\\n"
                "title: the site, from three places\\n"
                "workload:\\n"
                "  kind: far\\n"
                f"  url: https://{{NAME}}:{{PORT}}/bytes/1000\\n"
                "  requests: 4\\n"
                "  owned: true\\n"
                f"  ca: {{authority}}\\n"
                "factors:\\n"
                "  protocol: [HTTP/2, HTTP/3]\\n"
                "  connection: [new]\\n"
                f"  vantage: {{json.dumps([*urls.values()])}}\\n"
            )
            words = ["run", str(folder / "places.yaml"), "--yes", "--quiet", "--set", "pace=200/s", "--out"]
            runs = {{"run": hosts.run(*words, str(folder / "run"), "--blocks", "{BLOCKS}")}}
            add_filter(hosts.lab.host("singapore"), f"add rule inet t in udp sport {{PORT}} drop")
            runs["second"] = hosts.run(*words, str(folder / "second"), "--blocks", "1")
            left = hosts.wait_clean(60)
        print(json.dumps({{"runs": runs, "left": left, "urls": urls}}))
        """,
    )
    return folder, found


def in_words(said: str) -> str:
    """What a command said, on one line however its terminal breaks it."""
    return " ".join(said.split())


def test_one_command_answers_for_three_places(told: tuple[Path, dict[str, Any]]) -> None:
    folder, found = told
    code, said, errors = found["runs"]["run"]
    assert code == 0, errors
    assert len((folder / "places.yaml").read_text().splitlines()) == 12
    urls = list(found["urls"].values())
    made = rows(folder / "run")
    assert len(made) == BLOCKS * len(urls) * 3
    assert amiss(made) == []
    # Each place finds the site by its name, over a path of its own.
    took: dict[str, list[int]] = {url: [] for url in urls}
    for row in made:
        server, vantage = json.loads(row["server_json"]), json.loads(row["factors_json"])["vantage"]
        assert (server["address"], server["resolved"]) == ("10.78.0.5", ["10.78.0.5"])
        took[vantage].append(row["latency_p50_ns"])
    near, middle, far = (min(took[url]) for url in urls)
    assert 40_000_000 <= near < middle < far
    assert far >= 200_000_000, "two round trips of 100 ms at least"
    verdicts = [one for one in parquet.read(folder / "run" / "verdicts.parquet") if one["arm"] == "h3"]
    decided = {url: one["verdict"] for one in verdicts for url in urls if f"vantage={url}" in one["cell"]}
    assert decided == dict.fromkeys(urls, "faster")
    words = in_words(said)
    assert f"HTTP/3 against HTTP/2, new connections: faster from {', '.join(urls)}." in words
    for url in urls:
        assert f"this is the path from {url} to www.site.lab:8443 at 10.78.0.5 (" in words
    assert "trifecta why" not in words, "which refuses a server elsewhere"
    assert_whole(folder / "run")
    assert private_in(folder / "run", folder / "home") == []
    assert found["left"] == {place: [] for place in found["urls"]}


def test_a_place_that_has_no_http3_is_told_apart(told: tuple[Path, dict[str, Any]]) -> None:
    folder, found = told
    code, said, errors = found["runs"]["second"]
    assert code in (0, 1), errors
    first, second, muted = found["urls"].values()
    assert {json.loads(row["factors_json"])["vantage"] for row in rows(folder / "second")} == {first, second}
    words = in_words(said)
    where = f"www.site.lab:8443 at 10.78.0.5 from {muted}"
    assert f"{where}: UDP is blocked: HTTP/3 is announced, and no packet came back." in words
    assert f"undecided from {first}, {second}." in words
    (left_out,) = (part for part in words.split("Left out: ")[1:])
    assert f"from {muted}: HTTP/3 failed with" in left_out.partition("Metric: ")[0]
    assert "(UDP: blocked); leave it out (--set protocol=...)" in left_out
