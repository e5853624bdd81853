"""HTTP/2 without TLS: with prior knowledge, whoever speaks first, and after an upgrade of HTTP/1.1."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.trace import rewrite
from tests.trace.talk import DATA, DOWN, END_HEADERS, END_STREAM, HEADERS, PREFACE, SETTINGS, UP, Talk, asked, frame
from tests.trace.talk import section as fields
from trifecta.trace.dissect import dissect

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
BOTH = END_HEADERS | END_STREAM
ANSWER = frame(HEADERS, END_HEADERS, 1, fields((":status", "200"))) + frame(DATA, END_STREAM, 1, b"x" * 900)
UPGRADE = b"GET /old HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
UPGRADE += b"HTTP2-Settings: AAMAAABk\r\n\r\n"
SWITCHED = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
OLD = b"GET /before HTTP/1.1\r\nHost: a.test\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n01234"
SPOKEN = {
    "client first": [(UP, PREFACE + frame(SETTINGS, 0, 0)), (DOWN, frame(SETTINGS, 0, 0))],
    "server first": [(DOWN, frame(SETTINGS, 0, 0)), (UP, PREFACE), (UP, frame(SETTINGS, 0, 0))],
    "a cut preface": [(DOWN, frame(SETTINGS, 0, 0)), (UP, PREFACE[:9]), (UP, PREFACE[9:] + frame(SETTINGS, 0, 0))],
}


def spoken(tmp_path: Path, *sent: tuple[int, bytes]) -> Path:
    talk, file = Talk(ports=(40000, 8080)).open(), tmp_path / "x.pcap"
    for way, octets in sent:
        talk.send(way, octets)
    talk.close()
    file.write_bytes(rewrite.pcap(talk.packets))
    return file


@pytest.mark.parametrize("name", list(SPOKEN))
def test_prior_knowledge(tmp_path: Path, name: str) -> None:
    sent = [*SPOKEN[name], (UP, frame(HEADERS, BOTH, 1, asked("/one"))), (DOWN, ANSWER)]
    found = dissect([spoken(tmp_path, *sent)])
    (row,) = found.messages.to_pylist()
    assert (row["protocol"], row["path"], row["status"], row["response_body_bytes"]) == ("h2", "/one", 200, 900)
    assert row["complete"] and not found.notes
    frames = found.frames.to_pylist()
    assert all(one["tcp_end"] - one["tcp_start"] == one["wire_length"] for one in frames)
    assert [one["direction"] for one in frames].count("down") == 3  # the server's settings too
    assert found.connections["decrypted"].to_pylist() == [None]


@pytest.mark.parametrize("before", [False, True])
def test_an_upgrade(tmp_path: Path, before: bool) -> None:
    """The request of HTTP/1.1 is that of stream 1 (RFC 7540, 3.2); settings may come with the 101."""
    sent = [*zip((UP, DOWN), OLD, strict=True)] if before else []
    sent += [(UP, UPGRADE), (DOWN, SWITCHED + frame(SETTINGS, 0, 0)), (UP, PREFACE + frame(SETTINGS, 0, 0))]
    sent += [(DOWN, ANSWER), (UP, frame(HEADERS, BOTH, 3, asked("/new")))]
    sent += [(DOWN, frame(HEADERS, BOTH, 3, fields((":status", "204"))))]
    found = dissect([spoken(tmp_path, *sent)])
    first, second = found.messages.to_pylist()
    assert (first["protocol"], first["stream"], first["method"]) == ("h2", 1, "GET")
    assert (first["authority"], first["path"], first["status"]) == ("a.test", "/old", 200)
    assert (first["request_header_bytes"], first["response_body_bytes"]) == (len(UPGRADE), 900)
    assert first["complete"] is not before and second["complete"]
    assert (second["path"], second["status"]) == ("/new", 204)
    left_out = "connection 0: 1 requests of HTTP/1.1 came before the upgrade to HTTP/2: they are left out"
    assert [note for note in found.notes if "not whole" not in note] == ([left_out] if before else [])


def test_what_does_not_fit_is_not_blamed_on_tls(tmp_path: Path) -> None:
    """HTTP/2 through a tunnel of HTTP/1.1 is read, but where its frames lie is not known."""
    tunnel = b"CONNECT a.test:1 HTTP/1.1\r\nHost: a.test:1\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"
    sent = [*zip((UP, DOWN), tunnel, strict=True), (DOWN, frame(SETTINGS, 0, 0)), (UP, PREFACE + frame(SETTINGS, 0, 0))]
    sent += [(UP, frame(HEADERS, BOTH, 1, asked("/one"))), (DOWN, ANSWER)]
    found = dissect([spoken(tmp_path, *sent)])
    assert found.messages["path"].to_pylist() == ["/one"]
    assert "octets of TCP do not fit" in " ".join(found.notes) and "TLS" not in " ".join(found.notes)
