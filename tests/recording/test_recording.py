"""`trifecta page record`: octet for octet, of a site on loopback; what cannot be replayed is told, secrets dropped."""

import json
import os
import shutil
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import psutil
import pytest

from tests.pages import odd, small
from tests.pages.serving import serving
from trifecta.cli import main
from trifecta.design.errors import UserError
from trifecta.implementations.recipes.recorder import RECIPE
from trifecta.pages.archive import read_page
from trifecta.pages.many import many
from trifecta.recording.job import RecordingJob, renames
from trifecta.recording.page import record_page
from trifecta.recording.proxy import scratch

live = pytest.mark.skipif(
    not shutil.which("chromium") or not RECIPE.installed(), reason="needs Chromium and `trifecta get recorder`"
)
QUICK = ["--settle", "300 ms", "--json"]


def answers(page):
    return {each.key: (each.status, each.headers, each.body, each.bytes) for each in page.responses}


def record(capsys, folder, out, *options, hosts=None, start=None, port=None, ca=None):
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    pairs = [each for host in hosts for each in ("--resolve", f"{host}=127.0.0.1:{port}")]
    code = main.run(
        ["page", "record", start, "--out", str(out), *pairs, *(["--ca", str(ca)] if ca else []), *QUICK, *options]
    )
    said = capsys.readouterr()
    assert {process.pid for process in psutil.Process().children(recursive=True)} == before
    return code, json.loads(said.out) if code == 0 else said.err


@live
def test_a_site_is_recorded_octet_for_octet_and_what_is_not_is_told(tmp_path, capsys):
    site = odd.write(tmp_path / "site")
    with serving(tmp_path / "site", tmp_path / "pki", silent="down.odd.lab", endless="/events") as (port, ca, asked):
        code, told = record(capsys, site, tmp_path / "out", hosts=site.hosts, start=odd.START, port=port, ca=ca)
        assert code == 0, told
    page = read_page(tmp_path / "out")
    served, got = answers(site), answers(page)
    assert {key for key in got if key not in served} == {key for key in got if key[2].startswith("/random")}
    not_replayed = {"/events", "/worker.js"}
    for key, answer in served.items():
        if key[2] in not_replayed or key[1] == "down.odd.lab":
            assert key not in got
            continue
        status, headers, body, size = answer
        kept = tuple(pair for pair in headers if pair[0] != "set-cookie")
        assert got[key] == (status, kept, body, size), key
    reasons = [(each.url, each.reason) for each in page.left_out]
    for url, reason in [
        ("https://www.odd.lab/events", "stream of events"), ("https://www.odd.lab/worker.js", "service worker"),
        ("wss://www.odd.lab/socket", "WebSocket"), ("https://down.odd.lab/never", "had no response"),
        ("https://www.odd.lab/random?x=0.", "one of two loads only"),
    ]:  # fmt: skip
        assert any(where.startswith(url) and reason in why for where, why in reasons), (url, reasons)
    assert any("made up" in note or "makes up URLs" in note for note in told["notes"])
    assert any("dropped: 1 cookies" in note for note in told["notes"])
    text = (tmp_path / "out" / "page.json").read_text()
    assert "secret" not in text and os.environ.get("HOME", "/root") not in text
    assert not any("load event" in note for note in told["notes"])
    assert {fields.get("Range") for *_, fields in asked} == {None}


@live
def test_a_certificate_that_cannot_be_verified_ends_the_recording(tmp_path, capsys):
    site = small.write(tmp_path / "site")
    with serving(tmp_path / "site", tmp_path / "pki") as (port, _, asked):
        code, said = record(capsys, site, tmp_path / "out", "--once", hosts=site.hosts, start=small.START, port=port)
    assert code == 3
    assert "certificate verify failed" in said.lower() and "cannot be recorded" in said
    assert asked == []
    assert not (tmp_path / "out").exists()


@live
def test_an_origin_with_a_port_is_stored_under_another_name(tmp_path, capsys):
    site = small.write(tmp_path / "site")
    with serving(tmp_path / "site", tmp_path / "pki") as (port, ca, _):
        here = f"https://www.small.lab:{port}"
        code, told = record(
            capsys, site, tmp_path / "out", "--once", "--rename", f"{here}=https://www.mine.lab",
            hosts=site.hosts, start=f"{here}/", port=port, ca=ca,
        )  # fmt: skip
        assert code == 0, told
    page = read_page(tmp_path / "out")
    assert page.start == "https://www.mine.lab/"
    assert page.hosts == ("www.mine.lab", "cdn.small.lab")
    assert answers(page)["GET", "www.mine.lab", "/"] == answers(site)["GET", "www.small.lab", "/"]


