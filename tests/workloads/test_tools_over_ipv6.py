"""What is tried beside a study, over IPv6: the path, the conformance of programs, and the replay of a page."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest

from tests.lab.inside import run_inside
from tests.workloads.test_campaign import trifecta
from trifecta.cli.option_parsing import is_ipv6
from trifecta.design import plan
from trifecta.implementations.clients.curl import curl_command
from trifecta.implementations.registry import CLIENTS
from trifecta.implementations.server import Unsupported
from trifecta.store.run import RunDirectory
from trifecta.studies import known_servers, load

STUDY = """
study: six
workload: {response: 1 kB, in_flight: 1, requests: 20, warmup: 2 requests}
paths: {near: {rtt: 20 ms}}
factors: {path: [near], connection: [new], ip: [LEVELS]}
budget: 1 min
"""


@pytest.mark.parametrize(("levels", "alone"), [("IPv6", True), ("IPv4", False), ("IPv4, IPv6", False)])
def test_a_study_over_ipv6_alone_is_known(tmp_path: Path, levels: str, alone: bool) -> None:
    file = tmp_path / "six.yaml"
    file.write_text(STUDY.replace("LEVELS", levels))
    assert plan.over_ipv6_alone(load(str(file), [], known_servers())) is alone
    assert is_ipv6(None, str(file)) is alone
    assert is_ipv6("IPv4", str(file)) is False
    assert is_ipv6("IPv6", str(file)) is True


@pytest.mark.lab
@pytest.mark.parametrize("by", ["option", "study"])
def test_a_path_is_measured_over_ipv6(tmp_path: Path, by: str) -> None:
    (tmp_path / "six.yaml").write_text(STUDY.replace("LEVELS", "IPv6"))
    words = {"option": ("--rtt", "20 ms", "--ip", "IPv6"), "study": ("--study", "six.yaml", "--path", "near")}[by]
    done = trifecta("link", "measure", *words, "--packets", "100", "--json", folder=tmp_path)
    document = json.loads(done.stdout)
    wrong = [one["text"] for one in document["findings"] if one["status"] == "fail"]
    # A machine whose hypervisor takes its CPUs sends some packets late, and the command says so.
    assert all("of packets left within" in text for text in wrong), wrong
    assert document["ip"] == "IPv6"
    assert document["probe"]["received"] == 100
    lines = {one["name"]: one for one in document["comparison"]}
    # An MTU of 1500 less the headers, of which that of IPv6 has 40 octets; over IPv4 1472 pass.
    assert (lines["largest datagram"]["asked"], lines["largest datagram"]["given"]) == (1452, 1452)
    assert lines["round trip, median"]["asked"] == 20 <= lines["round trip, median"]["given"]


SENT = """
import json
from pathlib import Path

def sent(lab):
    "Packets of TCP and UDP that the client's host sent over IPv4 and over IPv6."
    with lab.host("client").inside():
        six = dict(line.split() for line in Path("/proc/thread-self/net/snmp6").read_text().splitlines())
        ip = [line.split() for line in Path("/proc/thread-self/net/snmp").read_text().splitlines() if line[:3] == "Ip:"]
    return int(dict(zip(*ip))["OutRequests"]), int(six["Ip6OutRequests"]) - int(six["Icmp6OutMsgs"])
"""
COUNTED = (
    SENT
    + """
from trifecta.design.conformance import CASES
from trifecta.implementations.registry import CLIENTS, SERVERS
from trifecta.lab.engine import find_engine
from trifecta.workloads.conformance.probe import Probe, Subjects, standalone_bench

cases = tuple(case for case in CASES if case.octets <= 1000 and case.path.name != "rough")
with standalone_bench(find_engine(), Path(FOLDER), ["origin"], lambda: False, ipv6=IPV6) as bench:
    subjects = Subjects({"origin": SERVERS["origin"]}, {}, cases)
    results = Probe(bench, subjects, lambda *_: None).run()
    print(json.dumps([[one.outcome for one in results], *sent(bench.lab)]))
