"""Pages of folders and of HAR files: what is there is taken as it is, what is not is told."""

import base64
import copy
import gzip
import json

import brotli
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trifecta.design.errors import UserError
from trifecta.pages import references
from trifecta.pages.archive import read_page
from trifecta.pages.folder import read_folder
from trifecta.pages.har import read_har


def test_a_folder_is_served_as_it_lies(tmp_path):
    site = tmp_path / "site"
    (site / "sub dir").mkdir(parents=True)
    (site / "index.html").write_text(
        '<title> My\n site</title><link rel=stylesheet href=a.css><img srcset="b.png 1x, //cdn.example.org/b.png 2x">'
        '<script src="https://www.mine.lab/own.js"></script><a href="https://elsewhere.example.org/">x</a>'
    )
    (site / "a.css").write_text(
        "/* url(https://no.example.org/) */ @import 'https://fonts.example.org/f';p{background:url(b.png)}"
    )
    (site / "own.js").write_text("1")
    (site / "b.png").write_bytes(b"\x89PNG")
    (site / "sub dir" / "index.html").write_text("sub")
    (site / "sub dir" / "ä#?.bin").write_bytes(b"")
    (site / ".git").mkdir()
    (site / ".git" / "secret").write_text("no")
    (site / "link").symlink_to("/etc/passwd")
    page, start, title = read_folder(site, "mine")
    assert (start, title) == ("https://www.mine.lab/", "My site")
    written = page.write(tmp_path / "page", start, title, {"kind": "folder"})
    assert written == read_page(tmp_path / "page")
    by_path = {each.target: each for each in written.responses}
    assert list(by_path) == ["/", "/a.css", "/b.png", "/own.js", "/sub%20dir/", "/sub%20dir/%C3%A4%23%3F.bin"]
    assert by_path["/b.png"].headers == (("content-type", "image/png"),)
    assert {each.url for each in written.left_out} == {
        "https://cdn.example.org/b.png", "https://fonts.example.org/f", "https://www.mine.lab/link",
    }  # fmt: skip


def test_a_folder_without_an_index_or_with_a_bad_origin_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"no index\.html"):
        read_folder(tmp_path, "x")
    (tmp_path / "index.html").write_text("x")
    with pytest.raises(UserError, match="names a port"):
        read_folder(tmp_path, "x", "https://x.lab:8443")


def entry(url, text="", mime="text/html", *, status=200, headers=(), method="GET", **content):
    fields = [{"name": "Content-Type", "value": mime}, *({"name": name, "value": value} for name, value in headers)]
    size = content.pop("size", len(text or ""))
    content |= {"size": size, "text": text, "mimeType": mime}
    kind = {"_resourceType": content.pop("_resourceType")} if "_resourceType" in content else {}
    return {
        **kind,
        "request": {"method": method, "url": url, "headers": [{"name": "Cookie", "value": "secret=1"}]},
        "response": {"status": status, "headers": fields, "bodySize": -1, "content": content},
    }  # fmt: skip


def har_of(*entries):
    return {
        "log": {
            "version": "1.2",
            "creator": {"name": "a test", "version": "1"},
            "pages": [{"title": "Mine"}],
            "entries": list(entries),
        }
    }


SITE = har_of(
    entry("http://mine.example/", status=301, headers=[("Location", "https://mine.example/")]),
    entry(
        "https://mine.example/",
        "<p>hé",
        "text/html; charset=ISO-8859-1",
        headers=[("Content-Encoding", "gzip"), ("Set-Cookie", "a=1\nb=2")],
    ),
    entry(
        "https://cdn.mine.example/x.js?v=1",
        "x()" * 99,
        "text/javascript",
        headers=[("content-encoding", "br"), ("x-y", "ü")],
        _resourceType="script",
    ),
    entry("https://cdn.mine.example/i.png", base64.b64encode(b"\x89PNG\0").decode(), "image/png", encoding="base64"),
    entry("https://cdn.mine.example/z.css", "p{}", "text/css", headers=[("content-encoding", "zstd")]),
    entry("https://cdn.mine.example/lost.css", None, "text/css", size=99),
    entry("https://cdn.mine.example/cached.css", "p{}", status=304),
    entry("https://cdn.mine.example/broken", "a\ufffdb", "text/plain"),
    entry("https://mine.example/api?q=1", "", "application/json", status=204, method="POST"),
    entry("https://mine.example/said", None, "text/plain", size=-1, method="POST", headers=[("content-length", "0")]),
    entry("wss://mine.example/live", "", status=101),
    entry("data:text/plain,x", "x"),
)


