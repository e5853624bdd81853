"""Page archives: what is written reads back, and whatever else lies there is one line that names file and field."""

import json
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.pages import small
from trifecta.design.errors import UserError
from trifecta.pages.archive import body_file, read_page
from trifecta.pages.builder import Builder


@pytest.fixture
def folder(tmp_path):
    small.write(tmp_path / "page")
    return tmp_path / "page"


def change(folder, edit):
    file = folder / "page.json"
    tree = json.loads(file.read_text())
    edit(tree)
    file.write_text(json.dumps(tree))


def test_what_was_written_reads_back(folder):
    page = read_page(folder)
    assert page == small.builder().page(small.START, "Small", {"kind": "generated", "version": 1})
    assert page.hosts == ("www.small.lab", "cdn.small.lab")
    assert page.responses[0].headers == (("content-type", "text/html; charset=utf-8"),)
    assert page.bytes == sum(each.bytes for each in page.responses)
    assert body_file(folder, page.responses[0]).read_bytes() == small.HTML
    assert [each.target for each in page.responses][2:5] == ["/%C3%A4%20b.svg", "/old", "/gone?x=%2F&y="]
    assert [each.kind for each in page.responses][:3] == ["document", "stylesheet", "image"]


def test_third_parties_are_kept(tmp_path):
    facts = {"kind": "generated", "version": 1}
    small.builder().write(tmp_path / "page", small.START, "Small", facts, ["cdn.small.lab"])
    assert read_page(tmp_path / "page").third_parties == ("cdn.small.lab",)


def test_a_folder_that_is_taken_stays_as_it_is(folder):
    with pytest.raises(UserError, match="already exists"):
        small.write(folder)
    assert [path.name for path in folder.parent.iterdir()] == ["page"]


FAULTS = {
    "format": lambda tree: tree.update(format=2),
    "name": lambda tree: tree.update(name="../x"),
    "title": lambda tree: tree.update(title="a\nb"),
    "start: no response": lambda tree: tree.update(start="https://www.small.lab/other"),
    "start: .* names a port": lambda tree: tree.update(start="https://www.small.lab:444/"),
    "start: .* is not https": lambda tree: tree.update(start="http://www.small.lab/"),
    "start: .* an? address|start: .* has the address": lambda tree: tree.update(start="https://10.0.0.1/"),
    "source.kind": lambda tree: tree["source"].update(kind="x"),
    "source.seed": lambda tree: tree["source"].update(seed={}),
    "unknown field 'colour'": lambda tree: tree.update(colour=1),
    "responses: must be a list": lambda tree: tree.update(responses={}),
    r"responses\[0\]: must be an object": lambda tree: tree.update(responses=[1]),
    "lacks the field 'left_out'": lambda tree: tree.pop("left_out"),
    r"responses\[0\].status": lambda tree: tree["responses"][0].update(status=101),
    r"responses\[1\].bytes": lambda tree: tree["responses"][1].update(bytes=-1),
    r"responses\[1\].body: .* octets and not": lambda tree: tree["responses"][1].update(bytes=3),
    r"responses\[2\].url": lambda tree: tree["responses"][2].update(url="https://cdn.small.lab/a b"),
    r"responses\[0\].method": lambda tree: tree["responses"][0].update(method="CONNECT"),
    r"responses\[0\].kind": lambda tree: tree["responses"][0].update(kind=[]),
    r"responses\[0\].body": lambda tree: tree["responses"][0].update(body="../../../etc/passwd"),
    r"responses\[0\].headers\[0\].*\n?.*token": lambda tree: tree["responses"][0].update(headers=[["A", "b"]]),
    r"responses\[0\].headers\[0\].*'date'": lambda tree: tree["responses"][0].update(headers=[["date", "b"]]),
    r"responses\[0\].headers\[0\].*control": lambda tree: tree["responses"][0].update(headers=[["a", "b\r\nc: d"]]),
    r"responses\[0\].headers\[0\].*two texts": lambda tree: tree["responses"][0].update(headers=[["a"]]),
    r"responses\[7\].*same request": lambda tree: tree["responses"].append(tree["responses"][0]),
    r"responses\[5\].body": lambda tree: tree["responses"][5].update(body=tree["responses"][0]["body"]),
    r"third_parties\[0\]: 'x.lab' is no host .*: cdn.small.lab": lambda tree: tree.update(third_parties=["x.lab"]),
    r"third_parties\[0\]: 'www.small.lab' is no": lambda tree: tree.update(third_parties=["www.small.lab"]),
    "third_parties: must be a list": lambda tree: tree.update(third_parties="cdn.small.lab"),
    r"left_out\[0\].reason": lambda tree: tree["left_out"][0].update(reason=None),
}


