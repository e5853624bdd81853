"""Rows of connections: what is left over of another trial."""

import pytest

from trifecta.trace.connections import _note_strangers


def row(transport, port=443, **known):
    facts = dict.fromkeys(("quic_version", "protocol", "tls_version", "truncated"))
    return facts | {"transport": transport, "server": "10.77.0.2", "server_port": port} | known


@pytest.mark.parametrize(
    "server",
    [
        row("udp", quic_version="1", protocol="h3"),
        row("tcp", protocol="h2", tls_version="1.3"),  # the trial before was HTTP/3's
        row("tcp", tls_version="1.3"),  # without keys
    ],
)
def test_datagrams_with_a_server_that_is_known_began_before(server):
    stranger, elsewhere, dns = row("udp"), row("udp", port=9), row("udp", server="10.77.0.9")
    _note_strangers([server, stranger, elsewhere, dns])
    assert stranger["truncated"] == "keys,start"
    assert (server["truncated"], elsewhere["truncated"], dns["truncated"]) == (None, None, None)


def test_what_is_known_of_a_connection_is_kept():
    early = row("udp", truncated="keys")
    _note_strangers([row("tcp", protocol="h1"), early])
    assert early["truncated"] == "keys"
