"""The adapter of Hypercorn, its ASGI application, and Hypercorn itself where it is fetched."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import subprocess

import pytest

from tests.implementations.site_study import assert_answered, measure
from trifecta.design.model import RequestsWorkload
from trifecta.implementations.recipes import PROGRAMS
from trifecta.implementations.server import ServerOptions, Site, Unsupported
from trifecta.implementations.servers.hypercorn import RECIPE, Hypercorn
from trifecta.implementations.servers.hypercorn_2023 import RECIPE as RECIPE_2023
from trifecta.implementations.servers.hypercorn_2023 import Hypercorn2023
from trifecta.lab.certificates import Certificates

fetched = pytest.mark.skipif(not RECIPE.installed(), reason=RECIPE.missing())
of_2023 = pytest.mark.skipif(not RECIPE_2023.installed(), reason=RECIPE_2023.missing())


@pytest.fixture(scope="module")
def serve():
    """The module of the program; it needs Hypercorn to serve, but not for the application."""
    specification = importlib.util.spec_from_file_location("serve", PROGRAMS / "hypercorn" / "serve.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "site"
    (folder / "bytes").mkdir(parents=True)
    (folder / "bytes" / "3").write_bytes(b"abc")
    (folder / "bytes" / "200000").write_bytes(b"x" * 200_000)
    (folder / "bytes" / "0").write_bytes(b"")
    (tmp_path / "secret").write_bytes(b"secret")
    (folder / "out").symlink_to(tmp_path / "secret")
    return folder


def ask(serve, folder, method, path, events=({"type": "http.request"},)):
    """The status, header fields and pieces of content that the application answers with."""
    received, sent = list(events), []

    async def receive():
        return received.pop(0)

    async def send(event):
        sent.append(event)

    asyncio.run(serve.Site(folder)({"type": "http", "method": method, "path": path}, receive, send))
    if not sent:
        return None, {}, []
    assert [event.get("more_body", False) for event in sent[1:]] == [True] * (len(sent) - 2) + [False]
    return sent[0]["status"], dict(sent[0]["headers"]), [event["body"] for event in sent[1:]]


@pytest.mark.parametrize(
    ("method", "path", "status", "length", "content"),
    [
        ("GET", "/bytes/3", 200, b"3", b"abc"),
        ("GET", "/bytes/0", 200, b"0", b""),
        ("HEAD", "/bytes/3", 200, b"3", b""),
        ("POST", "/bytes/3", 200, b"3", b"abc"),
        ("PUT", "/elsewhere", 200, b"0", b""),
        ("PATCH", "/bytes/0", 200, b"0", b""),
        ("DELETE", "/bytes/3", 204, None, b""),
        ("OPTIONS", "/bytes/3", 405, b"0", b""),
        ("GET", "/none", 404, b"0", b""),
        ("GET", "/bytes", 404, b"0", b""),
        ("GET", "/../secret", 404, b"0", b""),
        ("GET", "//etc/passwd", 404, b"0", b""),
        ("GET", "/out", 404, b"0", b""),
        ("GET", "/a\0b", 404, b"0", b""),
        ("GET", "/" + "a" * 5000, 404, b"0", b""),
    ],
)
def test_answers_are_those_of_the_origin_and_no_path_leaves_the_folder(
    serve, folder, method, path, status, length, content
):
    answered, fields, pieces = ask(serve, folder, method, path)
    assert (answered, fields.get(b"content-length"), b"".join(pieces)) == (status, length, content)
    assert (folder / "bytes" / "3").exists()


def test_a_large_file_is_sent_in_pieces_and_whole(serve, folder):
    status, fields, pieces = ask(serve, folder, "GET", "/bytes/200000")
    assert (status, fields[b"content-length"]) == (200, b"200000")
    assert [len(piece) for piece in pieces] == [65536, 65536, 65536, 200_000 - 3 * 65536]


def test_content_is_read_to_its_end_before_the_answer(serve, folder):
    part, last = {"type": "http.request", "body": b"x", "more_body": True}, {"type": "http.request", "body": b"y"}
    assert ask(serve, folder, "POST", "/bytes/3", (part, part, last))[0] == 200
    assert ask(serve, folder, "POST", "/bytes/3", (part, {"type": "http.disconnect"})) == (None, {}, [])


@pytest.mark.parametrize("server", [Hypercorn(), Hypercorn2023()], ids=lambda server: server.name)
def test_without_the_packages_the_remedy_is_told(server, tmp_path, monkeypatch):
    monkeypatch.setenv("TRIFECTA_CACHE", str(tmp_path))
    for asked in (server.find, lambda: server.declared(ServerOptions())):
        with pytest.raises(Unsupported, match=rf"run: trifecta get {server.name}$"):
            asked()


def test_what_a_cell_asks_is_in_the_configuration(tmp_path, monkeypatch):
    monkeypatch.setattr(RECIPE, "python", lambda: tmp_path / "python")
    certificates = Certificates(tmp_path / "ca.pem", tmp_path / "server.pem", tmp_path / "server.key")
    site = Site(tmp_path / "site", certificates, "10.77.0.2", 8443, tmp_path)
    command = Hypercorn().command(site, ServerOptions(tls_version="1.2", max_streams=321))
    config = json.loads((tmp_path / "hypercorn.json").read_text())
    assert command.arguments[-1] == tmp_path / "hypercorn.json"
    assert "-I" in command.arguments  # neither PYTHONPATH nor the user's packages
    assert config["bind"] == "10.77.0.2:8443"
    assert (config["tls_version"], config["max_streams"]) == ("1.2", 321)
    assert (config["certificate"], config["key"]) == (str(certificates.chain), str(certificates.key))


def test_zero_rtt_is_not_claimed():
    Hypercorn().check_workload(RequestsWorkload(method="POST"))
    with pytest.raises(Unsupported, match="0-RTT"):
        Hypercorn().check_workload(RequestsWorkload(zero_rtt=True))


@fetched
def test_versions_of_all_libraries_are_declared():
    said = Hypercorn().declared(ServerOptions())
    assert Hypercorn().find()
    assert {"python", "h11", "h2", "aioquic", "cryptography"} <= {*said["libraries"]}
    assert said["tls_library"].startswith("OpenSSL ")
    assert said["congestion_control"] == {"tcp": "cubic", "quic": "reno"}
    code = "from aioquic.quic.configuration import QuicConfiguration as Q; print(Q().congestion_control_algorithm)"
    done = subprocess.run([RECIPE.python(), "-I", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == said["congestion_control"]["quic"]


@of_2023
def test_that_of_2023_has_the_libraries_of_its_spring():
    """milicevic2023 is of June 2023; aioquic 0.9.21 is of that July, because 0.9.20 has no wheel for Python 3.11."""
    server = Hypercorn2023()
    assert server.find() == "0.14.3"
    said = server.declared(ServerOptions())
    assert said["tcp_nodelay"] is False
    libraries = said["libraries"]
    assert (libraries["aioquic"], libraries["h2"], libraries["h11"]) == ("0.9.21", "4.1.0", "0.14.0")


@of_2023
@pytest.mark.lab
def test_a_study_measures_that_of_2023_over_every_protocol(tmp_path):
    rows = measure("hypercorn-2023", tmp_path)
    for row in rows:
        assert (row["samples"], row["errors"]) == (12, 0), row
        failed = {check["check"] for check in row["checks"] if check["status"] == "fail"}
        assert not failed & {"protocol", "same_work", "errors", "drops"}, row["checks"]
        assert ("parity" in failed) == (row["protocol"] != "h3")  # Nagle's algorithm is on, and not asked for
    log = next((tmp_path / "run" / "logs").glob("hypercorn-2023-*.log"))
    assert log.read_text() == ""


@fetched
@pytest.mark.lab
def test_a_study_measures_it_over_every_protocol(tmp_path):
    rows = measure("hypercorn", tmp_path)
    assert_answered(rows)
    log = next((tmp_path / "run" / "logs").glob("hypercorn-*.log"))
    assert log.read_text() == ""  # no access log, and nothing went wrong
