"""Protocol or program: what the report and the terminal say when a study has several servers or clients."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.report import pages
from tests.report.synthetic import Shape, write_run
from tests.report.test_report_terminal import printed
from trifecta.analysis.programs import Program
from trifecta.analysis.shares import Decomposition, Share
from trifecta.conclude.comparisons import Comparison
from trifecta.conclude.explain import chain
from trifecta.conclude.facts import RunFacts
from trifecta.report import claims, terminal
from trifecta.report.explain import words
from trifecta.report.html import render, write_report
from trifecta.store import views

H3_H2 = ("h3", "h2")


def verdict(kind: str, server: str, client: str = "", path: str = "far", metric: str = "latency_p50_ns") -> Comparison:
    cell = f"path={path},server={server}" + (f",client={client}" if client else "")
    return Comparison(cell, "h3", "h2", kind, {"metric": metric})


def said(*kinds: tuple[str, ...]) -> str:
    found = [verdict(*one) for one in kinds]
    return " ".join(claims.claims_by_place(found, [H3_H2])[0].sentences)


def test_a_claim_that_rests_on_one_program_is_said_to() -> None:
    assert (
        said(("faster", "origin"), ("slower", "caddy"), ("faster", "nginx"))
        == "HTTP/3 is slower than HTTP/2 behind caddy only; it is faster than HTTP/2 behind origin and nginx."
    )
    assert (
        said(("same", "origin"), ("slower", "caddy"), ("undecided", "nginx"), ("slower", "envoy"))
        == "HTTP/3 is the same as HTTP/2 behind origin; it is slower than HTTP/2 behind caddy and envoy; "
        "it is undecided behind nginx."
    )
    assert said(("slower", "a"), ("slower", "b")) == "HTTP/3 is slower than HTTP/2 with all 2 programs, behind a and b."
    assert said(("undecided", "a"), ("undecided", "b")).startswith("Whether HTTP/3 or HTTP/2 is faster is not decided")
    assert said(("slower", "a")).endswith("behind a, the only one that was measured here.")


def test_servers_and_clients_are_named_as_far_as_needed() -> None:
    everyone = [Program(server, client) for server in ("caddy", "nginx") for client in ("load", "curl", "go")]
    assert claims.name_programs(everyone[:3], everyone, " only") == "behind caddy only, whatever the client"
    assert claims.name_programs([everyone[1], everyone[4]], everyone) == "with curl, whatever the server"
    assert (
        claims.name_programs([everyone[0], everyone[4]], everyone)
        == "behind caddy (asked by load) and nginx (asked by curl)"
    )
    assert claims.name_programs(everyone[:1], everyone[:3]) == "with load"


def test_claims_over_the_whole_study() -> None:
    found = [verdict("slower", "caddy"), verdict("slower", "caddy", path="near"), verdict("faster", "origin")]
    found += [
        verdict("undecided", "origin", path="near"),
        verdict("faster", "nginx"),
        verdict("faster", "nginx", path="near"),
    ]
    assert claims.claims(found, [H3_H2]) == [
        "“HTTP/3 is slower than HTTP/2” is shown behind caddy only (2 of 2 cells there; elsewhere 1 of 4 cells open).",
        "“HTTP/3 is faster than HTTP/2” holds for 2 of 3 programs, behind origin and nginx (3 of 4 cells).",
    ]
    both = [verdict("faster", "origin"), verdict("faster", "caddy")]
    assert claims.claims(both, [H3_H2]) == [
        "“HTTP/3 is faster than HTTP/2” holds for every program somewhere (2 of 2 cells)."
    ]
    assert claims.claims([verdict("faster", "origin")], [H3_H2]) == []


def test_losses_are_called_the_same_only_where_a_seed_repeats_them() -> None:
    drawn = RunFacts(Path("run"), {"paths": {"near": {}, "far": {}}}, 7, [])
    assert "the same losses behind every server" in claims.definition(drawn)
    assert "anew" not in claims.definition(drawn)
    by_netem = RunFacts(Path("run"), {"paths": {"near": {}, "far": {"emulator": "netem"}}}, 7, [])
    assert "the same losses" in claims.definition(by_netem)
    assert claims.definition(by_netem).endswith(" On far the kernel's netem draws the losses of every trial anew.")
    wholly = RunFacts(Path("run"), {"paths": {"far": {"emulator": "netem"}}}, 7, [])
    assert "anew" in claims.definition(wholly) and "the same losses" not in claims.definition(wholly)
    between_hosts = RunFacts(Path("run"), {"hosts": {"client": {}, "server": {}}}, 7, [])
    assert "losses" not in claims.definition(between_hosts)


def split(servers: tuple[str, ...], clients: tuple[str, ...], *shares: Share, **changes: Any) -> list[Decomposition]:
    def one(place: str, arm: str) -> Decomposition:
        return Decomposition(place, arm, "h2", shares, 1.0, 0.5, 2.0, servers, clients, 4, 20, (), **changes)

    return [replace(one("all places", "h3"), pooled=True), one("path=far", "h3")]


def test_what_few_programs_cannot_tell_is_said() -> None:
    shares = (Share("protocol", 0.3, 0.2, 0.4, 0.0, 0.9), Share("server", 0.6, 0.5, 0.7, 0.01, 0.99))
    shares += (Share("noise", 0.1, 0.05, 0.15, 0.0, 0.5),)
    text = " ".join(claims.shares_in_words(split(("origin", "caddy"), ("load",), *shares)))
    assert "60 % [50, 70] is the server, 30 % [20, 40] is the protocol and 10 % [5, 15] is noise" in text
    assert "On which of the two it depends more is not said" in text
    ranged = (replace(shares[0], without_low=0.2, without_high=0.5), *shares[1:])  # of connections, too
    (said, *_) = claims.shares_in_words(split(("origin", "caddy"), ("load",), *ranged))
    assert "; whichever one level or program is left out, the protocol's share is 20 to 50 %" in said
    alike = (replace(shares[0], without_low=0.996, without_high=0.998), *shares[1:])
    (said, *_) = claims.shares_in_words(split(("origin", "caddy"), ("load",), *alike))
    assert "the protocol's share is over 99 %" in said
    steady = " ".join(claims.shares_in_words(split(("origin", "caddy"), ("load",), *shares, weighs="program")))
    assert "the ratio depends more on the choice of program than on the protocol" in steady
    assert "Two servers, origin and caddy, tell next to nothing about servers in general" in text
    assert "they leave a share of 1 to 99 % possible" in text
    assert "There was one client only, load" in text
    assert "predicted in 0 of 1 comparison" in text
    many = " ".join(claims.shares_in_words(split(("a", "b", "c"), ("x", "y", "z"), *shares[::2])))
    assert "next to nothing" not in many
    assert "only" not in many
    assert "the ratio depends more" not in many
    assert "could not be split" in claims.shares_in_words([])[0]


def test_a_proxy_is_never_put_among_file_servers_in_silence() -> None:
    assert claims.about_proxies([]) == ""
    assert "envoy is a proxy and passes every request on to another server" in claims.about_proxies(["envoy"])
    assert "their times include a second program and a second hop" in claims.about_proxies(["envoy", "haproxy"])


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three servers, of which one is slow over HTTP/3 and one a proxy, and two clients."""
    shape = Shape(
        blocks=9,
        samples_per_trial=30,
        paths=("far",),
        connections=("new",),
        servers=("origin", "caddy", "envoy"),
        clients=("load", "curl"),
        proxies=("envoy",),
        http3_wait={"caddy": 2.6},
    )
    folder = write_run(tmp_path_factory.mktemp("runs") / "programs", shape)
    write_report(folder)
    return folder


