from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browsing import browser  # noqa: F401  a fixture
from tests.report.synthetic import Shape, write_run
from tests.store.sealed import seal
from tests.ui.serving import Served, serving
from trifecta.store import manifest
from trifecta.ui import file_polling

SHAPE = {"paths": ("far",), "connections": ("new", "reused"), "servers": ("origin",)}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two small runs with files of browsers beside their samples, and one with troubles."""
    made = tmp_path_factory.mktemp("ui") / "runs"
    first = write_run(made / "first", Shape(blocks=6, samples_per_trial=40, title="The first", **SHAPE))
    (first / "har" / "t00003").mkdir(parents=True)
    (first / "har" / "t00003" / "0.har").write_text(json.dumps({"log": {"entries": []}}))
    (first / "frames" / "t00003" / "0").mkdir(parents=True)
    _picture(first / "frames" / "t00003" / "0" / "120.jpg")
    seal(first)
    nested = [path.relative_to(first).as_posix() for path in (first / "har" / "t00003").iterdir()]
    nested += [path.relative_to(first).as_posix() for path in (first / "frames").rglob("*.jpg")]
    manifest.Manifest(first).add(manifest.digests([(first / name, name) for name in nested]))
    second = Shape(blocks=6, samples_per_trial=40, title="The second", seed=9, http3_wait={"origin": 1.4}, **SHAPE)
    second.troubles = False
    seal(write_run(made / "below" / "second", second))
    return made


@pytest.fixture(scope="module")
def served(folder: Path, cache: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(folder, tmp_path_factory.mktemp("cwd")) as made:
        yield made


@pytest.fixture
def growing(folder: Path, tmp_path: Path) -> Path:
    """A copy of a run that a test may change."""
    return Path(shutil.copytree(folder / "below" / "second", tmp_path / "runs" / "growing"))


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run is looked at as soon as it changes: no measurement goes on beside the test."""
    monkeypatch.setattr(file_polling, "LOOK_S", 0.05)
    monkeypatch.setattr(file_polling, "SHARE", 100.0)


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Not of the session: what tests of other folders look for stands in the user's own cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRIFECTA_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def _picture(path: Path) -> None:
    from PIL import Image

    Image.new("RGB", (40, 30), (200, 120, 20)).save(path, "JPEG")
