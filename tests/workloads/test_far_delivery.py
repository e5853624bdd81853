"""A delivery network elsewhere: one name at two unlike places, and a cache that is cold, warm, or too small."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import pytest

from tests.workloads.test_internet import NFT, carried_out, looks, select
from trifecta.store import parquet

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(600),  # the first test raises the Internet
    pytest.mark.skipif(NFT is None, reason="nft is missing"),
]
FAST, DISTANT = "10.78.0.2", "10.78.0.6"
"""Round trips of 10 ms and of 80 ms (`internet.DELAYS_NS`)."""
BLOCKS = 10
STUDY = """
study: edge
workload: {{kind: far, requests: 4, url: "{url}", address: IPv4, owned: true, pace: 200/s, ca: CA}}
factors: {{protocol: [HTTP/1.1, HTTP/2, HTTP/3], connection: [new]}}
"""
WARM = ("kept", "aged")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, dict[str, Any]]]:
    """Every run of this file, in one Internet."""
    folder = tmp_path_factory.mktemp("delivery")
    common = ("--yes", "--quiet", "--json", "--set", "connect_timeout=5 s")
    # Not given up: beside other tests few trials may count, and most of this is asked of all.
    settings = ("give_up=false", "protocol=h2,h3", "connection=new", "pace=200/s")
    anycast = (*(word for one in settings for word in ("--set", one)), "--seed", "4")
    commands = {
        "anycast": ["race", "https://anycast.lab:8443/bytes/1000", "--ca", "{ca}", "--i-own-this", *common, *anycast,
                    "--address", "IPv4", "--blocks", str(BLOCKS), "--out", str(folder / "anycast")],
    }  # fmt: skip
    for name in (*WARM, "small"):
        file = folder / f"{name}.yaml"
        file.write_text(STUDY.format(url=f"https://busy.lab:8443/edge/{name}"))
        commands[name] = ["run", str(file), *common, "--set", "ca={ca}", "--blocks", "3", "--out", str(folder / name)]
    return carried_out(folder, commands, timeout_s=550)


def test_two_places_of_one_name_are_blocks_and_move_no_verdict(runs: dict[str, Any]) -> None:
    folder, said = runs["anycast"]
    assert said["code"] in (0, 1), said["err"]
    found = select(
        folder,
        "SELECT block, arm, json_extract_string(server_json, 'address'), latency_p50_ns, "
        "len(json_extract_string(server_json, '$.resolved[*]')) FROM trials ORDER BY block",
    )
    assert len(found) == BLOCKS * 3
    assert {many for *_, many in found} == {2}, "both are known in every block"
    address = {block: one for block, _, one, *_ in found}
    assert {(block, one) for block, _, one, *_ in found} == set(address.items()), "the arms of a block go to one"
    assert set(address.values()) == {FAST, DISTANT}
    took = {(block, arm): one for block, arm, _, one, _ in found}
    apart = [
        statistics.median(took[block, "h2"] for block in address if address[block] == at) for at in (FAST, DISTANT)
    ]
    assert apart[1] > 3 * apart[0], "the places are unlike: mixed, they would decide it"
    (verdict,) = (
        one for one in parquet.read(folder / "verdicts.parquet") if (one["arm"], one["reference"]) == ("h3", "h2")
    )
    # A new connection takes three round trips over TCP with TLS 1.3, and two over QUIC, whichever place answers.
    assert verdict["verdict"] == "faster" or (verdict["verdict"] == "undecided" and verdict["invalid_trials"] > 0)
    # A busy machine may disturb a trial in every block, which leaves no ratio; those of all trials are held below.
    assert verdict["ratio"] is None or 0.5 < verdict["ratio"] < 0.9
    for at in (FAST, DISTANT):
        ratios = [took[block, "h3"] / took[block, "h2"] for block, one in address.items() if one == at]
        assert 0.5 < statistics.geometric_mean(ratios) < 0.9, at


def states(folder: Path) -> list[tuple[str | None, str | None]]:
    """X-Cache and Age of the answers to the first look, in the order in which they were asked for."""
    (place,) = looks(folder)[0]["places"]
    return [(one["fields"].get("x-cache"), one["fields"].get("age")) for one in place["answers"]]


def cached(folder: Path) -> list[tuple[str, int, dict[str, int]]]:
    """Of every trial its arm, its block, and what the answers that were measured said of the cache."""
    rows = select(folder, "SELECT arm, block, json_extract(load_json, '/response_fields') FROM trials ORDER BY trial")
    fields = [(arm, block, json.loads(told)) for arm, block, told in rows]
    return [(arm, block, told["x-cache"]["values"] or told["age"]["values"]) for arm, block, told in fields]


def judged(folder: Path) -> list[tuple[str, str]]:
    return select(folder, "SELECT status, evidence FROM checks WHERE \"check\" = 'answers'")


@pytest.mark.parametrize("name", WARM)
def test_a_cold_cache_is_warmed_by_the_look_and_then_nothing_is_warned_of(runs: dict[str, Any], name: str) -> None:
    folder, said = runs[name]
    assert said["code"] in (0, 1), said["err"]
    first, *others = states(folder)
    said_first, said_later = {"kept": (("MISS", "0"), ("HIT", "3600")), "aged": ((None, "0"), (None, "3600"))}[name]
    assert first == said_first
    assert len(others) >= 2
    assert {*others} == {said_later}
    trials = cached(folder)
    assert {arm for arm, _, _ in trials} == {"h1", "h2", "h2#aa", "h3"}
    assert all(told == {"HIT" if name == "kept" else "3600": 4} for *_, told in trials), trials
    assert {status for status, _ in judged(folder)} == {"pass"}
    assert {f"cache state {'HIT' if name == 'kept' else 'AGED'}" in evidence for _, evidence in judged(folder)} == {
        True
    }


def test_a_cache_that_is_cold_for_some_arms_is_warned_of(runs: dict[str, Any]) -> None:
    folder, said = runs["small"]
    assert said["code"] in (0, 1), said["err"]
    trials = cached(folder)
    warned = [evidence for status, evidence in judged(folder) if status == "warn"]
    assert {status for status, _ in judged(folder)} <= {"pass", "warn"}
    unequal = {block for block in range(3) if len({frozenset(told) for _, at, told in trials if at == block}) == 2}
    assert unequal, "of four answers each some trials have one that was a MISS"
    assert any("cache state" in evidence and "HIT here" in evidence for evidence in warned)
    within = [evidence for evidence in warned if "the responses show several cache states (HIT 3, MISS 1)" in evidence]
    assert len(within) == sum("MISS" in told for *_, told in trials)
