"""Generated pages: exact weight and count, the same every time, nothing from elsewhere, and every content decodes."""

import dataclasses
import gzip
import io
import re

import brotli
import pytest
from PIL import Image

from trifecta.design.errors import CannotError, UserError
from trifecta.pages import find, generate, photos
from trifecta.pages.archive import body_file, read_page
from trifecta.pages.many import many


@pytest.fixture(scope="module")
def light(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages") / "light"
    generate.make(generate.LIGHT, folder)
    return folder


def plain(folder, response):
    content = body_file(folder, response).read_bytes()
    coding = dict(response.headers).get("content-encoding")
    return {None: bytes, "gzip": gzip.decompress, "br": brotli.decompress}[coding](content)


def test_light_is_as_heavy_as_the_study_says(light):
    page = read_page(light)
    assert (page.bytes, len(page.responses)) == (3_500_000, 30)
    assert page.hosts == ("www.light.lab",)
    assert page.responses[0].bytes == 106_200
    assert page.left_out == ()


def test_every_resource_is_asked_for_by_the_page_and_nothing_else_is(light):
    page = read_page(light)
    texts = [plain(light, each).decode() for each in page.responses if each.kind in ("document", "stylesheet")]
    asked = {found for text in texts for found in re.findall(r"""(?:src|href)="(/[^"]+)"|url\("(/[^"]+)"\)""", text)}
    asked = {one or other for one, other in asked} - {"/"}
    assert {each.target for each in page.responses} - {"/"} == asked
    scripts = [plain(light, each).decode() for each in page.responses if each.kind == "script"]
    for text in [*texts, *scripts]:
        assert not re.search(r"(?<!xmlns=\")(?<!space = \")https?://", text)
        assert not re.search(r"Math\.random|setTimeout|setInterval|Date\b|lazy", text)


def test_every_picture_decodes(light):
    page = read_page(light)
    for each in page.responses:
        if each.kind == "image" and "svg" not in dict(each.headers)["content-type"]:
            with Image.open(io.BytesIO(body_file(light, each).read_bytes())) as picture:
                picture.load()
                assert f"image/{picture.format.lower()}" == dict(each.headers)["content-type"]
        elif each.kind == "font":
            assert body_file(light, each).read_bytes()[:4] == b"wOF2"


def test_the_same_seed_gives_the_same_page_and_another_another(tmp_path, monkeypatch):
    small = generate.Recipe("small", "Small", 400_000, ("sans",), 24, 2, 1, 1, 3, 2, 2, scale=0.3)
    assert len(generate.make(small, tmp_path / "a", 1).responses) == small.requests
    assert generate.make(small, tmp_path / "b", 1) == read_page(tmp_path / "a")
    other = generate.make(small, tmp_path / "c", 2)
    assert other.bytes == 400_000
    assert {each.body for each in other.responses} != {each.body for each in read_page(tmp_path / "a").responses}


def test_the_style_sheet_of_a_third_party_is_all_that_comes_from_there(tmp_path):
    small = generate.Recipe("small", "Small", 400_000, ("sans",), 24, 2, 1, 1, 3, 2, 2, scale=0.3)
    own = generate.make(small, tmp_path / "own")
    page = generate.make(dataclasses.replace(small, site="one", third_party="fonts.b.lab"), tmp_path / "page")
    assert (page.hosts, page.third_parties) == (("www.one.lab", "fonts.b.lab"), ("fonts.b.lab",))
    assert own.third_parties == ()
    assert (page.bytes, page.responses[0].bytes, len(page.responses)) == (400_000, 106_200, len(own.responses))
    (sheet,) = (each for each in page.responses if each.host == "fonts.b.lab")
    assert sheet.url == "https://fonts.b.lab/css/base.css"
    assert ("access-control-allow-origin", "*") in sheet.headers
    assert 'url("https://www.one.lab/fonts/sans.woff2")' in plain(tmp_path / "page", sheet).decode()
    assert f'<link rel="stylesheet" href="{sheet.url}">' in plain(tmp_path / "page", page.responses[0]).decode()
    # The rest is the same, but for some octets of pictures, which make up for what the addresses are longer.
    pairs = [(one, other) for one, other in zip(own.responses, page.responses, strict=True) if one.kind != "image"]
    assert [one.target for one, other in pairs if one.body != other.body] == ["/", "/css/base.css"]
    assert all(abs(one.bytes - other.bytes) < 100 for one, other in zip(own.responses, page.responses, strict=True))
    light = generate.LIGHT_FONTS
    assert (light.requests, light.total_bytes, light.origin) == (30, 3_500_000, generate.LIGHT.origin)


def test_heavy_counts_120_requests():
    assert generate.HEAVY.requests == 120
    assert generate.HEAVY.total_bytes == 7_300_000


@pytest.mark.parametrize(
    ("form", "sizes"), [("jpeg", range(9000, 9012)), ("png", range(9000, 9024)), ("webp", range(9000, 9040, 2))]
)
def test_a_picture_has_exactly_the_size_asked_for(form, sizes):
    picture = photos.landscape(1, 120, 80)
    for size in [*sizes, 100_000, 200_002]:
        content = photos.encoded(picture, form, size)
        assert len(content) == size
        with Image.open(io.BytesIO(content)) as again:
            again.load()
            assert again.size == (120, 80)
    with pytest.raises(ValueError, match="does not fit"):
        photos.encoded(picture, form, 60)


def test_many_has_just_as_many_responses(tmp_path):
    page = many(1000, tmp_path / "many")
    assert len(page.responses) == 1000
    assert len(page.hosts) == 3
    assert {each.status for each in page.responses} == {200, 301, 302, 307, 308}
    assert {each.method for each in page.responses} == {"GET", "POST"}
    assert any(each.target.endswith("?") for each in page.responses)


def test_pages_are_found_by_name_or_path(tmp_path, monkeypatch, light):
    monkeypatch.setenv("TRIFECTA_CACHE", str(tmp_path / "cache"))
    made = []
    monkeypatch.setattr(generate, "make", lambda recipe, folder: (made.append(recipe.name), folder.mkdir()))
    assert find("light") == find("light") == tmp_path / "cache" / "pages" / "light-1"
    assert made == ["light"]
    assert find(str(light)) == light
    with pytest.raises(CannotError, match="trifecta get page-blocks"):
        find("blocks")
    with pytest.raises(UserError, match="did you mean 'light'"):
        find("ligth")
    with pytest.raises(UserError, match="no such folder"):
        find("./nowhere")
