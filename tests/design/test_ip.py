"""The version of IP as a field and a factor: which studies have it, and that older ones stay what they were."""

from __future__ import annotations

import pytest

from tests.design.test_servers import read as read_servers
from tests.design.test_servers import refused
from trifecta.conclude.work_words import in_words
from trifecta.design import arms, ip, plan
from trifecta.design.errors import UserError
from trifecta.design.model import Study
from trifecta.design.study_file import parse_study
from trifecta.workloads.requests.session import options_for

MINE = "study: mine\nworkload: {{{}}}\n{}"
FAR = "kind: far, url: 'https://a.example/', requests: 20"
KINDS = {
    "requests": "kind: requests, requests: 20",
    "chain": "kind: chain, requests: 20, hosts: 2",
    "fan-in": "kind: fan-in, requests: 20",
    "sba-registration": "kind: sba-registration, requests: 20",
    "page": "kind: page",
    "video": "kind: video",
}


def read(workload: str = KINDS["requests"], rest: str = "") -> Study:
    return parse_study(MINE.format(workload, rest), "mine.yaml")


@pytest.mark.parametrize("workload", KINDS.values(), ids=KINDS)
def test_every_workload_in_a_lab_has_it_and_ipv4_leaves_no_trace(workload: str) -> None:
    assert read(f"{workload}, ip: IPv4").source == read(workload).source
    asked = read(f"{workload}, ip: ipv6")
    assert "  ip: IPv6\n" in asked.source
    assert parse_study(asked.source, "again.yaml") == asked
    assert {plan.workload_for(asked, one).ip for one in plan.treatments(asked)} == {"IPv6"}
    assert read(workload).workload.ip is None


def test_levels_make_cells_and_each_has_a_server_of_its_own() -> None:
    study = read(rest="factors: {ip: [IPv4, IPv6], protocol: [HTTP/2]}")
    found = {str(one.cell.levels["ip"]): plan.workload_for(study, one) for one in plan.treatments(study)}
    assert {level: one.ip for level, one in found.items()} == {"IPv4": None, "IPv6": "IPv6"}
    assert [options_for(found[level]).ipv6 for level in ("IPv4", "IPv6")] == [False, True]
    assert parse_study(study.source, "again.yaml") == study


def test_compared_it_is_the_only_thing_that_differs_in_a_block() -> None:
    study = read(rest="compare: ip\nfactors: {ip: [IPv4, IPv6], protocol: [HTTP/1.1, HTTP/3]}")
    assert plan.arms(study) == ["IPv4", "IPv6", "IPv4#aa"]
    for cell in plan.cells(study):
        trials = plan.block_trials(study, cell, 0, 0)
        assert {one.arm: plan.workload_for(study, one).ip for one in trials} == {
            "IPv4": None,
            "IPv6": "IPv6",
            "IPv4#aa": None,
        }
        assert len({(one.seed, one.protocol, one.path) for one in trials}) == 1


def test_what_it_is_called() -> None:
    assert (arms.factor_words("ip"), arms.arm_words("ip", "IPv6#aa")) == ("IP", "IPv6#aa")
    about = {"method": "GET", "response_bytes": 1000, "in_flight": 2, "ip": "IPv6"}
    said = [in_words(about, factors, browsing=False, closed=True) for factors in ([], ["ip"])]  # type: ignore[arg-type]
    assert said == ["GET of 1 kB, 2 in flight, closed loop, over IPv6", "GET of 1 kB, 2 in flight, closed loop"]


@pytest.mark.parametrize(
    ("workload", "rest", "words"),
    [
        ("requests: 20, ip: IPv5", "", "ip: 'IPv5' is not a version of IP"),
        (f"{FAR}, ip: IPv6", "", "ip: is not a field of the workload 'far'"),
        (FAR, "compare: ip", "'ip' is no factor of the workload 'far'"),
        ("requests: 20", "factors: {ip: [IPv6, ipv6]}", "level 'IPv6' is listed twice"),
    ],
)
def test_what_is_refused(workload: str, rest: str, words: str) -> None:
    with pytest.raises(UserError) as error:
        read(workload, rest)
    assert words in str(error.value)


def test_a_server_as_data_may_be_told_address_and_port_in_one_word() -> None:
    made = read_servers("{mine: 'cmd:./srv {endpoint} {cert} {key}'}", "[mine]")
    assert made.servers["mine"].command[1:] == ("{endpoint}", "{cert}", "{key}")
    said = refused("{mine: 'cmd:./srv {address} {cert} {key}'}", "[mine]")
    assert "servers.mine: says nowhere {port}; put it where the server reads it" in said


def test_an_address_of_ipv6_is_in_brackets_before_a_port() -> None:
    assert [ip.endpoint(address, 53) for address in ("10.77.0.2", "fd77::2")] == ["10.77.0.2:53", "[fd77::2]:53"]
    assert [ip.version_of(address) for address in ("10.77.0.2", "fd77::2")] == ["IPv4", "IPv6"]
