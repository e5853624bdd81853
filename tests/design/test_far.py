"""Studies of servers elsewhere: what they may ask, and what nobody should."""

import pytest

from trifecta.design import manners, plan
from trifecta.design.errors import UserError
from trifecta.design.far import AS_IS, ELSEWHERE, family_of, parse_address
from trifecta.design.manners import Manners
from trifecta.design.quantity import QuantityError
from trifecta.design.study_file import parse_study
from trifecta.design.workloads.far import FarWorkload

URL = "https://www.example.org/a?id=7"


def read(workload="", factors="", more=""):
    text = f"study: far\nworkload: {{kind: far, requests: 4, url: '{URL}'{workload}}}\nfactors: {{{factors}}}\n{more}"
    return parse_study(text, "far.yaml")


def test_nothing_of_it_is_a_lab():
    study = read()
    assert study.workload.family == "far"
    assert study.workload.outside
    assert study.factors["path"] == (AS_IS,)
    assert study.factors["server"] == (ELSEWHERE,)
    assert not study.paths[AS_IS].linked
    assert not plan.limits_cpu(study)
    assert plan.places(study) == set()


def test_it_reads_back_to_the_same():
    levels = "connection: [new, reused], address: [192.0.2.1, '2001:DB8::0001', ipv6]"
    study = read(", owned: true, pace: 5/s, volume: 30 MB, most_requests: 2000, ca: ca.pem", levels)
    again = parse_study(study.source, "again")
    assert again == study
    assert study.factors["address"] == ("192.0.2.1", "2001:db8::1", "IPv6")
    assert study.workload.manners == Manners(5.0, 30_000_000, 2000, manners.TO_ONES_OWN.most_bytes)
    assert "owned: true" in study.source
    assert "owned" not in read().source


def test_urls_are_levels_though_they_have_equals_signs():
    text = "study: far\nworkload: {kind: far, requests: 4}\nfactors: {url: ['https://a.example/?x=1&y=2', 'https://b.example/']}\n"
    study = parse_study(text, "far.yaml")
    keys = [cell.key for cell in plan.cells(study)]
    assert "url=https://a.example/?x=1&y=2" in keys[0]
    named = parse_study(study.source + f"cells: ['{keys[1]}']\n", "named")
    assert [cell.key for cell in plan.cells(named)] == [keys[1]]
    workloads = [plan.workload_for(study, one) for one in plan.treatments(study, plan.cells(study)[:1])]
    assert {workload.url for workload in workloads} == {"https://a.example/?x=1&y=2"}


def test_a_trial_opens_its_connection_before_it_measures():
    workload = FarWorkload(url=URL, requests=4)
    assert [workload.every_request(one) for one in ("new", "reused")] == [4, 5]
    assert FarWorkload(url=URL, requests=4, resumption=True).every_request("new") == 5
    assert workload.least_ns(0, "h3", "reused") == 4 * 500_000_000


@pytest.mark.parametrize(
    ("workload", "factors", "more", "said"),
    [
        (", pace: 3/s", "", "", "pace: 3/s is more than 2/s, the most at a server of others; lower it, or claim it"),
        (", volume: 21 MB", "", "", "volume: 21 MB is more than 20 MB"),
        (", most_requests: 1001", "", "", "most_requests: 1001 is more than 1000"),
        (", most_volume: 1 GB", "", "", "most_volume: 1 GB is more than 200 MB"),
        (", owned: true, pace: 2000/s", "", "", "pace: 2000/s is more than 1000/s, the most that is asked of any"),
        (", pace: 0/s", "", "", "no pace"),
        (", method: POST", "", "", "a POST may change something there; use GET or HEAD"),
        (", duration: 1 s", "", "", "counts its requests; give 'requests', and no duration"),
        (", warmup: 2 requests", "", "", "comes by itself"),
        (", address: here", "", "", "'here' is not an address; give IPv4, IPv6, or an address like"),
        (", in_flight: 2", "", "", "is not a field of the workload 'far'"),
        ("", "path: [clean]", "", "path 'clean' is not defined; choose from as-is"),
        ("", "server: [origin]", "", "no server 'origin'"),
        ("", "client: [curl]", "", "is not a factor of the workload 'far'"),
        ("", "", "paths: {as-is: {rtt: 50 ms}}\n", "nothing of a path to a server elsewhere is emulated"),
    ],
)
def test_what_it_may_not_ask_is_said_with_the_remedy(workload, factors, more, said):
    with pytest.raises(UserError) as raised:
        read(workload, factors, more)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "url", ["http://a.example/", "a.example", "https://a.example/a,b", "https://a example/", "https://"]
)
def test_what_is_no_url_is_refused(url):
    with pytest.raises(UserError, match=r"workload\.url: "):
        parse_study(f"study: far\nworkload: {{kind: far, requests: 4, url: '{url}'}}\n", "far.yaml")


def test_places_are_levels_and_no_arms_of_a_block():
    study = read("", "vantage: [here, 'ssh://me@a.example.net', 'ssh://b:2222']")
    assert study.factors["vantage"] == ("here", "ssh://me@a.example.net", "ssh://b:2222")
    assert parse_study(study.source, "again") == study
    for cell in plan.cells(study):
        asked = {plan.workload_for(study, one).asked_from for one in plan.treatments_of(study, cell)}
        assert asked == {cell.levels["vantage"]}
    assert read(", vantage: 'ssh://a'").workload.asked_from == "ssh://a"
    assert read().workload.asked_from == "here"
    assert "vantage" not in read().source, "a study from before would be another"


@pytest.mark.parametrize(
    ("level", "said"), [("frankfurt", "is not a host; write ssh://HOST"), ("ssh://me:pw@a", "a password has no place")]
)
def test_a_place_that_is_none_is_refused(level, said):
    with pytest.raises(UserError) as raised:
        read("", f"vantage: ['{level}']")
    assert said in str(raised.value)
    assert "pw" not in str(raised.value)


def test_pages_are_visited_from_here_alone():
    text = "study: page\nworkload: {kind: far-page, url: 'https://www.example.org/', vantage: 'ssh://a'}\n"
    with pytest.raises(UserError, match="vantage: is not a field of the workload 'far-page'"):
        parse_study(text, "page.yaml")


def test_without_a_url_nothing_is_asked():
    with pytest.raises(UserError, match=r"workload\.url: is missing"):
        parse_study("study: far\nworkload: {kind: far, requests: 4}\n", "far.yaml")


def test_families():
    assert [family_of(one) for one in ("IPv6", "192.0.2.1", "2001:db8::1")] == ["IPv6", "IPv4", "IPv6"]
    with pytest.raises(QuantityError):
        parse_address("192.0.2")


@pytest.mark.parametrize(
    ("answer_bytes", "gap_ms"), [(0, 500), (150_000, 500), (1_000_000, 3_000), (20_000_000, 60_000)]
)
def test_the_pause_follows_from_pace_and_volume(answer_bytes, gap_ms):
    assert manners.TO_OTHERS.gap_ns(answer_bytes) == gap_ms * 1_000_000
