"""A full disk is named as one, with its folder, wherever it is met."""

import errno
import os
import shutil
from types import SimpleNamespace

import pytest

from trifecta.design.errors import CannotError
from trifecta.store import files
from trifecta.store.run import RunDirectory

FULL = r"^cannot write {}: the disk is full; free some space, or choose another folder with --out, then run this again"


def test_an_error_without_a_file_names_the_folder(tmp_path):
    with pytest.raises(CannotError, match=FULL.format(tmp_path)), files.full_disk(tmp_path):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_tree_that_could_not_be_copied(tmp_path):
    with pytest.raises(CannotError, match=FULL.format(tmp_path)), files.full_disk(tmp_path):
        raise shutil.Error([("a", "b", "[Errno 28] No space left on device: 'a' -> 'b'")])


def test_another_error_is_what_it_is(tmp_path):
    with pytest.raises(OSError, match="Bad"), files.full_disk(tmp_path):
        raise OSError(errno.EBADF, "Bad")
    with pytest.raises(CannotError, match=r"^no engine$"), files.full_disk(tmp_path):
        raise CannotError("no engine")


def disk(monkeypatch, free, names=1000):
    found = SimpleNamespace(f_bavail=free // 4096, f_frsize=4096, f_files=1000, f_favail=names)
    monkeypatch.setattr(os, "statvfs", lambda _: found)


def test_what_fails_on_a_full_disk_fails_for_it(tmp_path, monkeypatch):
    disk(monkeypatch, 8192)
    with pytest.raises(CannotError, match=FULL.format(tmp_path)), files.full_disk(tmp_path):
        raise CannotError("caddy ended before it was ready")


@pytest.mark.parametrize(("free", "names"), [(0, 9), (40_960, 9), (10**9, 0)])
def test_a_run_is_not_begun_where_no_trial_has_room(tmp_path, monkeypatch, free, names):
    disk(monkeypatch, free, names)
    with pytest.raises(CannotError, match=r"run: the disk is full \(\d+ kB are free, and a trial needs 100 kB\); free"):
        RunDirectory.create(tmp_path / "run", {}, "study: x\n")
    assert not list((tmp_path / "run").iterdir())