"""
)


@pytest.mark.lab
@pytest.mark.parametrize("ipv6", [True, False])
def test_a_server_conforms_over_either_version(tmp_path: Path, ipv6: bool) -> None:
    done = run_inside(COUNTED.replace("FOLDER", repr(str(tmp_path / "out"))).replace("IPV6", str(ipv6)), 120)
    assert done.returncode == 0, done.stderr
    outcomes, four, six = json.loads(done.stdout)
    assert len(outcomes) >= 9
    assert set(outcomes) == {"pass"}
    asked, other = (six, four) if ipv6 else (four, six)
    assert asked >= 5 * len(outcomes)
    assert other <= 2, "what a host says of itself, ICMPv6, is not counted"


@pytest.mark.lab
def test_conformance_is_asked_for_over_ipv6(tmp_path: Path) -> None:
    done = trifecta("conformance", "--server", "origin", "--ip", "ipv6", "--out", "out", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["ip"] == "IPv6"
    assert {one["outcome"] for one in document["results"]} == {"pass"}


PROBED = (
    SENT
    + """
import sys
from tests.workloads import drive
from tests.workloads.drive_inside import run
from trifecta.workloads import runner

full, grown = runner.conformance.full, []

def counted(session, *rest):
    before = sent(session.lab)
    results = full(session, *rest)
    grown.extend(after - least for after, least in zip(sent(session.lab), before))
    return results

runner.conformance.full = counted
named = [*(one for one in drive.SMALL if not one.startswith("server=")), "conformance=full", *SETTINGS]
assert run(Path(FOLDER), {"set": named, "proxies": ["haproxy"]}, drive._Events()) == 0
print(json.dumps(grown))
"""
)


@pytest.mark.lab
@pytest.mark.parametrize(
    ("levels", "six"), [("IPv6", True), ("IPv4,IPv6", False)], ids=["over IPv6 alone", "over both: IPv4"]
)
def test_a_study_over_ipv6_is_probed_in_full_over_it(tmp_path: Path, levels: str, six: bool) -> None:
    """All objects, of an own server and of a proxy, by the load and, where it is there, by curl."""
    clients = "load"
    if six:
        with suppress(Unsupported):
            CLIENTS["curl"].find()
            clients = "load,curl"
    servers = "origin,haproxy" if six else "origin"
    settings = [f"ip={levels}", f"server={servers}", f"client={clients}", "requests=10", "warmup=0"]
    code = PROBED.replace("FOLDER", repr(str(tmp_path / "run"))).replace("SETTINGS", repr(settings))
    done = run_inside(code, 280)
    assert done.returncode == 0, done.stderr
    four, over_six = json.loads(done.stdout.splitlines()[-1])
    run = RunDirectory.open(tmp_path / "run")
    results = run.conformance()
    assert {one.depth for one in results} == {"full"}
    assert [one for one in results if one.outcome not in ("pass", "not_offered")] == []
    passed = {(one.role, one.name, one.protocol) for one in results if one.outcome == "pass"}
    assert passed >= {("server", name, protocol) for name in servers.split(",") for protocol in ("h1", "h2", "h3")}
    assert {name for role, name, _ in passed if role == "client"} == set(clients.split(",")) - {"load"}
    asked, other = (over_six, four) if six else (four, over_six)
    assert asked >= 5 * len(results)
    assert other <= 2, "what a host says of itself, ICMPv6, is not counted"
    assert [row for row in run.rows() if row["error"] is not None] == [], "its trials go over IPv6 after it"


REPLAYED = """
import json
from pathlib import Path
from trifecta import pages
from trifecta.implementations.registry import SERVERS
from trifecta.workloads import replaying

asked, really = [], replaying.ask_all

def ask_all(page, protocol, asker, state):
    asked.append([protocol, asker.address])
    return really(page, protocol, asker, state)

replaying.ask_all = ask_all
found = list(replaying.check(pages.find("light"), {"origin": SERVERS["origin"]}, Path(FOLDER), ipv6=True))
print(json.dumps([asked, [one.same for one in found], [replaying.in_words(one) for one in found]]))
"""


@pytest.mark.lab
def test_a_page_is_replayed_over_ipv6(tmp_path: Path) -> None:
    try:
        curl_command()
    except Unsupported as error:
        pytest.skip(str(error))
    done = run_inside(REPLAYED.replace("FOLDER", repr(str(tmp_path / "work"))), 240)
    assert done.returncode == 0, done.stderr
    asked, same, words = json.loads(done.stdout)
    assert asked == [[protocol, "fd78::1"] for protocol in ("h1", "h2", "h3")]
    assert same == [True], words
