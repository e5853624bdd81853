"""HARs as other programs write them: wrapped, with fields missing, and why one is refused: the first reason is said."""

import gzip
import io
import json
import zipfile

import pytest

from tests.pages.test_folder_and_har import entry, har_of
from trifecta.design.errors import UserError
from trifecta.pages.har import read_har
from trifecta.recording.job import RecordingJob
from trifecta.recording.page import record_page

PAGE = entry("https://a.test/", "<p>x", "text/html")
SCRIPT = entry("https://a.test/x.js", "x()", "text/javascript")
TEXT = json.dumps(har_of(PAGE, SCRIPT))


def zipped(*files: tuple[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files:
            archive.writestr(name, content)
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.har.gz", gzip.compress(TEXT.encode())),
        ("a.har", gzip.compress(b"\xef\xbb\xbf" + TEXT.encode())),
        ("a.har", b"\xef\xbb\xbf" + TEXT.encode()),
        ("a.har", TEXT.encode("utf-16")),
        ("a.har.zip", zipped(("har.har", TEXT), ("other", b"x"))),
    ],
)
def test_however_it_is_wrapped(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    found = record_page(RecordingJob(str(tmp_path / name), tmp_path / "out"), print).page
    assert (found.name, found.start, len(found.responses)) == ("a", "https://a.test/", 2)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (gzip.compress(TEXT.encode())[:-20], "cannot be unpacked"),
        (b"\x1f\x8b", "cannot be unpacked"),
        (zipped(("a.txt", "x")), "is a zip with 0 HAR files"),
        (zipped(("a.har", TEXT), ("b.har", TEXT)), "is a zip with 2 HAR files"),
        (b"PK\x03\x04", "cannot be unpacked"),
        (b"  ", "is empty"),
    ],
)
def test_what_is_wrapped_wrongly_is_one_line(tmp_path, data, message):
    (tmp_path / "a.har").write_bytes(data)
    with pytest.raises(UserError, match=message) as caught:
        read_har(tmp_path / "a.har", "a")
    assert "a.har" in str(caught.value) and "\n" not in str(caught.value)


def test_content_that_playwright_attached(tmp_path):
    """In the zip, or beside the HAR; never anywhere else."""
    attached = entry("https://a.test/", None, "text/html", _file="1f.html", size=-1)
    outside = entry("https://a.test/o", None, "text/plain", _file="../secret", size=-1)
    (tmp_path / "secret").write_text("no")
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.har").write_text(json.dumps(har_of(attached, outside)))
    with pytest.raises(UserError, match=r"its content is in the file '1f\.html', which is not beside the HAR"):
        read_har(folder / "a.har", "a")
    (folder / "1f.html").write_text("<p>attached")
    (folder / "a.har.zip").write_bytes(zipped(("har.har", json.dumps(har_of(attached, outside))), ("1f.html", "<p>in")))
    for name, size in (("a.har", 11), ("a.har.zip", 5)):
        page = read_har(folder / name, "a").page
        assert [each.bytes for each in page.responses.values()] == [size]
        assert [each.url for each in page.left_out] == ["https://a.test/o"]


