"""What the page is made of: the vendors' files as they were taken, and nothing from elsewhere."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from trifecta.ui.app import ASSETS

VENDOR = ASSETS / "vendor"
OWN = [path for path in sorted(ASSETS.rglob("*")) if path.is_file() and VENDOR not in path.parents]
DOCS = Path(__file__).parents[2] / "docs" / "dependencies.md"


def test_the_readme_names_every_file_of_the_vendors_with_version_licence_and_digest() -> None:
    readme = (VENDOR / "README.md").read_text()
    rows = re.findall(r"\| `([\w.]+)` \| \S+ ([\d.]+) \| (ISC|MIT) \|.*\| `([0-9a-f]{64})` \|", readme)
    shipped = {path.name for path in VENDOR.iterdir() if path.suffix in (".js", ".css")}
    assert {name for name, *_ in rows} == shipped and len(shipped) == 4
    for name, version, licence, digest in rows:
        content = (VENDOR / name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == digest, name
        assert version in content[:400].decode(errors="replace") or name.startswith("uPlot.min"), name
        kept = (VENDOR / f"{name.split('.')[0]}.LICENSE").read_text()
        assert "Permission" in kept and licence in ("ISC", "MIT")
        assert f"{version}" in DOCS.read_text()


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_nothing_comes_from_elsewhere_and_nothing_is_inline(path: Path) -> None:
    text = path.read_text()
    assert not re.search(r"https?://(?!www\.w3\.org/)", text)
    assert "innerHTML" not in text and "eval(" not in text and "insertAdjacentHTML" not in text
    if path.suffix == ".html":
        assert "style=" not in text and not re.search(r"\son\w+=", text)
        assert not re.search(r"<script(?![^>]*\ssrc=)", text)


def test_the_shell_asks_for_files_that_are_there() -> None:
    text = (ASSETS / "index.html").read_text()
    named = re.findall(r'(?:src|href)="/assets/([^"]+)"', text)
    assert len(named) == 7 and all((ASSETS / name).is_file() for name in named)
    for path in (ASSETS / "js").glob("*.js"):
        for other in re.findall(r'from "\./([\w.]+)"', path.read_text()):
            assert (ASSETS / "js" / other).is_file()