@live
@pytest.mark.long
def test_what_http_leads_to_is_recorded_and_a_page_that_is_refused_is_not(tmp_path, capsys):
    site = small.write(tmp_path / "site")

    class Redirect(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(301)
            self.send_header("location", "https://www.small.lab" + self.path)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    with serving(tmp_path / "site", tmp_path / "pki") as (port, ca, _), HTTPServer(("127.0.0.1", 0), Redirect) as plain:
        threading.Thread(target=plain.serve_forever, daemon=True).start()
        to = f"www.small.lab:80=127.0.0.1:{plain.server_address[1]}"
        for path, name in (("/", "out"), ("/nothing", "none")):
            code, told = record(
                capsys, site, tmp_path / name, "--once", "--resolve", to,
                hosts=site.hosts, start="http://www.small.lab" + path, port=port, ca=ca,
            )  # fmt: skip
            assert code == (0 if name == "out" else 3), told
        plain.shutdown()
    assert "cannot be recorded: it was answered with status 404" in told
    assert not (tmp_path / "none").exists()
    page = read_page(tmp_path / "out")
    assert page.start == small.START
    assert [(each.url, each.reason[:12]) for each in page.left_out] == [("http://www.small.lab/", "is not https")]


@live
@pytest.mark.long
def test_a_page_of_1000_resources_is_recorded_without_a_difference(tmp_path, capsys):
    site = many(1000, tmp_path / "site")
    with serving(tmp_path / "site", tmp_path / "pki") as (port, ca, _):
        code, told = record(
            capsys, site, tmp_path / "out", "--timeout", "200 s", hosts=site.hosts, start=site.start, port=port, ca=ca
        )
        assert code == 0, told
    assert answers(read_page(tmp_path / "out")) == answers(site)
    assert told["left_out"] == []


def test_a_folder_is_recorded_and_shown(tmp_path, capsys):
    (tmp_path / "my site").mkdir()
    (tmp_path / "my site" / "index.html").write_text(
        "<title>Mine</title><script src=https://x.example.org/a.js></script>"
    )
    assert main.run(["page", "record", str(tmp_path / "my site"), "--out", str(tmp_path / "out")]) == 0
    assert main.run(["page", "show", str(tmp_path / "out"), "--responses"]) == 0
    said = capsys.readouterr().out
    assert "200 GET https://www.my-site.lab/ 67 B document" in said
    assert "not replayed: 1: is on another origin" in said and "https://x.example.org/a.js" in said
    assert main.run(["page", "record", str(tmp_path / "my site"), "--out", str(tmp_path / "out")]) == 2
    assert "already exists" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"source": "nowhere.har"}, "no such file or folder"),
        ({"source": "https://a.lab/", "origin": "https://b.lab"}, "option --origin: is for a folder"),
        ({"source": "https://a.lab/", "name": "A b"}, "option --name"),
        ({"source": "https://a.lab/", "rename": ("https://a.lab",)}, "option --rename: .* not FROM=TO"),
        ({"source": "https://a.lab/", "rename": ("https://a.lab=http://b.lab",)}, "option --rename: .* is not https"),
        ({"source": "https://a.lab/", "resolve": ("a.lab=nowhere",)}, "option --resolve"),
        ({"source": "https://a.lab/", "resolve": ("a.lab=127.0.0.1:99999",)}, "option --resolve"),
        ({"source": "https://a.lab:8443/"}, "names a port .* --rename"),
    ],
)
def test_bad_input_is_one_line_before_anything_is_started(tmp_path, wanted, message):
    with pytest.raises(UserError, match=message):
        record_page(RecordingJob(out=tmp_path / "out", **wanted), print)


def test_what_a_killed_recording_left_is_removed_by_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    old, new, foreign = (tmp_path / f"trifecta-record-{name}" for name in ("old", "new", "foreign"))
    for each in (old, new):
        each.mkdir()
        (each / "lock").touch()
    os.utime(old / "lock", (1, 1))
    foreign.mkdir()
    with scratch() as first:
        assert first.parent == tmp_path and (first / "tmp").is_dir()
        assert (old.exists(), new.exists(), foreign.exists()) == (False, True, True)
        os.utime(first / "lock", (1, 1))
        with scratch() as second:
            assert first.exists(), "one that goes on is held by its lock"
        assert not second.exists()
    assert not first.exists()


def test_renames_are_of_origins(tmp_path):
    wanted = RecordingJob("https://a.lab/", tmp_path, rename=("http://LOCALHOST:80/=https://www.mine.lab",))
    assert renames(wanted) == {"http://localhost": "https://www.mine.lab"}