def test_fields_that_are_missing_null_or_of_another_type(tmp_path):
    text = {"request": {"url": "https://a.test/t"}, "response": {"status": "200", "content": {"text": "t"}}}
    text["response"]["headers"] = [{"name": "Age", "value": None}, {"name": "X-N", "value": 5}, {"name": ":status"}]
    typed = {"request": {"url": "https://a.test/"}, "response": {"status": 200.0, "httpVersion": "h3", "headers": None}}
    typed["response"]["content"] = {"text": "PHA+", "encoding": "BASE64", "mimeType": "text/html"}
    never = {"request": {"method": "GET", "url": "https://a.test/never"}}
    aborted = {"request": {"url": "https://a.test/aborted"}, "response": {"status": None, "content": None}}
    page = {
        "request": {"url": "https://a.test/untyped"},
        "response": {"status": 200, "content": {"text": " <!DOCTYPE html>"}},
    }
    cut = entry("https://a.test/cut", "c", "text/plain", headers=[("last-access=1;path=/;expires=Wed, 30", "x")])
    file = tmp_path / "a.har"
    file.write_text(json.dumps({"log": {"entries": [never, aborted, text, typed, page, cut]}}))
    found = read_har(file, "a")
    kept = {each.target: (each.status, each.kind, dict(each.headers)) for each in found.page.responses.values()}
    assert kept == {
        "/t": (200, "other", {"age": "", "x-n": "5"}),
        "/": (200, "document", {"content-type": "text/html"}),
        "/untyped": (200, "document", {}),
        "/cut": (200, "other", {"content-type": "text/plain"}),
    }
    assert (found.start, found.fields_dropped) == ("https://a.test/", 1)
    assert [each.reason for each in found.page.left_out] == [
        "the HAR has no response to it", "status 0 is not a final answer",
    ]  # fmt: skip


EMPTY = entry("https://a.test/", None, "text/html", size=9)
GONE = entry("https://a.test/", status=302, headers=[("Location", "/home")])
FRAME = entry("https://ads.test/frame", "<p>ad", "text/html")


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([EMPTY, entry("https://a.test/x.js", None, size=9)], "the HAR has no content; save it with content"),
        (
            [EMPTY, SCRIPT],
            r"log.entries\[0\]: https://a.test/: the HAR has no content of it; save the HAR with content$",
        ),
        ([EMPTY, FRAME], r"no content of it; .* or name another document with --start, as https://ads.test/frame"),
        ([entry("http://a.test/", "x"), FRAME], r"log.entries\[0\]: http://a.test/: is not https .*--rename"),
        ([entry("http://a.test/", None, size=9), SCRIPT], "is not https"),
        ([GONE, FRAME], r"log.entries\[0\]: https://a.test/ leads to '/home', which the HAR has no answer to"),
        (
            [GONE, entry("https://a.test/home", None, "text/html", size=9), SCRIPT],
            r"entries\[1\]: https://a.test/home: the",
        ),
        ([GONE, entry("https://a.test/home", status=302, headers=[("Location", "/")])], "in a circle"),
        ([SCRIPT], "none of 1 is a document"),
        ([entry("https://a.test/", "x", status=304)], "answered from the browser's cache"),
    ],
)
def test_the_first_reason_is_the_one_that_is_said(tmp_path, entries, said):
    """Neither a redirect to nothing nor a frame of somebody else is the page."""
    (tmp_path / "a.har").write_text(json.dumps(har_of(*entries)))
    with pytest.raises(UserError, match=said) as caught:
        read_har(tmp_path / "a.har", "a")
    assert "\n" not in str(caught.value)


def test_redirects_lead_to_the_page(tmp_path):
    """From http:// as far up as there are answers."""
    first = entry("http://a.test/", status=301, headers=[("Location", "https://a.test/")])
    home = entry("https://a.test/home", "<p>", "text/html")
    (tmp_path / "a.har").write_text(
        json.dumps(har_of(FRAME | {"request": {"method": "POST", "url": "https://b.test/"}}, first, GONE, home))
    )
    assert read_har(tmp_path / "a.har", "a").start == "https://a.test/"


def test_origins_are_stored_under_others(tmp_path):
    """The remedy that is named for http:// works."""
    moved = entry("http://127.0.0.1:8000/", status=302, headers=[("Location", "http://127.0.0.1:8000/home")])
    home = entry("http://127.0.0.1:8000/home", "<p>", "text/html")
    (tmp_path / "a.har").write_text(json.dumps(har_of(moved, home)))
    wanted = RecordingJob(
        str(tmp_path / "a.har"), tmp_path / "out", rename=["http://127.0.0.1:8000=https://www.mine.lab"]
    )
    page = record_page(wanted, print).page
    assert page.start == "https://www.mine.lab/"
    assert dict(page.responses[0].headers)["location"] == "https://www.mine.lab/home"
