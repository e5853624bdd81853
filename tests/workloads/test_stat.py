"""One URL over every protocol: a real origin on loopback, servers that speak less, and URLs of all sorts."""

import json
import socket
import subprocess
from contextlib import contextmanager
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trifecta.design.errors import CannotError, UserError
from trifecta.design.stat import PHASES, RequestOptions
from trifecta.lab.certificates import make_certificates
from trifecta.lab.engine import find_engine
from trifecta.workloads import stat

PROTOCOLS = ("h1", "h2", "h3")
QUICK = RequestOptions(timeout_ns=20_000_000_000)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return make_certificates(tmp_path_factory.mktemp("pki"), ["localhost"], ["127.0.0.1"])


@contextmanager
def origin(certificates, protocols=PROTOCOLS):
    config = {
        "address": "127.0.0.1",
        "port": 0,
        "certificate_file": str(certificates.chain),
        "key_file": str(certificates.key),
        "protocols": list(protocols),
    }
    with subprocess.Popen([find_engine(), "origin", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(config).encode() + b"\n")
        process.stdin.flush()
        try:
            yield json.loads(process.stdout.readline())["ready"]["port"]
        finally:
            process.terminate()


def asked(certificates, url, protocols=PROTOCOLS, how=QUICK, **more):
    return stat.ask(find_engine(), stat.read_url(url), protocols, how, certificates.authority, **more)


def test_every_protocol_answers_and_its_phases_are_the_whole(certificates):
    with origin(certificates) as port:
        made = asked(certificates, f"https://localhost:{port}/bytes/70000?x=ü", count=2)
    for protocol, attempts in made.items():
        for one in attempts:
            assert (one.error, one.spoken, one.status, one.bytes_in) == (None, protocol, 200, 70000)
            assert one.address == "127.0.0.1"
            assert sum(one.phases_ns.values()) == one.total_ns
            assert set(one.phases_ns) == set(PHASES) - ({"tcp", "tls"} if protocol == "h3" else {"quic"})
            assert list(one.phases_ns) == sorted(one.phases_ns, key=PHASES.index)
            assert not one.resumed


def test_the_protocols_take_turns(certificates):
    order = []
    with origin(certificates) as port:
        asked(
            certificates, f"https://localhost:{port}/", ("h1", "h2"), count=2, tell=lambda *each: order.append(each[0])
        )
    assert order == ["h1", "h2", "h2", "h1"]


def test_a_protocol_that_is_not_spoken_is_said_to_be_so(certificates):
    with origin(certificates, ["h1"]) as port:
        made = asked(certificates, f"https://localhost:{port}/bytes/1")
    assert {name: attempts[0].error for name, attempts in made.items()} == {
        "h1": None,
        "h2": "tls:alpn",
        "h3": "connect_refused",
    }
    assert made["h2"][0].spoken is None
    assert made["h2"][0].total_ns is None


def test_resume_measures_the_second_request(certificates):
    with origin(certificates) as port:
        made = asked(certificates, f"https://localhost:{port}/bytes/1", how=RequestOptions(resume=True))
    assert all(attempts[0].resumed for attempts in made.values())


def test_an_address_replaces_the_look_up(certificates):
    with origin(certificates) as port:
        how = RequestOptions(address="127.0.0.1", method="HEAD")
        made = asked(certificates, f"https://localhost:{port}/bytes/9", ("h2",), how)
    assert "dns" not in made["h2"][0].phases_ns
    assert made["h2"][0].bytes_in == 0


def test_a_stranger_is_not_trusted(certificates, tmp_path):
    other = make_certificates(tmp_path / "other", ["localhost"], ["127.0.0.1"])
    with origin(other) as port:
        made = asked(certificates, f"https://localhost:{port}/")
    assert {attempts[0].error for attempts in made.values()} == {"tls:certificate"}


def test_a_server_that_never_answers_ends_in_time(certificates):
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.socket(type=socket.SOCK_DGRAM) as mute:
        mute.bind(silent.getsockname())
        url = f"https://127.0.0.1:{silent.getsockname()[1]}/"
        made = asked(certificates, url, ("h1", "h3"), RequestOptions(timeout_ns=200_000_000))
    assert {name: attempts[0].error for name, attempts in made.items()} == {
        "h1": "connect_timeout",
        "h3": "connect_timeout",
    }


def test_a_name_that_stands_for_nothing(certificates):
    with pytest.raises(CannotError, match=r"trifecta\.invalid cannot be resolved"):
        asked(certificates, "https://trifecta.invalid/")


def test_authorities_that_are_none(certificates, tmp_path):
    (tmp_path / "ca.pem").write_text("nothing")
    with pytest.raises(UserError, match=r"ca\.pem: holds no certificate"):
        stat.ask_once(find_engine(), stat.read_url("localhost"), "h1", QUICK, tmp_path / "ca.pem")


@pytest.mark.parametrize(
    ("url", "host", "port", "path"),
    [
        ("https://a.example", "a.example", 443, "/"),
        ("a.example:8443/x?y=1&z=%20#part", "a.example", 8443, "/x?y=1&z=%20"),
        ("https://BÜCHER.example/ü b", "xn--bcher-kva.example", 443, "/%C3%BC%20b"),
        ("https://[::1]:9/?", "::1", 9, "/"),
        ("https://a.example?q", "a.example", 443, "/?q"),
    ],
)
def test_urls(url, host, port, path):
    target = stat.read_url(url)
    assert (target.host, target.port, target.path) == (host, port, path)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://a.example/", "http is not measured"),
        ("https://user:secret@a.example/", "names and passwords"),
        ("https:///x", "has no host"),
        ("https://a.example:99999/", "Port out of range"),
        ("https://[::1/", "Invalid IPv6"),
        (f"https://{'a' * 70}.example/", "the host is no name"),
    ],
)
def test_urls_that_cannot_be_asked_for(url, why):
    with pytest.raises(UserError, match=why):
        stat.read_url(url)


@given(st.text() | st.text().map("https://a.example/{}".format) | st.text().map("https://{}/".format))
def test_any_text_is_a_url_or_refused(text):
    try:
        target = stat.read_url(text)
    except UserError:
        return
    assert target.path.startswith("/")
    assert all(0x20 < ord(letter) < 0x7F for letter in target.path + target.host)


def test_bars_keep_the_proportions():
    from trifecta.report.stat import bar

    phases = {"tcp": 20_000_000.0, "tls": 21_000_000.0, "wait": 40_000_000.0, "transfer": 9_000_000.0}
    drawn = bar(phases, 60 / 90_000_000)
    ends = [sum(len(signs) for _, signs in drawn[: number + 1]) for number in range(len(drawn))]
    assert ends == [13, 27, 54, 60]
    assert len({signs[0] for _, signs in drawn}) == len(drawn)
    assert all(first <= second for first, second in pairwise(ends))
