"""Messages that a capture of somebody else may hold: the table is right, or null and a note says why."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.trace import rewrite
from tests.trace.talk import (
    CONTINUATION,
    DATA,
    DOWN,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    MS,
    NAME,
    PADDED,
    PREFACE,
    PUSH_PROMISE,
    SETTINGS,
    UP,
    Talk,
    asked,
    frame,
    section,
    secured,
)
from trifecta.trace.dissect import dissect
from trifecta.trace.dissection import Dissection

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
Sent = Sequence[tuple[int, str]]

OK = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n01234"
LONG = "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + "x" * 5000
CHUNKED = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n3\r\nabc\r\n0\r\n\r\n"
TRAILER = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n0\r\nX-T: 1\r\n\r\n"
HINTS = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"


def get(path: str, method: str = "GET") -> str:
    return f"{method} {path} HTTP/1.1\r\nHost: a.test\r\n\r\n"


def conversation(*sent: tuple[int, str], skip: int = 0, ends: int = UP) -> tuple[Sent, int, int]:
    return sent, skip, ends


TALKS = {
    "pipelined": conversation((UP, get("/1") + get("/2")), (UP, get("/3")), (DOWN, OK + CHUNKED), (DOWN, OK)),
    "pipelined over packets": conversation((UP, get("/1") + get("/2") + get("/3")), (DOWN, LONG + LONG + OK)),
    "interim apart": conversation((UP, get("/1")), (DOWN, HINTS), (DOWN, OK), (UP, get("/2")), (DOWN, HINTS + CHUNKED)),
    "trailers": conversation((UP, get("/1")), (DOWN, TRAILER), (UP, get("/2")), (DOWN, OK)),
    "until the end": conversation((UP, get("/1")), (DOWN, "HTTP/1.1 200 OK\r\n\r\n" + "x" * 3000), ends=DOWN),
    "no content": conversation(
        (UP, get("/1", "HEAD")),
        (DOWN, "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"),
        (UP, get("/2")),
        (DOWN, "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n"),
        (UP, get("/3")),
        (DOWN, OK),
    ),
    "upgrade": conversation(
        (UP, get("/1")), (DOWN, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"), (UP, "!"), (DOWN, "!")
    ),
    "expect": conversation(
        (UP, "POST /p HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"),
        (DOWN, "HTTP/1.1 100 Continue\r\n\r\n"),
        (UP, "data"),
        (DOWN, OK),
    ),
    "begun before": conversation((UP, get("/1")), (DOWN, OK), (UP, get("/2")), (DOWN, OK), skip=4),
    "begun in a body": conversation((UP, get("/1")), (DOWN, LONG), (UP, get("/2")), (DOWN, OK), skip=5),
}


@pytest.fixture(scope="module")
def h1(tmp_path_factory: pytest.TempPathFactory) -> Dissection:
    packets = []
    for number, (sent, skip, ends) in enumerate(TALKS.values()):
        talk = Talk(ports=(40000 + number, 80)).open()
        for way, text in sent:
            talk.send(way, text.encode())
        talk.close(ends)
        packets += talk.packets[skip:]
    packets.sort(key=lambda one: one.time_ns)  # interleaved: all conversations begin at once
    file = tmp_path_factory.mktemp("h1") / "talks.pcap"
    file.write_bytes(rewrite.pcap(packets))
    return dissect([file])


def of(found: Dissection, talk: str) -> tuple[list[dict[str, Any]], list[str]]:
    """The messages of a conversation, with times in ms from its first packet, and the notes on it."""
    port = 40000 + list(TALKS).index(talk)
    (connection,) = (one for one in found.connections.to_pylist() if one["client_port"] == port)
    begin = Talk().time_ns
    rows = [one for one in found.messages.to_pylist() if one["connection"] == connection["connection"]]
    for row in rows:
        times = (f"{part}_{edge}_ns" for part in ("request", "response") for edge in ("start", "end"))
        row["times"] = [None if row[name] is None else (row[name] - begin) // MS for name in times]
        row["sizes"] = [row[f"{part}_{what}_bytes"] for part in ("request", "response") for what in ("header", "body")]
    own = f"connection {connection['connection']}: "
    return rows, [note.removeprefix(own) for note in found.notes if note.startswith(own)]


def sizes(rows: list[dict[str, Any]]) -> list[tuple[str | None, int | None, list[int | None]]]:
    return [(one["path"], one["status"], one["sizes"]) for one in rows]


ASK, ANSWER = len(get("/1")), len(OK) - 5


def test_pipelined_requests_have_their_own_responses(h1: Dissection) -> None:
    rows, notes = of(h1, "pipelined")
    assert [(one["path"], one["status"]) for one in rows] == [("/1", 200), ("/2", 200), ("/3", 200)]
    # Of the first two it is known only in which packets they are; where the third begins nothing tells.
    assert [one["times"] for one in rows] == [[3, 3, 5, 5], [3, 3, 5, 5], [None, 4, None, 6]]
    assert [one["complete"] for one in rows] == [True, True, False]
    assert [one["sizes"] for one in rows[:2]] == [[None, None, None, None]] * 2
    assert any("pipelined" in note for note in notes)


def test_a_pipelined_response_does_not_take_the_octets_of_the_next(h1: Dissection) -> None:
    rows, _ = of(h1, "pipelined over packets")
    first, second, third = rows
    assert first["sizes"][2:] == [len(LONG) - 5000, 5000]
    assert (first["times"][2:], first["packets_down"]) == ([4, 7], 4)
    assert second["times"][2:] == [7, None] or second["times"][2:] == [7, 11]
    assert third["times"][2:] == [None, 11]
    assert (second["packets_down"], third["packets_down"]) == (None, None)
    assert second["response_body_bytes"] in (None, 5000)


def test_interim_responses_belong_to_the_final_one(h1: Dissection) -> None:
    rows, notes = of(h1, "interim apart")
    assert sizes(rows) == [
        ("/1", 200, [ASK, 0, len(HINTS) + ANSWER, 5]),
        ("/2", 200, [ASK, 0, len(HINTS) + CHUNKED.index("5\r\n0"), 8]),
    ]
    assert [one["times"] for one in rows] == [[3, 3, 4, 5], [6, 6, 7, 7]]
    assert not notes


def test_trailers_are_no_content(h1: Dissection) -> None:
    rows, _ = of(h1, "trailers")
    assert sizes(rows) == [("/1", 200, [ASK, 0, TRAILER.index("5\r\n0"), 5]), ("/2", 200, [ASK, 0, ANSWER, 5])]


def test_content_may_end_with_the_connection(h1: Dissection) -> None:
    (row,), _ = of(h1, "until the end")
    assert (row["complete"], row["sizes"], row["times"]) == (True, [ASK, 0, 19, 3000], [3, 3, 4, 6])


def test_responses_without_content(h1: Dissection) -> None:
    rows, _ = of(h1, "no content")
    assert [(one["status"], one["response_body_bytes"]) for one in rows] == [(200, 0), (304, 0), (200, 5)]
    assert rows[0]["method"] == "HEAD"
    (row,), _ = of(h1, "upgrade")
    assert (row["status"], row["response_body_bytes"], row["complete"]) == (101, 0, True)


def test_a_request_that_waits_for_100(h1: Dissection) -> None:
    (row,), _ = of(h1, "expect")
    assert (row["method"], row["status"], row["request_body_bytes"]) == ("POST", 200, 4)
    assert row["times"] == [3, 5, 4, 6]


def test_a_capture_that_begins_later_pairs_nothing_wrongly(h1: Dissection) -> None:
    (row,), notes = of(h1, "begun before")
    assert (row["path"], row["sizes"]) == ("/2", [ASK, 0, ANSWER, 5])
    assert notes == ["1 responses belong to requests before the capture began: they are left out"]
    for row in of(h1, "begun in a body")[0]:
        assert (row["path"], row["status"]) in (("/2", None), ("/2", 200))
        assert row["sizes"][2:] in ([None, None], [ANSWER, 5])


STATUS, FINAL = section((":status", "103"), ("link", "</x>")), section((":status", "200"), ("a", "b"))


def h2_requests(talk: Any) -> None:
    """What a server may answer to four requests in one packet."""
    talk.send(UP, PREFACE + frame(SETTINGS, 0, 0))
    talk.send(DOWN, frame(SETTINGS, 0, 0))
    both = END_HEADERS | END_STREAM
    talk.send(
        UP,
        frame(HEADERS, both, 1, asked("/1"))
        + frame(HEADERS, both, 3, asked("/2", ("host", NAME), authority=None))
        + frame(HEADERS, both, 5, asked("/3", authority="other.lab"))
        + frame(HEADERS, END_STREAM, 7, asked("/4")[:20]),
    )
    talk.send(UP, frame(CONTINUATION, END_HEADERS, 7, asked("/4")[20:]))
    promise = (9).to_bytes(1, "big") + bytes([0, 0, 0, 2]) + asked("/pushed") + bytes(9)
    trailers = section(("x-t", "1"))
    padded = bytes([200]) + b"y" * 1000 + bytes(200)
    talk.send(
        DOWN,
        frame(HEADERS, END_HEADERS, 1, STATUS)
        + frame(HEADERS, END_HEADERS, 1, FINAL)
        + frame(PUSH_PROMISE, END_HEADERS | PADDED, 1, promise)
        + frame(DATA, 0, 1, b"x" * 3000)
        + frame(HEADERS, both, 1, trailers)
        + frame(HEADERS, both, 5, section((":status", "404")))
        + frame(HEADERS, END_HEADERS, 3, FINAL)
        + frame(DATA, PADDED, 3, padded)
        + frame(DATA, END_STREAM, 3, b"z" * 10)
        + frame(HEADERS, both, 2, section((":status", "204")))
        + frame(HEADERS, END_HEADERS, 7, STATUS),
    )


@pytest.mark.parametrize(
    ("version", "cipher", "name"),
    [
        ("1.3", None, "TLS_AES_256_GCM_SHA384"),
        ("1.2", "ECDHE-ECDSA-AES128-GCM-SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"),
        ("1.2", "ECDHE-ECDSA-CHACHA20-POLY1305", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"),
    ],
)
def test_fields_go_to_the_requests_they_belong_to(tmp_path: Path, version: str, cipher: str | None, name: str) -> None:
    talk, secure, keys = secured(tmp_path, version=version, cipher=cipher)
    h2_requests(secure)
    secure.close()
    file = tmp_path / "talk.pcap"
    file.write_bytes(rewrite.pcap(talk.packets))
    found = dissect([file], keys)
    rows = {one["stream"]: one for one in found.messages.to_pylist()}
    told = {stream: (one["method"], one["authority"], one["path"], one["status"]) for stream, one in rows.items()}
    assert told == {
        1: ("GET", NAME, "/1", 200),
        2: ("GET", NAME, "/pushed", 204),
        3: ("GET", None, "/2", 200),
        5: ("GET", "other.lab", "/3", 404),
        7: ("GET", NAME, "/4", None),  # 103 is not final
    }
    assert [one["response_body_bytes"] for one in rows.values()] == [3000, 0, 1010, 0, None]
    trailers = len(section(("x-t", "1")))
    assert rows[1]["response_header_bytes"] == len(STATUS) + len(FINAL) + trailers
    assert rows[7]["request_header_bytes"] == len(asked("/4"))
    assert {stream: one["complete"] for stream, one in rows.items()} == {1: True, 2: False, 3: True, 5: True, 7: False}
    assert rows[2]["request_start_ns"] is None
    assert found.notes == [
        "connection 0: 1 responses were pushed: their requests were promised, not sent",
        "1 of 4 requests is not whole in the capture: what is not known of them is null",
    ]
    (connection,) = found.connections.to_pylist()
    assert (connection["tls_version"], connection["cipher"], connection["truncated"]) == (version, name, None)
    assert connection["key_exchange"] == "X25519"
    # Every frame lies in records of its own packet, whatever a record adds to it.
    places = [one for one in found.frames.to_pylist() if one["layer"] == "h2"]
    assert len(places) == 18
    assert all(one["tcp_start"] is not None for one in places)


def test_a_cipher_whose_records_hide_their_size(tmp_path: Path) -> None:
    """With CBC the padding is in the record: messages are known, the places of their frames are not."""
    talk, secure, keys = secured(tmp_path, version="1.2", cipher="ECDHE-ECDSA-AES128-SHA")
    h2_requests(secure)
    secure.close()
    file = tmp_path / "talk.pcap"
    file.write_bytes(rewrite.pcap(talk.packets))
    found = dissect([file], keys)
    assert found.messages["response_body_bytes"].to_pylist() == [3000, 0, 1010, 0, None]
    assert found.messages["response_end_ns"].to_pylist() == [None] * 5
    assert not any(found.messages["complete"].to_pylist())
    assert {one["tcp_start"] for one in found.frames.to_pylist() if one["layer"] == "h2"} == {None}
    assert any("where records begin and end is not known" in note for note in found.notes)


def test_notes_have_the_numbers_of_the_tables(tmp_path: Path) -> None:
    files = []
    for name in ("one", "two"):
        talk = Talk(ports=(40000, 80)).open()
        for way, text in TALKS["pipelined"][0]:
            talk.send(way, text.encode())
        files.append(tmp_path / f"{name}.pcap")
        files[-1].write_bytes(rewrite.pcap(talk.packets))
    found = dissect(files)
    assert found.connections["connection"].to_pylist() == [0, 1]
    assert [note.split(": ")[:2] for note in found.notes] == [
        ["one.pcap", "connection 0"],
        ["two.pcap", "connection 1"],
    ]
