"""Every server that is found replays an archive with everything odd in it; the comparison sees what it should."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.workloads.odd_page import write_odd_page
from trifecta.design.model import PageWorkload, RequestsWorkload
from trifecta.implementations.clients.curl import curl_command
from trifecta.implementations.registry import SERVERS
from trifecta.implementations.server import Unsupported
from trifecta.pages import archive
from trifecta.pages.archive import Response, digest_of
from trifecta.workloads.replay_diff import Difference, ProtocolReplay, differ, read_head
from trifecta.workloads.replaying import Replayed, in_words


def _why_not(name: str) -> str | None:
    try:
        curl_command()
        SERVERS[name].find()
    except Unsupported as error:
        return str(error)
    return None


def replay(folder: Path, work: Path, *names: str) -> list[dict[str, Any]]:
    """What the servers made of an archive."""
    command = [sys.executable, "-m", "tests.workloads.replay_inside", str(folder), str(work), *names]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def _differences(replayed: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each["url"], each["what"]) for one in replayed["asked"] for each in one["differences"]]


@pytest.mark.parametrize("name", ["origin", "nginx", "caddy", "haproxy", "envoy"])
def test_every_response_comes_as_it_was_recorded(name: str, tmp_path: Path) -> None:
    if (reason := _why_not(name)) is not None:
        pytest.skip(reason)
    page = write_odd_page(tmp_path / "page")
    (replayed,) = replay(tmp_path / "page", tmp_path / "work", name)
    assert [one["protocol"] for one in replayed["asked"]] == ["h1", "h2", "h3"], replayed["reason"]
    found = _differences(replayed)
    if name == "caddy":  # its configuration is UTF-8
        found = [(url, what) for url, what in found if not url.endswith("/latin") or "x-latin" not in what]
    assert found == []
    for one in replayed["asked"]:
        assert one["responses"] == len(page.responses)
        assert one["bytes"] == page.bytes
    assert list((tmp_path / "work").glob(".tmp-*")) == []


@pytest.mark.parametrize(
    "name", ["origin", pytest.param("nginx", marks=pytest.mark.long), pytest.param("caddy", marks=pytest.mark.long)]
)
def test_a_page_of_a_thousand_resources(name: str, tmp_path: Path) -> None:
    if (reason := _why_not(name)) is not None:
        pytest.skip(reason)
    few = len(write_odd_page(tmp_path / "few").responses)
    page = write_odd_page(tmp_path / "page", 1000 - few)
    (replayed,) = replay(tmp_path / "page", tmp_path / "work", name)
    assert [(one["responses"], one["bytes"]) for one in replayed["asked"]] == [(1000, page.bytes)] * 3
    assert [url for url, _ in _differences(replayed) if not url.endswith("/latin")] == []


def test_a_changed_archive_is_seen(tmp_path: Path) -> None:
    """The servers are given one archive and compared with another."""
    if (reason := _why_not("origin")) is not None:
        pytest.skip(reason)
    write_odd_page(tmp_path / "page")
    read = archive.read_page(tmp_path / "page")
    changed = [
        Response(one.method, one.url, 404 if one.url.endswith("/gone") else one.status, one.headers, one.body,
                 one.bytes, one.kind)
        for one in read.responses
    ]  # fmt: skip
    bodies = {one.body: (tmp_path / "page" / "bodies" / one.body).read_bytes() for one in read.responses if one.body}
    other = archive.Page(read.name, read.title, read.start, read.source, tuple(changed))
    archive.write_page(tmp_path / "other", other, bodies)
    command = [sys.executable, "-m", "tests.workloads.replay_inside", "--serve", str(tmp_path / "other")]
    command += [str(tmp_path / "page"), str(tmp_path / "work"), "origin"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    replayed = json.loads(done.stdout)
    assert not replayed["same"]
    assert _differences(replayed) == [("https://cdn.odd.lab/gone", "status 404 and not 410")] * 3


@pytest.mark.parametrize("name", ["hypercorn", "quic-go", "quiche"])
def test_who_cannot_says_so(name: str) -> None:
    with pytest.raises(Unsupported, match="cannot answer from a page archive; use server: origin, nginx or caddy"):
        SERVERS[name].check_workload(PageWorkload())
    SERVERS[name].check_workload(RequestsWorkload())


def _response(**changes: Any) -> Response:
    fields: dict[str, Any] = {
        "method": "GET", "url": "https://a.lab/", "status": 200, "body": digest_of(b"x"), "bytes": 1, "kind": "other",
        "headers": (("content-type", "text/plain"), ("set-cookie", "a"), ("set-cookie", "b")),
    }  # fmt: skip
    return Response(**fields | changes)


def test_what_differs_is_named() -> None:
    same = [("set-cookie", "a"), ("content-type", "text/plain"), ("set-cookie", "b"), ("date", "now")]

    def found(status: int = 200, fields: list[tuple[str, str]] = same, digest: str = digest_of(b"x")) -> list[str]:
        return list(differ(_response(), status, fields, digest))

    assert found() == []
    assert found(status=404) == ["status 404 and not 200"]
    assert found(fields=same[1:]) == ["has set-cookie: b and not a | b"]
    assert found(fields=[*same[1:], same[0]]) == ["has set-cookie: b | a and not a | b"]
    assert found(fields=[same[0], same[2]]) == ["lacks the field content-type: text/plain"]
    assert found(fields=[*same, ("etag", "1")]) == ["has a field that was not recorded, etag: 1"]
    assert found(fields=[*same, ("content-length", "2")]) == ["announces 2 octets and not 1"]
    assert found(digest=digest_of(b"y")) == ["other content than recorded"]
    head = _response(method="HEAD")
    assert list(differ(head, 200, [*same, ("content-length", "1")], digest_of(b""))) == []


def test_the_last_head_counts() -> None:
    octets = b"HTTP/1.1 100 Continue\r\nx: 1\r\n\r\nHTTP/2 200 \r\nContent-Type: a:b \r\nx-l: \xe9\r\n\r\n"
    assert read_head(octets) == (200, [("content-type", "a:b"), ("x-l", "\u00e9")])
    assert read_head(b"HTTP/3 \r\n\r\n") == (0, [])


def test_the_words_for_a_user() -> None:
    differences = tuple(Difference("GET", f"https://a.lab/{number}", "status 1 and not 2") for number in range(12))
    asked = (ProtocolReplay("h1", 20, 5, (), ("date",), 0), ProtocolReplay("h3", 20, 5, differences, ("server",), 1))
    lines = in_words(Replayed("caddy", "2.11", 20, 5, asked))
    assert lines[0] == "caddy 2.11, HTTP/1.1: 20 of 20 responses, 5 octets: no difference"
    assert lines[1] == "caddy 2.11, HTTP/3: 20 of 20 responses, 5 octets: 12 differences"
    assert lines[2] == "  GET https://a.lab/0: status 1 and not 2"
    assert lines[-2:] == [
        "  and 2 more",
        "caddy 2.11 adds date, server; it sends fields in a different order than recorded",
    ]
    assert not Replayed("caddy", "2.11", 20, 5, asked).same
    assert in_words(Replayed("x", "", 20, 5, (), "is gone")) == ["x: cannot replay it: is gone"]


@pytest.mark.parametrize("name", ["origin", "nginx", "caddy", "haproxy", "envoy"])
def test_live_files_parts_and_alt_svc(name: str, tmp_path: Path) -> None:
    if (reason := _why_not(name)) is not None:
        pytest.skip(reason)
    page = tmp_path / "page"
    write_odd_page(page)
    command = [sys.executable, "-m", "tests.workloads.replay_live", str(page), str(tmp_path / "work"), name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    for protocol, answer in told["first"].items():
        assert (answer["status"], answer["body"]) == (200, "one"), protocol
        fields = answer["fields"]
        assert fields["content-type"] == "application/vnd.apple.mpegurl"
        assert fields["cache-control"] == "no-cache"
        assert fields["access-control-allow-origin"] == "*"
        assert not {"etag", "last-modified", "expires"} & set(fields)
    assert told["second"]["body"] == "another"
    assert (told["part"]["status"], told["part"]["body"]) == (206, "abc")
    assert told["part"]["fields"]["content-range"] == "bytes 97-99/2560"
    assert told["part"]["fields"]["content-type"] == "video/mp2t"
    assert told["beyond"]["status"] == 416
    assert told["none"]["status"] == 404
    assert told["outside"]["status"] in (400, 404)
    assert (told["clip"]["status"], len(told["clip"]["body"])) == (206, 10), "the recorded server takes ranges"
    assert (told["font"]["status"], len(told["font"]["body"])) == (200, 70_000), "the recorded server does not"
    assert told["unchanged"]["status"] == 200, "no conditions"
    assert told["missing"]["fields"]["x-trifecta-replay"] == "missing"
    for protocol in ("h1", "h2"):
        for answer in (told["page"][protocol], told["first"][protocol]):
            assert answer["fields"]["alt-svc"].startswith('h3=":443"'), protocol
    assert told["missing"]["fields"]["alt-svc"].startswith('h3=":443"')
