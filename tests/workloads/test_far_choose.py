"""From looks to a study: what can be compared, what is left out, and what is coming."""

from pathlib import Path

import pytest

from tests.analysis.test_far_signs import answered
from trifecta.design.emit import to_yaml
from trifecta.design.errors import CannotError
from trifecta.design.study_file import parse_study
from trifecta.design.workloads.far import FarWorkload
from trifecta.lab.host import LocalHost
from trifecta.lab.place import LocalPlace
from trifecta.workloads.far.addresses import spot_of, why_not
from trifecta.workloads.far.choose import LookRequest, choose, document
from trifecta.workloads.far.configs import Request
from trifecta.workloads.far.look import Looker
from trifecta.workloads.far.names import Resolved
from trifecta.workloads.far.rate_limiter import RateLimiter
from trifecta.workloads.far.traffic_estimate import traffic_estimate
from trifecta.workloads.stat import read_url

A, B = read_url("https://a.example/x"), read_url("https://b.example/")


def place(address="192.0.2.1", target=A, udp="open", **errors):
    answers = [answered(protocol, errors.get(protocol)) for protocol in ("h1", "h2", "h3")]
    return {
        "url": target.url, "level": address, "address": address, "resolved": [address], "dns_ns": None,
        "https_record": None, "announced": [], "answers": answers, "idle_rtt_ns": 1, "loaded_rtt_ns": None, "udp": udp,
    }  # fmt: skip


def wanted(*targets, **more):
    return LookRequest(targets or (A,), Path("ca.pem"), **more)


def test_all_protocols_at_the_one_address():
    found = choose(wanted(), [place()])
    assert found.protocols == ("h1", "h2", "h3")
    assert found.addresses == ("192.0.2.1",)
    assert found.left_out == ()
    study = parse_study(to_yaml(document(wanted(), found)), "race")
    assert study.factors["connection"] == ("new", "reused")
    assert study.workload.url == A.url
    assert study.workload.address == "192.0.2.1"
    assert "address" not in study.factors


def test_two_addresses_are_levels_and_more_are_families():
    two = choose(wanted(), [place("192.0.2.1"), place("2001:db8::1")])
    assert two.addresses == ("192.0.2.1", "2001:db8::1")
    many = choose(wanted(), [place(f"192.0.2.{n}") for n in range(3)])
    assert many.addresses == ("IPv4",)
    apart = choose(wanted(A, B), [place("192.0.2.1"), place("192.0.2.2", B)])
    assert apart.addresses == ("IPv4",)
    study = parse_study(to_yaml(document(wanted(A, B), apart)), "race")
    assert study.factors["url"] == (A.url, B.url)


def test_where_udp_is_blocked_the_others_are_compared_and_it_is_said():
    found = choose(wanted(), [place(h3="connect_timeout", udp="blocked")])
    assert found.protocols == ("h1", "h2")
    assert found.left_out == ("HTTP/3 failed at 192.0.2.1 (connect_timeout; UDP is blocked)",)


def test_an_address_that_does_not_answer_is_left_out():
    dead = {"h1": "connect_timeout", "h2": "connect_timeout", "h3": "connect_timeout"}
    found = choose(wanted(), [place("192.0.2.1"), place("2001:db8::1", **dead)])
    assert found.addresses == ("192.0.2.1",)
    assert "2001:db8::1: HTTP/1.1 failed with connect_timeout" in found.left_out[0]


def test_one_protocol_alone_is_nothing_to_compare():
    with pytest.raises(CannotError, match=r"HTTP/1\.1 failed with tls:alpn"):
        choose(wanted(), [place(h1="tls:alpn", h2="tls:alpn")])


@pytest.mark.parametrize(
    ("status", "said"),
    [(429, "which asks to slow down"), (301, "give https://there.example/ instead"), (404, "failed with status 404")],
)
def test_a_status_that_is_no_success_is_said_with_what_helps(status, said):
    one = place()
    one["answers"][0] |= {"status": status, "fields": {"location": "https://there.example/"}}
    assert spot_of(one, ("h1", "h2")) is None
    assert said in why_not(one, ("h1", "h2"))


def test_what_is_coming_is_no_more_than_the_caps():
    found = choose(wanted(), [place()])
    study = parse_study(to_yaml(document(wanted(), found)), "race")
    one = traffic_estimate(study, found.answer_bytes)
    assert one.hosts == ("a.example",)
    assert one.fewest_requests == 6 * 4 * (4 + 5) + 3 * 8
    assert one.most_requests == 1000
    assert one.most_bytes == 1000 * found.answer_bytes
    own = traffic_estimate(parse_study(to_yaml(document(wanted(owned=True), found)), "race"))
    assert own.owned
    assert own.manners.pace_per_s == 20


def test_what_a_level_stands_for():
    found = Resolved(("192.0.2.1", "2001:db8::1", "192.0.2.2"), 1)
    assert found.of("IPv4") == ["192.0.2.1", "192.0.2.2"]
    assert found.of("192.0.2.9") == ["192.0.2.9"]


def test_what_would_be_too_much_in_all_is_refused_before_anything_is_measured():
    large = place()
    large["answers"] = [one | {"wire_bytes": 12_000_000} for one in large["answers"]]
    with pytest.raises(CannotError, match=r"a response took 12\.0 MB, and the 20 of a block would be more than 200 MB"):
        choose(wanted(), [large])
    assert choose(wanted(owned=True), [large]).answer_bytes == 12_000_000


def test_a_look_ends_at_an_answer_that_is_more_than_a_minute_may_have(tmp_path):
    asked = []

    class Large(Looker):
        def once(self, request, connects=None):
            asked.append(request.protocol)
            return answered(request.protocol, size=21_000_000)

    workload = FarWorkload(url=A.url)
    looker = Large(LocalPlace(LocalHost()), workload, RateLimiter(workload.manners), tmp_path / "look.log")
    with pytest.raises(CannotError, match=r"a response took 21\.0 MB, and the limit is 20 MB a minute"):
        looker.see(Request(A, "192.0.2.1", "", Path("ca.pem")), "IPv4", Resolved(("192.0.2.1",), None), None)
    assert asked == ["h1"]