def test_the_section_says_who_what_and_how_much(programs: Path) -> None:
    page = pages.read((programs / "report.html").read_text()).root
    here = next(section for section in page.all("section") if section.attributes.get("id") == "programs")
    assert "HTTP/3 is slower than HTTP/2 behind caddy only, whatever the client" in here.text
    assert re.search(r"[67]\d % \[\d+, \d+\] is the server", here.text.replace("\u00a0", " "))
    assert "Two clients, load and curl" in here.text
    assert "envoy is a proxy" in here.text
    assert len(here.all("figure")) == 3  # HTTP/1.1 and HTTP/3 over all places, every comparison
    for figure in here.all("svg"):
        assert "protocol" in figure.attributes["aria-label"]
    rows = [row for table in here.all("table") for row in table.all("tr") if "envoy" in row.text and "ms" in row.text]
    assert len(rows) == 6
    assert all("proxy: adds a hop" in row.text for row in rows)
    last = [table.all("tr")[-1].text for table in here.all("table") if table.all("caption")[0].text == "HTTP/3"]
    assert len(last) == 1
    assert "caddy" in last[0]
    answer = next(section for section in page.all("section") if section.attributes.get("id") == "answer")
    assert "holds behind caddy only" in answer.text


def test_a_protocol_that_is_slow_behind_one_server_is_a_difference_of_programs(programs: Path) -> None:
    page = pages.read((programs / "report.html").read_text()).root
    here = next(section for section in page.all("section") if section.attributes.get("id") == "programs")
    said = here.text.replace("\u00a0", " ")
    assert re.search(
        r"HTTP/3 takes \d+ ms longer behind caddy than behind origin, most of it the wait for the first octet; "
        r"HTTP/2 takes .{1,12} (longer|less). That is a difference of programs, not of protocols",
        said,
    )
    assert "behind origin than behind caddy" not in said
    assert not re.search(r"longer behind envoy than behind origin.{0,80}difference of programs", said)
    assert "a difference of programs, not of protocols" in " ".join(printed(programs, 100).split())
    explained = chain.explain(programs, "path=far,connection=new,server=caddy,client=load", "h3", packets=False)
    links = {link.name: link.sentences for link in words.links(explained.about, explained.chains[0])}
    assert len(links["programs"]) == 2  # against origin and against envoy
    assert all("longer behind caddy than behind" in sentence for sentence in links["programs"])
    other = chain.explain(programs, "path=far,connection=new,server=caddy,client=load", "h1", packets=False)
    assert "programs" not in {link.name for link in words.links(other.about, other.chains[0])}


