"""Templates compiled once: taken from the cache while they are the same, and made again where it is of no use."""

from __future__ import annotations

from pathlib import Path

import pytest
from jinja2 import Environment

from trifecta.report import page_templates
from trifecta.store.cache import CACHE_VARIABLE

TEXT = "{% if shown %}\n<p>{{ shown }}</p>\n{% endif %}\n"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    (tmp_path / "page.j2").write_text(TEXT)
    return tmp_path / "cache" / "templates"


def filled(folder: Path, *, trim: bool = True) -> str:
    return page_templates.environment((folder,), trim=trim).get_template("page.j2").render(shown="a & b")


def compiled(cache: Path) -> list[Path]:
    return sorted(cache.rglob("*.cache"))


def forbid(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(Environment, "_compile", refuse)


def test_what_was_compiled_is_taken_from_the_cache(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = filled(tmp_path)
    assert first == "<p>a &amp; b</p>\n"
    forbid(monkeypatch)
    assert filled(tmp_path) == first


def test_a_template_that_was_changed_is_compiled_again(cache: Path, tmp_path: Path) -> None:
    filled(tmp_path)
    (tmp_path / "page.j2").write_text("{{ shown }}!")
    assert filled(tmp_path) == "a &amp; b!"


def test_what_is_read_in_another_way_is_another_template(cache: Path, tmp_path: Path) -> None:
    assert filled(tmp_path, trim=True) == "<p>a &amp; b</p>\n"
    assert filled(tmp_path, trim=False) == "\n<p>a &amp; b</p>\n"
    assert len(compiled(cache)) == 2


@pytest.mark.parametrize("left", [0, 1, 0.5, 0.9])
def test_half_a_file_is_compiled_again(cache: Path, tmp_path: Path, left: float) -> None:
    filled(tmp_path)
    (file,) = compiled(cache)
    whole = file.read_bytes()
    file.write_bytes(whole[: left if isinstance(left, int) else int(len(whole) * left)])
    assert filled(tmp_path) == "<p>a &amp; b</p>\n"
    assert file.read_bytes() == whole


@pytest.mark.parametrize("at", [".", "jinja"])
def test_without_a_folder_to_write_to_it_is_compiled_each_time(cache: Path, tmp_path: Path, at: str) -> None:
    if at == ".":
        cache.parent.write_text("a file in its place")
    else:
        filled(tmp_path)
        (file,) = compiled(cache)
        file.unlink()
        file.mkdir()
    assert filled(tmp_path) == "<p>a &amp; b</p>\n"
