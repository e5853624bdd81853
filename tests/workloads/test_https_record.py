"""The HTTPS record of a name (RFC 9460), asked for over UDP at a name server of this test."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import dns.flags
import dns.message
import dns.rcode
import dns.resolver
import dns.rrset
import pytest

from trifecta.workloads.far import names

Answer = Callable[[dns.message.Message], None]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Answer], list[str]]]:
    """A name server that the resolver is told of; given what fills in a reply, the list of the names it is asked."""
    asked: list[str] = []
    fill: list[Answer] = []
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listener.bind(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                octets, client = listener.recvfrom(4096)
                query = dns.message.from_wire(octets)
                asked.append(query.question[0].to_text())
                reply = dns.message.make_response(query)
                fill[0](reply)
                listener.sendto(reply.to_wire(), client)

    def resolver() -> dns.resolver.Resolver:
        made = unconfigured(configure=False)
        made.nameservers, made.port = ["127.0.0.1"], listener.getsockname()[1]
        return made

    unconfigured = dns.resolver.Resolver
    monkeypatch.setattr(dns.resolver, "Resolver", resolver)
    threading.Thread(target=serve, daemon=True).start()

    def use(answer: Answer) -> list[str]:
        fill.append(answer)
        return asked

    yield use
    listener.close()


def record(*parameters: str) -> Answer:
    def fill(reply: dns.message.Message) -> None:
        name = reply.question[0].name
        reply.answer.append(dns.rrset.from_text(name, 60, "IN", "HTTPS", *parameters))

    return fill


def code(rcode: dns.rcode.Rcode) -> Answer:
    return lambda reply: reply.set_rcode(rcode)


def test_what_a_name_announces_is_read(server: Callable[[Answer], list[str]]) -> None:
    asked = server(record('1 . alpn="h3,h2" port=8443', '2 other.example. alpn="h2,http/1.1"'))
    found = names.https_record("a.example", 443)
    assert found is not None and found["found"] and found["error"] is None
    assert sorted(found["alpn"]) == ["h2", "h3", "http/1.1"], "of both records, each once, in no order"
    assert asked == ["a.example. IN HTTPS"]


def test_another_port_has_a_name_of_its_own(server: Callable[[Answer], list[str]]) -> None:
    asked = server(record("1 ."))
    assert names.https_record("a.example", 8443) == {"found": True, "alpn": [], "error": None}
    assert asked == ["_8443._https.a.example. IN HTTPS"]


@pytest.mark.parametrize("rcode", [dns.rcode.NXDOMAIN, dns.rcode.NOERROR])
def test_a_name_without_one_announces_nothing(server: Callable[[Answer], list[str]], rcode: dns.rcode.Rcode) -> None:
    server(code(rcode))
    assert names.https_record("a.example", 443) == {"found": False, "alpn": [], "error": None}


def test_a_server_that_fails_leaves_it_open(server: Callable[[Answer], list[str]]) -> None:
    server(code(dns.rcode.SERVFAIL))
    found = names.https_record("a.example", 443)
    assert found is not None
    assert (found["found"], found["alpn"]) == (None, []) and "SERVFAIL" in str(found["error"])


def test_an_address_has_none() -> None:
    assert names.https_record("192.0.2.1", 443) is None