def write(tmp_path, tree):
    file = tmp_path / "site.har"
    file.write_text(json.dumps(tree))
    return file


def test_a_har_becomes_a_page(tmp_path):
    har = read_har(write(tmp_path, SITE), "mine")
    assert (har.start, har.title, har.cookies) == ("https://mine.example/", "Mine", 2)
    page = har.page.write(tmp_path / "page", har.start, har.title, har.facts)
    by_path = {each.host + each.target: each for each in page.responses}
    assert list(by_path) == [
        "mine.example/", "cdn.mine.example/x.js?v=1", "cdn.mine.example/i.png", "cdn.mine.example/z.css",
        "mine.example/api?q=1", "mine.example/said",
    ]  # fmt: skip

    def body(path):
        return (tmp_path / "page" / "bodies" / by_path[path].body).read_bytes()

    assert gzip.decompress(body("mine.example/")) == "<p>hé".encode("latin-1")
    assert brotli.decompress(body("cdn.mine.example/x.js?v=1")) == b"x()" * 99
    assert dict(by_path["cdn.mine.example/x.js?v=1"].headers)["x-y"] == "ü"
    assert body("cdn.mine.example/i.png") == b"\x89PNG\0"
    assert dict(by_path["cdn.mine.example/z.css"].headers) == {"content-type": "text/css"}
    assert (by_path["mine.example/api?q=1"].method, by_path["mine.example/api?q=1"].body) == ("POST", None)
    assert (har.facts["coded_again"], har.facts["coding_dropped"]) == (2, 1)
    reasons = {each.url: each.reason for each in page.left_out}
    assert list(reasons) == [
        "http://mine.example/", "https://cdn.mine.example/lost.css", "https://cdn.mine.example/cached.css",
        "https://cdn.mine.example/broken", "wss://mine.example/live",
    ]  # fmt: skip
    text = (tmp_path / "page" / "page.json").read_text()
    assert "secret" not in text and "set-cookie" not in text


def test_cookies_are_kept_when_that_is_asked_for(tmp_path):
    har = read_har(write(tmp_path, SITE), "mine", keep_cookies=True)
    first = next(iter(har.page.responses.values()))
    assert [value for name, value in first.headers if name == "set-cookie"] == ["a=1", "b=2"]


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ([], "the document: must be an object"),
        ({"log": {}}, "log.entries: must be a list"),
        (har_of({"request": 1}), r"log.entries\[0\].request: must be an object"),
        (har_of(entry(5)), r"log.entries\[0\].request.url: must be a text"),
        (har_of(entry("https://a.b/", status="ok")), r"log.entries\[0\].response.status: must be a number"),
        (har_of(entry("https://a.b/", headers=[(1, "x")])), r"headers\[1\].name: must be a text"),
        (har_of(entry("http://a.b/", "x")), r"log.entries\[0\]: http://a.b/: is not https .*--rename"),
    ],
)
def test_a_fault_of_a_har_names_file_and_field(tmp_path, tree, message):
    with pytest.raises(UserError, match=message) as caught:
        read_har(write(tmp_path, tree), "x")
    assert "site.har" in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_any_har_is_a_page_or_one_line(tmp_path_factory, data):
    folder = tmp_path_factory.getbasetemp() / "fuzzed"
    folder.mkdir(exist_ok=True)
    tree = copy.deepcopy(SITE)
    for _ in range(data.draw(st.integers(1, 3))):
        here = tree
        while True:
            places = list(here) if isinstance(here, dict) else list(range(len(here)))
            if not places:
                break
            place = data.draw(st.sampled_from(places))
            if not isinstance(here[place], dict | list) or data.draw(st.integers(0, 4)) == 0:
                here[place] = data.draw(JSON)
                break
            here = here[place]
    try:
        har = read_har(write(folder, tree), "x")
        har.page.page(har.start, har.title, har.facts)
    except UserError as error:
        assert "\n" not in str(error)


@settings(max_examples=150, deadline=None)
@given(
    text=st.text(max_size=80)
    | st.lists(
        st.sampled_from(["<img src=", "<style>", "url(", "'", '"', "<!--", "]]>", "http://[", " srcset=, ", ">", "é"])
    ).map("".join)
)
def test_any_text_has_references_or_none(text):
    references.absolute("https://a.lab/", [*references.in_html(text)[1], *references.in_css(text)])