def test_its_numbers_are_those_of_the_sql(programs: Path) -> None:
    page = pages.read((programs / "report.html").read_text()).root
    here = next(section for section in page.all("section") if section.attributes.get("id") == "programs")
    found = pages.numbers(here)
    assert {number.form for number in found} >= {
        "percent",
        "percent_interval",
        "duration",
        "duration_interval",
        "ratio",
    }
    pages.assert_sql_gives(programs, found)


def test_a_new_report_does_not_show_what_an_old_one_left(programs: Path) -> None:
    before = render(programs)
    for name in ("decomposition", "league"):
        (programs / f"{name}.parquet").unlink()
    assert render(programs) == before
    write_report(programs)
    with views.connect(programs) as connection:
        assert connection.execute("SELECT count(*) FROM league").fetchone() == (18,)
        assert connection.execute("SELECT sum(share) FROM decomposition WHERE pooled AND arm = 'h3'").fetchone() == (
            pytest.approx(1.0),
        )


def test_a_program_without_a_usable_trial_is_named(tmp_path: Path) -> None:
    shape = Shape(
        blocks=4, samples_per_trial=20, paths=("far",), connections=("new",), servers=("origin", "caddy", "nginx")
    )
    shape.troubles = False
    run = write_run(tmp_path / "run", shape)
    for file in (run / "trials").iterdir():
        table = pq.read_table(file)
        row = table.to_pylist()[0]
        if row["server"] == "nginx" and row["protocol"] == "h3":
            pq.write_table(pa.Table.from_pylist([row | {"valid": False}], table.schema), file)
    page = pages.read(render(run)).root
    here = next(section for section in page.all("section") if section.attributes.get("id") == "programs")
    assert here.text.count("Without a usable trial: nginx.") == 1
    assert "nginx: 0 usable blocks" in here.text


def test_the_terminal_says_it_too(programs: Path, small: Path) -> None:
    text = printed(programs, 80)
    assert "Protocol or program?" in text
    told = " ".join(text.split()).split("Protocol or program?")[1].split("Conformance:")[0]
    assert "a difference of programs, not of protocols" in told
    assert "Of the variation of HTTP/3 to HTTP/2, " in told
    assert "HTTP/1.1 to HTTP/2" not in told
    assert "There was one" not in told
    assert "adds a hop" in " ".join(text.split())
    assert [line for line in text.splitlines() if len(line) > 80 and not line.startswith(("Report: ", "Next: "))] == []
    assert printed(programs, 80, encoding="ascii").isascii()
    found = json.loads(terminal.as_json(programs))["programs"]
    assert {row["part"] for row in found["decomposition"]} == {
        "protocol",
        "server",
        "client",
        "server × client",
        "noise",
    }
    assert {row["server"] for row in found["league"]} == {"origin", "caddy", "envoy"}
    assert "Protocol or program?" not in printed(small, 80)
    assert json.loads(terminal.as_json(small))["programs"] == {"claims": [], "decomposition": [], "league": []}


def test_one_program_needs_no_section(small: Path) -> None:
    page = pages.read(render(small)).root
    assert not [section for section in page.all("section") if section.attributes.get("id") == "programs"]


def test_a_claim_of_a_metric_where_more_is_better_is_not_one_of_speed() -> None:
    found = [verdict("faster", "origin", metric="bitrate_mean_bits_per_s")]
    assert claims.claims_by_place(found, [H3_H2])[0].sentences == [
        "HTTP/3 has a higher mean bitrate shown than HTTP/2 behind origin, the only one that was measured here."
    ]
