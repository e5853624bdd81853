"""The page of a library: made of what lies in its packages, and nothing from elsewhere."""

import gzip

import pytest

from trifecta.pages import blocks, references
from trifecta.pages.archive import body_file, read_page

SITE = '<nav><a href="https://site.example.org">x</a></nav>'


@pytest.fixture
def library(tmp_path):
    root = tmp_path / "library"
    for path in ("imgs/a.png", "imgs/b.svg", "imgs/c.png", "imgs/d.svg", *blocks._SCRIPTS, *blocks._STYLES):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"/* {path} */")
    for name, _ in blocks._CHOICE:
        (root / f"{name}.html").write_text(
            f'<section id="navigator">{SITE}</section><header class="{name}">{SITE}</header>'
        )
    (root / "features.html").write_text(
        '<section>none</section><section>1 <img src="./imgs/a.png"></section>'
        '<section>2 <img src="./imgs/a.png"><img src="./imgs/b.svg"></section><section><iframe src="https://maps.example.org"></iframe></section>'
    )
    drawn = '<p style="background: url(imgs/d.svg)"></p>'
    (root / "contents.html").write_text(f'<section>3 {drawn}<img src="./imgs/c.png"><i class="fas fa-x"></i></section>')
    fonts = ("fa-solid-900.woff2", "fa-brands-400.woff2", "fa-solid-900.eot")
    (root / "awesome" / "css" / "all.min.css").write_text("".join(f"url(../webfonts/{font})" for font in fonts))
    for font in fonts:
        (root / "awesome" / "webfonts").mkdir(exist_ok=True)
        (root / "awesome" / "webfonts" / font).write_text(font)
    for weight in (400, 700):
        (root / "lato" / f"lato-latin-{weight}-normal.woff2").write_text(str(weight))
    return root


def test_the_page_is_made_of_the_library(library, tmp_path):
    page = blocks.make(library, tmp_path / "page", {"froala-design-blocks": "2.0.1"})
    assert page == read_page(tmp_path / "page")
    html = body_file(tmp_path / "page", page.responses[0]).read_text()
    assert [html.count(text) for text in ("navigator", "<iframe", "example.org")] == [0, 0, 0]
    assert 0 < html.index("1 <img") < html.index("2 <img") < html.index("3 <p")
    there = {each.url for each in page.responses}
    assert {*references.absolute(page.start, references.in_html(html)[1])} <= there
    assert {f"{blocks.ORIGIN}/imgs/{name}" for name in ("a.png", "b.svg", "c.png", "d.svg")} <= there
    assert f"{blocks.ORIGIN}/awesome/webfonts/fa-solid-900.woff2" in there
    assert [(each.url.rpartition("/")[2], each.reason[:20]) for each in page.left_out] == [
        ("fa-brands-400.woff2", "is a font that nothi"), ("fa-solid-900.eot", "is another form of a"),
    ]  # fmt: skip
    style = next(each for each in page.responses if each.url.endswith("froala_blocks.min.css"))
    assert gzip.decompress(body_file(tmp_path / "page", style).read_bytes()) == b"/* css/froala_blocks.min.css */"
    assert page.source["packages"] == ["froala-design-blocks 2.0.1"]