@pytest.mark.parametrize("message", FAULTS)
def test_a_fault_names_file_and_field(folder, message):
    change(folder, FAULTS[message])
    with pytest.raises(UserError, match=message) as caught:
        read_page(folder)
    assert "page.json" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bodies_are_whole_and_in_the_folder(folder):
    page = read_page(folder)
    body = body_file(folder, page.responses[0])
    content = body.read_bytes()
    body.write_bytes(content.replace(b"Small", b"Smell"))
    with pytest.raises(UserError, match=r"responses\[0\].body: .* another content"):
        read_page(folder)
    body.unlink()
    with pytest.raises(UserError, match=r"responses\[0\].body: .* cannot be read"):
        read_page(folder)
    (folder / "elsewhere").write_bytes(content)
    body.symlink_to(folder / "elsewhere")
    with pytest.raises(UserError, match=r"responses\[0\].body: .* cannot be read"):
        read_page(folder)
    body.unlink()
    os.mkfifo(body)
    with pytest.raises(UserError, match=r"responses\[0\].body: .* not a regular file"):
        read_page(folder)
    body.unlink()
    body.write_bytes(content)
    assert read_page(folder) == page
    (folder / "bodies").rename(folder / "there")
    (folder / "bodies").symlink_to(folder / "there")
    with pytest.raises(UserError, match="is a link"):
        read_page(folder)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a":1,"a":2}', '{"format": NaN}', "[" * 100_000, "9" * 9999, "\0"])
def test_a_file_that_is_no_document_is_one_line(folder, text):
    (folder / "page.json").write_text(text)
    with pytest.raises(UserError, match=r"page\.json"):
        read_page(folder)


def test_a_folder_without_a_page_says_so(tmp_path):
    with pytest.raises(UserError, match="not a page archive"):
        read_page(tmp_path)
    with pytest.raises(UserError, match="not a page archive"):
        read_page(tmp_path / "missing")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_damage_is_a_page_or_one_line(tmp_path, data):
    folder = tmp_path / "page"
    if not folder.exists():
        small.write(folder)
        (tmp_path / "page.json").write_bytes((folder / "page.json").read_bytes())
    tree = json.loads((tmp_path / "page.json").read_text())
    for _ in range(data.draw(st.integers(1, 3))):
        here = tree
        while True:
            places = list(here) if isinstance(here, dict) else list(range(len(here)))
            if not places:
                break
            place = data.draw(st.sampled_from(places))
            if not isinstance(here[place], dict | list) or data.draw(st.integers(0, 3)) == 0:
                here[place] = data.draw(JSON)
                break
            here = here[place]
    (folder / "page.json").write_text(json.dumps(tree))
    try:
        page = read_page(folder)
    except UserError as error:
        assert "page" in str(error) and "\n" not in str(error)
    else:
        assert page.hosts


def test_the_builder_leaves_out_what_cannot_be_replayed():
    page = Builder("x")
    assert page.add("https://a.lab/", 200, [], b"1")
    refused = [
        ("GET", "http://a.lab/", 200, [], "not https"),
        ("GET", "https://a.lab:8443/", 200, [], "names a port"),
        ("GET", "https://[::1]/", 200, [], "port"),
        ("GET", "https://localhost/", 200, [], "with a dot"),
        ("GET", "https://a.lab/ws", 101, [], "WebSocket"),
        ("CONNECT", "https://a.lab/", 200, [], "method"),
        ("GET", "https://a.lab/h", 200, [("x", "a\nb")], "control"),
        ("GET", "data:text/plain,x", 200, [], "not https"),
        ("GET", "https://a.lab/\u00e4", 200, [], "ASCII"),
    ]
    for method, url, status, headers, reason in refused:
        assert page.add(url, status, headers, b"", method=method) is None
        assert reason in list(page.left_out)[-1].reason
    assert page.add("https://A.lab:443/#top", 200, [], b"1") == page.responses["GET", "a.lab", "/"]
    assert len(page.left_out) == len(refused)
    page.add("https://a.lab/", 200, [], b"2")
    assert "answered differently" in list(page.left_out)[-1].reason
    with pytest.raises(UserError, match="nothing that can be replayed answers it"):
        page.page("https://b.lab/", "x", {"kind": "generated"})


@settings(max_examples=200, deadline=None)
@given(url=st.text(max_size=60) | st.from_regex(r"https?://[a-z0-9.:@\[\]-]{0,20}[/?#][ -~]{0,20}", fullmatch=True))
def test_any_url_is_taken_or_left_out(url):
    page = Builder("x")
    page.add(url, 200, [], b"")
    assert len(page.responses) + len(page.left_out) == 1
