"""From events of the DevTools protocol to fetches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trifecta.implementations.browsers.cdp_errors import error_class
from trifecta.implementations.browsers.cdp_network import NetworkLog
from trifecta.implementations.browsers.page_times import take_page_times
from trifecta.implementations.browsers.records import number_connections, summarise
from trifecta.implementations.visit import Visit

TIMING = {
    "requestTime": 100.0, "dnsStart": 1, "dnsEnd": 2, "connectStart": 2, "sslStart": 12, "sslEnd": 32, "connectEnd": 32,
    "sendStart": 33, "sendEnd": 34, "receiveHeadersStart": 55, "receiveHeadersEnd": 56,
}  # fmt: skip


def sent(key="1", url="https://a.lab/", at=99.5, **more):
    request = {"url": url, "method": "GET", "headers": {"accept": "*/*"}, "initialPriority": "VeryHigh"}
    return {
        "requestId": key,
        "request": request,
        "timestamp": at,
        "type": "Document",
        "initiator": {"type": "other"},
    } | more


def response(**more):
    headers = {"content-length": "1000", "content-type": "text/html"}
    return {
        "status": 200, "statusText": "", "protocol": "h2", "headers": headers, "mimeType": "text/html",
        "connectionId": 77, "connectionReused": False, "timing": TIMING, "encodedDataLength": 900,
        "securityDetails": {"protocol": "TLS 1.3", "cipher": "AES_128_GCM"}, "remoteIPAddress": "10.0.0.1",
    } | more  # fmt: skip


def played(*events):
    log = NetworkLog()
    handlers = log.handlers()
    for name, event in events:
        handlers[name](event)
    return log.fetches


def whole(key="1", answer=None, **more):
    return (
        ("requestWillBeSent", sent(key, **more)),
        ("responseReceived", {"requestId": key, "type": "Document", "response": answer or response()}),
        ("dataReceived", {"requestId": key, "dataLength": 1000, "encodedDataLength": 0}),
        ("loadingFinished", {"requestId": key, "timestamp": 100.2, "encodedDataLength": 1100}),
    )


def test_a_request_with_everything():
    (fetch,) = played(*whole())
    assert (fetch.protocol, fetch.tls_version, fetch.cipher, fetch.kind) == ("h2", "1.3", "AES_128_GCM", "document")
    assert (fetch.started_ns, fetch.connect_start_ns, fetch.tcp_connected_ns) == (
        99_500_000_000,
        100_002_000_000,
        100_012_000_000,
    )
    assert (fetch.secured_ns, fetch.request_sent_ns, fetch.first_byte_ns) == (
        100_032_000_000,
        100_034_000_000,
        100_055_000_000,
    )
    assert (fetch.done_ns, fetch.wire_bytes, fetch.header_bytes, fetch.body_bytes) == (100_200_000_000, 1100, 100, 1000)
    assert (fetch.from_cache, fetch.missing, fetch.error) == (False, False, None)


def test_quic_has_no_tcp_handshake():
    (fetch,) = played(*whole(answer=response(protocol="h3", securityDetails={"protocol": "QUIC", "cipher": "X"})))
    assert (fetch.protocol, fetch.tcp_connected_ns, fetch.tls_version) == ("h3", None, "1.3")


def test_a_redirect_is_two_fetches():
    first, second = played(
        ("requestWillBeSent", sent(url="https://a.lab/old")),
        *whole(redirectResponse=response(status=301, encodedDataLength=120), url="https://a.lab/new"),
    )
    assert (first.status, first.redirect_url, first.wire_bytes, first.body_bytes) == (301, "https://a.lab/new", 120, 0)
    assert (second.status, second.url) == (200, "https://a.lab/new")


def test_what_failed_and_what_is_no_request():
    (failed,) = played(
        ("requestWillBeSent", sent("1", url="data:text/plain,x")),
        ("loadingFinished", {"requestId": "1", "timestamp": 1, "encodedDataLength": 0}),
        ("requestWillBeSent", sent("2")),
        ("loadingFailed", {"requestId": "2", "timestamp": 101.0, "errorText": "net::ERR_QUIC_PROTOCOL_ERROR"}),
    )
    assert (failed.error, failed.done_ns) == ("quic:transport", 101_000_000_000)


def test_a_visit_counts_its_fetches():
    cached = played(*whole("3"), ("requestWillBeSent", sent("4")), ("requestServedFromCache", {"requestId": "4"}))[1:]
    other = response(connectionId=78, protocol="h3", headers={"x-trifecta-replay": "missing"}, status=404)
    fetches = [*played(*whole("1"), *whole("2", other, url="https://b.lab:444/?x")), *cached]
    visit = Visit(1)
    number_connections(fetches)
    summarise(visit, fetches)
    assert (visit.requests, visit.failed_requests, visit.missing_requests, visit.origins) == (2, 1, 1, 2)
    assert (visit.connections, visit.tcp_connections, visit.quic_connections) == (2, 1, 1)
    assert [fetch.connection for fetch in fetches] == [0, 1, None]
    assert (visit.wire_bytes, visit.body_bytes) == (1100, 1000)
    assert visit.resumed_connections is None


def test_equal_work_has_an_equal_digest_whatever_the_protocol():
    visits = []
    for protocol, events in (
        ("h1", [*whole("1"), *whole("2", url="https://a.lab/b")]),
        ("h3", [*whole("2", url="https://a.lab/b"), *whole("1")]),
    ):
        fetches = played(*events)
        for fetch in fetches:
            fetch.protocol = protocol
        visits.append(Visit(1))
        summarise(visits[-1], fetches)
    assert visits[0].work == visits[1].work
    summarise(visits[1], fetches[:1])
    assert visits[0].work != visits[1].work


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("net::ERR_CONNECTION_REFUSED", "connect_refused"),
        ("Page.goto: net::ERR_CERT_AUTHORITY_INVALID at https://a", "tls:certificate"),
        ("net::ERR_QUIC_HANDSHAKE_FAILED", "quic:transport"),
        ("net::ERR_NAME_NOT_RESOLVED", "browser:name"),
        ("net::ERR_OF_ANOTHER_KIND", "browser:other"),
        ("no idea", "browser:other"),
    ],
)
def test_errors_have_classes(words, named):
    assert error_class(words) == named


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(JSON, JSON)
def test_page_times_of_any_shape(navigation, paint):
    """Pages are foreign: their scripts can put anything into what they answer."""
    visit = Visit(1)
    take_page_times(visit, {"navigation": navigation, "paint": paint, "lcp": paint}, 5)
    assert visit.started_ns == 5
    take_page_times(Visit(1), navigation, 5)
