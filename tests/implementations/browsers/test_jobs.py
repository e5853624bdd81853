"""The configuration of a driver: what is refused, by the name of its field."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.implementations.browsers.driving import config
from trifecta.implementations.browsers import authorities, jobs
from trifecta.implementations.browsers.chromium_flags import flags, protocol_flags
from trifecta.implementations.browsers.firefox_profile import preferences
from trifecta.implementations.browsers.records import summarise, tell_third_parties
from trifecta.implementations.visit import Fetch, Visit

FAR = {"least_gap_ns": 5_000_000_000, "agent": "trifecta/1 (measures this page)"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": "video"}, "video: belongs to kind 'video'"),
        ({"video": {"player_url": "https://a.lab/", "watch_ns": 5, "live": False}}, "video: belongs"),
        ({"discovery": "alt-svc", "protocol": "h2"}, "discovery: 'alt-svc' finds HTTP/3"),
        ({"url": "http://a.lab/"}, "url: 'http://a.lab/' is not an https URL"),
        ({"hosts": []}, "hosts: "),
        ({"hosts": ["a.lab, EXCLUDE *"]}, "hosts: "),
        ({"hosts": ["a.lab:443"]}, "hosts: "),
        ({"addresses": {"a.lab": "10.0.0.1, MAP *"}}, "addresses: "),
        ({"third_parties": ["b.lab"]}, "third_parties: b.lab: none of the hosts"),
        ({"third_parties": ["www.fake.lab"]}, "third_parties: www.fake.lab: none of the hosts"),
        ({"third_parties": "www.fake.lab"}, "third_parties: "),
        ({"addresses": {"a.lab": "fe80::1%eth0"}}, "addresses: "),
        ({"elsewhere": {"least_gap_ns": 1}}, "elsewhere: "),
        ({"elsewhere": {"least_gap_ns": -1, "agent": "t/1"}}, "elsewhere: "),
        ({"elsewhere": {"least_gap_ns": 1, "agent": "t\r\nX: 1"}}, "elsewhere: "),
        ({"elsewhere": FAR}, "elsewhere: www.fake.lab: without an address"),
        ({"elsewhere": FAR, "view": "warm"}, "elsewhere: belongs to cold visits of a page"),
        ({"viewport": [1350]}, "viewport: "),
        ({"visits": True}, "visits: True is not a whole number"),
        ({"visits": 0}, "visits: 0 is not a whole number from 1"),
    ],
)
def test_what_is_refused(tmp_path, changes, words):
    with pytest.raises(ValueError, match="^" + words.replace("(", r"\(")):
        jobs.read(json.dumps(config(tmp_path, **changes)))


def test_what_may_be_left_out(tmp_path):
    job = jobs.job_of(jobs.read(json.dumps(config(tmp_path))))
    assert (job.discovery, job.view, job.viewport, job.watch) == ("forced", "cold", (1350, 940), None)
    assert job.state == tmp_path / "work" / "browser"


THIRD = {"hosts": ["www.fake.lab", "fonts.b.lab"], "third_parties": ["fonts.b.lab"]}


@pytest.mark.parametrize(
    ("protocol", "alone", "beside"),
    [
        ("h1", ["--disable-http2", "--disable-quic"], ["--disable-quic"]),
        ("h2", ["--disable-quic"], ["--disable-quic"]),
        ("h3", *[["--enable-quic", "--origin-to-force-quic-on=www.fake.lab:443"]] * 2),
    ],
)
def test_no_protocol_is_forced_on_third_parties(tmp_path, protocol, alone, beside):
    own, other = (
        jobs.job_of(jobs.read(json.dumps(config(tmp_path, protocol=protocol, **more)))) for more in ({}, THIRD)
    )
    assert (protocol_flags(own), protocol_flags(other)) == (alone, beside)
    assert "EXCLUDE fonts.b.lab" in " ".join(flags(other, net_log=None))
    asked = preferences(other)
    assert asked["network.http.http2.enabled"] is True
    assert preferences(own)["network.http.http2.enabled"] == (protocol != "h1")
    mapped = "network.http.http3.alt-svc-mapping-for-testing"
    assert asked.get(mapped) == ("www.fake.lab;h3=:443" if protocol == "h3" else None)


def far(tmp_path, **changes):
    """A job of a page elsewhere: its host over IPv6, a third party over IPv4."""
    there = {"www.fake.lab": "2001:db8::1", "fonts.b.lab": "192.0.2.1"}
    document = config(tmp_path, addresses=there, elsewhere=FAR, ca_file=None, **THIRD, **changes)
    return jobs.job_of(jobs.read(json.dumps(document)))


def test_for_a_browser_elsewhere_there_are_the_hosts_with_an_address_and_no_other(tmp_path):
    job = far(tmp_path)
    assert job.elsewhere is not None
    assert (job.elsewhere.least_gap_ns, job.ca_file) == (5_000_000_000, None)
    told = flags(job, net_log=None)
    rules = "MAP www.fake.lab [2001:db8::1], MAP fonts.b.lab 192.0.2.1, MAP * ~NOTFOUND"
    assert f"--host-resolver-rules={rules}" in told
    assert "--no-proxy-server" in told
    assert "--origin-to-force-quic-on=www.fake.lab:443" in told
    asked = preferences(job)
    assert asked["network.dns.disableIPv6"] is False
    assert asked["dom.serviceWorkers.enabled"] is False
    lab = jobs.job_of(jobs.read(json.dumps(config(tmp_path))))
    assert "--no-proxy-server" not in flags(lab, net_log=None)
    assert preferences(lab)["network.dns.disableIPv6"] is True
    assert "dom.serviceWorkers.enabled" not in preferences(lab)


def test_every_certificate_of_a_file_is_taken_in_by_itself(tmp_path):
    job = far(tmp_path)
    assert authorities.files_of(job) == []
    one = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    file = tmp_path / "ca.pem"
    job = dataclasses.replace(job, ca_file=file, state=tmp_path)
    file.write_text(f"of the lab\n{one}")
    assert authorities.files_of(job) == [("lab", file)]
    file.write_text(one + one.replace("AAAA", "BBBB"))
    made = authorities.files_of(job)
    assert [name for name, _ in made] == ["lab 0", "lab 1"]
    assert ["AAAA" in path.read_text() for _, path in made] == [True, False]
    assert all(path.read_text().count("BEGIN") == 1 for _, path in made)


def test_what_third_parties_sent_is_counted_apart():
    def got(host, connection, protocol):
        return Fetch(f"https://{host}/", 0, connection=connection, protocol=protocol, done_ns=1, resumed=False)

    fetches = [got("www.a.lab", 1, "h3"), got("www.a.lab", 1, "h3"), got("fonts.b.lab", 2, "h2")]
    tell_third_parties(fetches, ("fonts.b.lab",))
    visit = Visit(0)
    summarise(visit, fetches)
    assert [fetch.third_party for fetch in fetches] == [False, False, True]
    assert (visit.requests, visit.third_party_requests, visit.third_party_connections) == (3, 1, 1)
    assert (visit.connections, visit.tcp_connections, visit.quic_connections) == (1, 0, 1)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return config(tmp_path_factory.mktemp("config"))


@given(st.sampled_from([*jobs._FIELDS]), JSON)
def test_any_value_is_taken_or_refused_by_name(whole, name, value):
    try:
        jobs.job_of(jobs.read(json.dumps(whole | {name: value})))
    except ValueError as error:
        assert str(error).startswith((name, "video:", "discovery:"))


@given(st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_line_is_refused_in_words(line):
    with pytest.raises(ValueError, match=": "):
        jobs.read(line)
