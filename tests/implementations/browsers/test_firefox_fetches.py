"""What Firefox says of its requests becomes fetches: times, connections, sizes, errors."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trifecta.implementations.browsers.firefox_fetches import error_class, fetches
from trifecta.implementations.visit import Fetch

WALL_NS = 1_795_000_000_000_000_000
PAGE = "https://www.light.lab/"


def at(ms: float) -> int:
    """Microseconds since 1970 of so many milliseconds on CLOCK_MONOTONIC."""
    return (WALL_NS + round(ms * 1e6)) // 1000


def request(url: str = PAGE, **changes: Any) -> dict[str, Any]:
    """A request that opened a connection for itself."""
    return {
        "ended": True, "refused": False, "url": url, "method": "GET", "type": 6, "error": None, "tls_error": None,
        "protocol": "h2", "local_port": 40000, "remote_address": "192.168.2.2", "status": 200, "status_text": "OK",
        "mime": "text/html", "cached": None, "body_bytes": 100, "transfer_bytes": 160, "request_bytes": 400,
        "resumed": False, "tls_version": 4, "cipher": "TLS_AES_128_GCM_SHA256", "asyncOpenTime": at(10),
        "domainLookupStartTime": at(11), "domainLookupEndTime": at(12), "connectStartTime": at(13),
        "tcpConnectEndTime": at(20), "secureConnectionStartTime": at(20), "connectEndTime": at(30),
        "requestStartTime": at(31), "responseStartTime": at(40), "responseEndTime": at(50), "initiator": "link",
        "request_headers": [["Priority", "u=0, i"]], "response_headers": [["Content-Type", "text/html"]],
    } | changes  # fmt: skip


def later(url: str, **changes: Any) -> dict[str, Any]:
    """A request on the connection of the first."""
    none = dict.fromkeys(
        ("domainLookupStartTime", "domainLookupEndTime", "connectStartTime", "tcpConnectEndTime",
         "secureConnectionStartTime", "connectEndTime"), 0,
    )  # fmt: skip
    times = {"asyncOpenTime": at(60), "requestStartTime": at(61), "responseStartTime": at(62)}
    return request(url, **(none | times | {"responseEndTime": at(70)} | changes))


def made(*requests: dict[str, Any], decoded: Any = (), protocol: str = "h2") -> list[Fetch]:
    return fetches(requests, decoded, wall_ns=WALL_NS, protocol=protocol, now_ns=5)


def test_times_are_on_the_monotonic_clock_and_belong_to_who_waited() -> None:
    first, second = made(later(PAGE + "a.css", type=4), request())
    assert first.url == PAGE
    assert first.kind == "document"
    assert first.priority == "u=0, i"
    assert (first.started_ns, first.dns_start_ns, first.dns_end_ns) == (10_000_000, 11_000_000, 12_000_000)
    assert (first.connect_start_ns, first.tcp_connected_ns, first.secured_ns) == (13_000_000, 20_000_000, 30_000_000)
    assert (first.request_sent_ns, first.first_byte_ns, first.done_ns) == (31_000_000, 40_000_000, 50_000_000)
    assert (first.connection_reused, second.connection_reused) == (False, True)
    assert first.connection == second.connection
    assert second.kind == "stylesheet"
    assert second.connect_start_ns is second.secured_ns is second.dns_start_ns is None
    assert first.tls_version == "1.3"


def test_a_connection_that_stood_before_the_request_is_nobodys() -> None:
    # Alt-Svc (RFC 7838): Firefox validates the alternative by itself, long before a request uses it.
    (early,) = made(request(asyncOpenTime=at(35), protocol="h3"))
    assert early.connect_start_ns is early.secured_ns is early.dns_start_ns is None
    assert early.connection_reused
    # An attempt that another connection overtook has no TLS part.
    (raced,) = made(request(secureConnectionStartTime=0))
    assert raced.connect_start_ns is raced.secured_ns is None


def test_quic_has_no_tcp_and_another_connection_than_tcp_on_the_same_port() -> None:
    tcp, quic = made(request(), later(PAGE + "a", protocol="h3", connectStartTime=at(60), connectEndTime=at(60.5),
                                      secureConnectionStartTime=at(60)))  # fmt: skip
    assert quic.connection != tcp.connection
    assert quic.tcp_connected_ns is None
    assert quic.secured_ns == 60_500_000


def test_sizes() -> None:
    gzip = [["Content-Encoding", "gzip"]]
    one, two = made(
        request(protocol="http/1.1"), later(PAGE + "b", response_headers=gzip), decoded=[[PAGE + "b", 300]]
    )  # fmt: skip
    assert (one.wire_bytes, one.header_bytes, one.body_bytes, one.decoded_bytes) == (160, 60, 100, 100)
    assert one.request_header_bytes == 400
    # What is said of a head in HTTP/2 is its length as text: it is not taken for what was sent.
    assert (two.wire_bytes, two.header_bytes, two.request_header_bytes) == (None, None, None)
    assert (two.body_bytes, two.decoded_bytes) == (100, 300)
    (unknown,) = made(request(response_headers=gzip), decoded=[[PAGE, 0]])
    assert unknown.decoded_bytes is None
    (chunked,) = made(request(protocol="http/1.1", response_headers=[["transfer-encoding", "chunked"]]))
    assert (chunked.wire_bytes, chunked.header_bytes) == (160, None)
    (cached,) = made(request(cached=True))
    assert cached.from_cache
    assert (cached.wire_bytes, cached.protocol, cached.connection) == (0, None, None)


def test_what_the_recording_has_no_answer_to_is_missing() -> None:
    (fetch,) = made(request(status=404, response_headers=[["X-Trifecta-Replay", "missing"]]))
    assert fetch.missing
    assert fetch.error is None


@pytest.mark.parametrize(
    ("error", "tls_error", "protocol", "expected"),
    [
        (None, None, "h2", None),
        ("NS_BINDING_REDIRECTED", None, "h2", None),
        ("NS_ERROR_CONNECTION_REFUSED", None, "h2", "connect_refused"),
        ("NS_ERROR_NET_TIMEOUT", None, "h2", "connect_timeout"),
        ("NS_ERROR_NET_TIMEOUT", None, "h3", "quic:timeout"),
        ("NS_ERROR_UNKNOWN_HOST", None, "h3", "browser:name"),
        ("0x805A2000", "SEC_ERROR_UNKNOWN_ISSUER", "h3", "tls:certificate"),
        ("0x805A2000", "SSL_ERROR_PROTOCOL_VERSION_ALERT", "h2", "tls:alert"),
        ("NS_BINDING_ABORTED", None, "h2", "browser:cancelled"),
        ("NS_ERROR_SOMETHING_NEW", None, "h2", "browser:other"),
    ],
)
def test_error_classes(error: str | None, tls_error: str | None, protocol: str, expected: str | None) -> None:
    assert error_class(error, tls_error, protocol) == expected


def test_a_response_over_another_protocol_is_an_error() -> None:
    refused = {"refused": True, "error": "NS_ERROR_FAILURE"}
    assert made(request(**refused), protocol="h3")[0].error == "quic"
    assert made(request(protocol="http/1.1", **refused), protocol="h2")[0].error == "tls:alpn"


def test_what_did_not_end_has_timed_out() -> None:
    nothing = dict.fromkeys((name for name in request() if name.endswith("Time")), 0)
    (fetch,) = made(request(**nothing, ended=False, status=None, protocol=None))
    assert fetch.error == "timeout"
    assert (fetch.started_ns, fetch.status, fetch.protocol, fetch.done_ns) == (5, None, None, None)


numbers = st.none() | st.integers(0, 2**53)
said = st.fixed_dictionaries(
    {},
    optional={
        name: (
            st.none() | st.lists(st.lists(st.text(max_size=5), min_size=2, max_size=2), max_size=3)
            if name.endswith("headers")
            else st.none() | st.booleans()
            if name in {"ended", "refused", "cached", "resumed"}
            else numbers
            if name.endswith(("Time", "_bytes")) or name in {"status", "local_port", "type", "tls_version"}
            else st.none() | st.text(max_size=8) | st.sampled_from(["h1", "h2", "h3", "http/1.1"])
        )
        for name in request()
    },
)


@given(st.lists(said, max_size=6), st.lists(st.tuples(st.text(max_size=5), st.integers(0, 9)), max_size=4))
def test_whatever_is_said_becomes_a_fetch_each_in_order(requests: list[dict[str, Any]], decoded: Any) -> None:
    result = made(*requests, decoded=decoded)
    assert len(result) == len(requests)
    assert [each.started_ns for each in result] == sorted(each.started_ns for each in result)
