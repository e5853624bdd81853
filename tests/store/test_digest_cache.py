"""What is known of a large run's files is not read again, and what was changed since is found all the same."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.store.sealed import small
from trifecta.design.errors import UserError
from trifecta.store import digest_cache, digest_prefetch, manifest


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that is large enough, whose files were written a while ago, as a new process sees it."""
    monkeypatch.setenv("TRIFECTA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(digest_cache, "_WORTH_BYTES", 1)
    monkeypatch.setattr(digest_cache, "_SETTLED_NS", 0)
    monkeypatch.setattr(digest_cache, "_hashed", {})
    made = small(tmp_path / "run")
    time.sleep(0.02)  # a tick of the file system's clock
    return made


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of files whose content was read."""
    names: list[str] = []
    digest = hashlib.file_digest

    def noted(file: Any, kind: Any) -> Any:
        names.append(Path(file.name).name)
        return digest(file, kind)

    monkeypatch.setattr(hashlib, "file_digest", noted)
    return names


def again(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check a run as another process does."""
    monkeypatch.setattr(digest_cache, "_hashed", {})
    digest_prefetch.read(run)
    manifest.check(run)


def test_files_are_read_once(run: Path, read: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    again(run, monkeypatch)
    assert read
    read.clear()
    again(run, monkeypatch)
    assert read == []


def test_what_was_changed_is_found_though_its_size_and_time_are_as_before(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again(run, monkeypatch)
    path = next((run / "samples").iterdir())
    before, content = path.stat(), bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    with pytest.raises(UserError, match=path.name):
        again(run, monkeypatch)


def test_what_was_written_just_now_is_read_again(run: Path, read: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest_cache, "_SETTLED_NS", 60_000_000_000)
    again(run, monkeypatch)
    read.clear()
    again(run, monkeypatch)
    assert read


def test_nothing_is_noted_of_a_small_run(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest_cache, "_WORTH_BYTES", 50_000_000)
    again(run, monkeypatch)
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("text", ["", "[]", "{", '{"run.json": 1}', '{"run.json": [[1], "0"]}', '{"x": [["a"], "0"]}'])
def test_a_note_that_is_none_does_not_count(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    again(run, monkeypatch)
    (file,) = (tmp_path / "cache" / digest_cache.FOLDER).iterdir()
    whole = json.loads(file.read_text())
    file.write_text(text)
    again(run, monkeypatch)
    assert json.loads(file.read_text()).keys() == whole.keys()


def test_a_cache_that_cannot_be_written_changes_nothing(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("a file")
    again(run, monkeypatch)


def test_what_nobody_opened_for_long_is_forgotten(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "cache" / digest_cache.FOLDER / "other.json"
    other.parent.mkdir(parents=True)
    other.write_text("{}")
    os.utime(other, (0, 0))
    again(run, monkeypatch)
    assert not other.exists()
