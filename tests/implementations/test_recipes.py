"""Recipes bring all or nothing, and nothing but what was pinned; without a network, whatever the environment says."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from trifecta.design.errors import CannotError
from trifecta.implementations.recipes import PROGRAMS, go_program, python_packages
from trifecta.implementations.recipes.debian import DebianPackages
from trifecta.implementations.recipes.go_program import GoProgram, find_go
from trifecta.implementations.recipes.old_go import OldGoProgram
from trifecta.implementations.recipes.python_packages import PythonPackages
from trifecta.implementations.server import Unsupported
from trifecta.store import cache as whole


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TRIFECTA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def silent(_text):
    pass


# --- whole.py


def test_what_fails_half_way_leaves_what_was_there(cache):
    whole.make_whole(cache / "x", "1", lambda folder: (folder / "a").write_text("old"), silent)

    def fill(folder):
        (folder / "a").write_text("new")
        raise RuntimeError("half way")

    with pytest.raises(RuntimeError):
        whole.make_whole(cache / "x", "2", fill, silent)
    assert (cache / "x" / "a").read_text() == "old"
    assert whole.is_whole(cache / "x", "1")
    assert not whole.is_whole(cache / "x", "2")
    assert sorted(entry.name for entry in cache.iterdir()) == [".x.lock", "x"]


def test_a_new_version_takes_the_place_of_the_old(cache):
    for version in ("1", "2"):
        whole.make_whole(cache / "x", version, lambda folder, v=version: (folder / v).write_text(""), silent)
    assert sorted(entry.name for entry in (cache / "x").iterdir()) == [whole.STAMP, "2"]
    assert not [entry for entry in cache.iterdir() if "partial" in entry.name]


def test_what_a_killed_installation_left_is_removed_by_the_next(cache):
    left = cache / ".x.partial-dead"
    left.mkdir(parents=True)
    (left / "file").write_text("x")
    whole.make_whole(cache / "x", "1", lambda folder: None, silent)
    assert not left.exists()


def test_one_installation_waits_for_another_and_says_so(cache):
    inside, go_on, said = threading.Event(), threading.Event(), []
    running: list[str] = []

    def slow(folder):
        running.append("first")
        inside.set()
        assert go_on.wait(20)
        time.sleep(0.2)
        running.append("first done")

    def say(text):
        said.append(text)
        go_on.set()

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(whole.make_whole, cache / "x", "1", slow, silent)
        assert inside.wait(20)
        whole.make_whole(cache / "x", "2", lambda folder: running.append("second"), say)
        first.result(20)
    assert running == ["first", "first done", "second"]
    assert said == ["waiting for another installation of x to end"]
    assert whole.is_whole(cache / "x", "2")


def test_a_cache_that_cannot_be_written_is_told_with_the_remedy(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotError, match="TRIFECTA_CACHE"):
        whole.make_whole(tmp_path / "file" / "x", "1", lambda folder: None, silent)


# --- python_packages.py


@pytest.fixture
def wheels(tmp_path, monkeypatch):
    """A folder of wheels instead of an index."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    return folder


def make_wheel(folder, name="tiny", version="1.0"):
    path = folder / f"{name}-{version}-py3-none-any.whl"
    files = {
        f"{name}.py": f"VERSION = {version!r}\n",
        f"{name}-{version}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{name}-{version}.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = f"{name}-{version}.dist-info/RECORD"
    lines = [f"{each},sha256={_digest(text)},{len(text)}" for each, text in files.items()]
    with zipfile.ZipFile(path, "w") as wheel:
        for each, text in {**files, record: "\n".join([*lines, f"{record},,"]) + "\n"}.items():
            wheel.writestr(each, text)
    return path


def _digest(text):
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def make_lock(path, *wheels, digest=None):
    pins = [wheel.name.split("-")[:2] for wheel in wheels]
    lines = [
        f"{name}=={version} \\\n    --hash=sha256:{digest or hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"
        for (name, version), wheel in zip(pins, wheels, strict=True)
    ]
    path.write_text("# a comment with a==b\n" + "".join(lines))
    return path


def test_packages_of_the_lock_file_are_installed_and_run(tmp_path, wheels):
    recipe = PythonPackages("tiny", make_lock(tmp_path / "lock", make_wheel(wheels)))
    assert not recipe.installed()
    recipe.install(silent)
    assert recipe.installed()
    assert recipe.version("tiny") == "1.0"
    assert recipe.file("tiny.py").is_file()
    # The environment was made elsewhere and renamed: its interpreter must still find what is in it.
    done = subprocess.run(
        [recipe.python(), "-I", "-c", "import tiny, sys; print(tiny.VERSION, sys.prefix)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["1.0", str(recipe.folder())]


def test_a_file_with_another_checksum_is_not_used(tmp_path, wheels, cache):
    recipe = PythonPackages("tiny", make_lock(tmp_path / "lock", make_wheel(wheels), digest="0" * 64))
    with pytest.raises(CannotError, match=r"not the one of the lock file and was not used.*pip cache purge") as caught:
        recipe.install(silent)
    assert "\n" not in str(caught.value)
    assert not recipe.installed()
    assert [entry.name for entry in cache.iterdir()] == [".tiny.lock"]


def test_a_package_without_a_checksum_is_refused(tmp_path, wheels):
    make_wheel(wheels)
    (tmp_path / "lock").write_text("tiny==1.0\n")
    with pytest.raises(CannotError, match="hash"):
        PythonPackages("tiny", tmp_path / "lock").install(silent)


def test_a_package_that_is_nowhere_is_told_with_the_remedy(tmp_path, wheels):
    wheel = make_wheel(wheels)
    lock = make_lock(tmp_path / "lock", wheel)
    wheel.unlink()
    with pytest.raises(CannotError, match="index cannot be reached"):
        PythonPackages("tiny", lock).install(silent)


def test_a_source_package_is_never_built(tmp_path, wheels):
    ran = tmp_path / "ran"
    source = tmp_path / "evil-1.0"
    source.mkdir()
    (source / "setup.py").write_text(f"open({str(ran)!r}, 'w')\nfrom setuptools import setup\nsetup(name='evil')\n")
    archive = Path(shutil.make_archive(str(wheels / "evil-1.0"), "gztar", tmp_path, "evil-1.0"))
    lock = tmp_path / "lock"
    lock.write_text(f"evil==1.0 --hash=sha256:{hashlib.sha256(archive.read_bytes()).hexdigest()}\n")
    with pytest.raises(CannotError, match=r"requirement evil==1\.0.*there is no wheel for this Python"):
        PythonPackages("evil", lock).install(silent)
    assert not ran.exists()


def test_packages_on_pythonpath_do_not_pass_for_those_asked_for(tmp_path, wheels, monkeypatch):
    wheel = make_wheel(wheels)
    elsewhere = tmp_path / "elsewhere"
    zipfile.ZipFile(wheel).extractall(elsewhere)
    monkeypatch.setenv("PYTHONPATH", str(elsewhere))
    monkeypatch.setenv("PIP_TARGET", str(tmp_path / "target"))
    recipe = PythonPackages("tiny", make_lock(tmp_path / "lock", wheel))
    recipe.install(silent)
    assert recipe.file("tiny.py").is_file()
    assert not (tmp_path / "target").exists()


def test_less_than_the_lock_file_names_is_no_installation(tmp_path, wheels, monkeypatch):
    done = subprocess.CompletedProcess([], 0, "", "")
    monkeypatch.setattr(python_packages.subprocess, "run", lambda *_, **__: done)
    recipe = PythonPackages("tiny", make_lock(tmp_path / "lock", make_wheel(wheels)))
    with pytest.raises(CannotError, match=r"pip installed all but tiny 1\.0"):
        recipe.install(silent)
    assert not recipe.installed()


def test_another_lock_file_or_a_python_that_is_gone_is_not_installed(tmp_path, wheels):
    one, two = make_wheel(wheels), make_wheel(wheels, version="2.0")
    lock = make_lock(tmp_path / "lock", one)
    recipe = PythonPackages("tiny", lock)
    recipe.install(silent)
    make_lock(lock, two)
    with pytest.raises(Unsupported, match=r"another version's.*run: trifecta get tiny$"):
        recipe.python()
    recipe.install(silent)
    assert recipe.version("tiny") == "2.0"
    recipe.python().unlink()
    assert not recipe.installed()


def test_without_pip_the_remedy_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(python_packages, "find_spec", lambda _: None)
    with pytest.raises(CannotError, match="-m ensurepip"):
        PythonPackages("tiny", tmp_path / "lock").install(silent)


@pytest.mark.parametrize("name", ["envoy", "hypercorn", "hypercorn-2023", "python-client", "python-client-2023"])
def test_every_package_of_a_shipped_lock_file_is_pinned_and_has_checksums(name):
    lines = (PROGRAMS / name / "requirements.lock").read_text().splitlines()
    assert "://" not in "".join(lines)  # where packages come from is the system's affair
    entries = " ".join(line.rstrip("\\") for line in lines if not line.startswith("#")).split("==")
    assert len(entries) > 1
    assert all("--hash=sha256:" in entry for entry in entries[1:])


# --- go_program.py


@pytest.fixture
def module(tmp_path):
    source = tmp_path / "module"
    source.mkdir()
    (source / "go.mod").write_text("module hello\n\ngo 1.21\n")
    (source / "main.go").write_text('package main\n\nfunc main() { print("hello") }\n')
    return source


def fake_go(tmp_path, monkeypatch, script):
    folder = tmp_path / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "go").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "go").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_go_builds_just_what_go_mod_and_go_sum_say(tmp_path, module, monkeypatch):
    monkeypatch.setenv("GOFLAGS", "-mod=mod")
    fake_go(tmp_path, monkeypatch, f'env > {tmp_path}/env; echo "$@" > {tmp_path}/arguments; while [ "$1" != -o ]; do '
            'shift; done; printf "#!/bin/sh\\necho hello" > "$2"; chmod +x "$2"')  # fmt: skip
    recipe = GoProgram("hello", module)
    assert not recipe.installed()
    recipe.install(silent)
    assert recipe.installed()
    environment = (tmp_path / "env").read_text().splitlines()
    assert {"GOFLAGS=-mod=readonly", "GOTOOLCHAIN=local", "GOWORK=off", "CGO_ENABLED=0"} <= {*environment}
    assert f"PWD={module}" in environment
    assert subprocess.run([recipe.program()], capture_output=True, check=True).stdout == b"hello\n"
    (module / "main.go").write_text("package main // changed\n")
    with pytest.raises(Unsupported, match=r"another version's.*trifecta get hello"):
        recipe.program()


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        ("go: go.mod requires go >= 1.26 (running go 1.21; GOTOOLCHAIN=local)", "install that Go or a newer one"),
        (
            "verifying x@v1: checksum mismatch\n\tdownloaded: h1:a\n\tgo.sum: h1:b\n\nSECURITY ERROR",
            "go clean -modcache",
        ),
        ("go: x@v1: Get: dial tcp: no route to host", "check the network"),
        ("go: downloading x v1", "it said nothing"),
    ],
)
def test_what_go_says_is_told_on_one_line_with_a_remedy(tmp_path, module, monkeypatch, cache, words, remedy):
    (tmp_path / "words").write_text(words)
    fake_go(tmp_path, monkeypatch, f"cat {tmp_path}/words >&2; exit 1")
    with pytest.raises(CannotError) as caught:
        GoProgram("hello", module).install(silent)
    assert remedy in str(caught.value)
    assert "\n" not in str(caught.value)
    assert [entry.name for entry in cache.iterdir()] == [".hello.lock"]


def test_without_go_the_version_that_is_needed_is_told(tmp_path, module, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(go_program, "_PLACES", ())
    with pytest.raises(CannotError, match=r"go is not installed; install Go 1\.21 or newer: https://go\.dev"):
        GoProgram("hello", module).install(silent)


FAKE_GO = """#!/bin/sh
env > {folder}/env
while [ "$1" != -o ]; do shift; done
printf "#!/bin/sh\\necho hello" > "$2"; chmod +x "$2"
"""


@pytest.mark.parametrize("script", [FAKE_GO, "#!/bin/sh\nexit 1\n"], ids=["built", "not built"])
def test_an_old_go_is_fetched_for_the_build_and_removed_after_it(tmp_path, module, monkeypatch, cache, script):
    def fetch(recipe, say):
        go = recipe.folder() / "usr/lib/go-1.19/bin/go"
        go.parent.mkdir(parents=True)
        go.write_text(script.replace("{folder}", str(tmp_path)))
        go.chmod(0o755)
        assert (recipe.packages, recipe.suite) == (("golang-1.19-go",), "bookworm")

    monkeypatch.setattr(DebianPackages, "install", fetch)
    fake_go(tmp_path, monkeypatch, "exit 1")  # the one of today is not asked
    recipe = OldGoProgram("hello", module, go="1.19", suite="bookworm")
    if script is not FAKE_GO:
        with pytest.raises(CannotError, match="hello: go cannot build it"):
            recipe.install(silent)
        assert not recipe.installed()
    else:
        recipe.install(silent)
        assert recipe.installed()
        environment = (tmp_path / "env").read_text().splitlines()
        assert {f"GOROOT={cache}/golang-1.19/usr/lib/go-1.19", "GOFLAGS=-mod=readonly"} <= {*environment}
    assert not (cache / "golang-1.19").exists()


def _go_version():
    try:
        done = subprocess.run([find_go("1.21"), "env", "GOVERSION"], capture_output=True, text=True, check=True)
    except (CannotError, OSError, subprocess.SubprocessError):
        return (0, 0)
    major, minor = done.stdout.strip().removeprefix("go").split(".")[:2]
    return int(major), int(minor)


@pytest.mark.skipif(_go_version() < (1, 21), reason="no Go 1.21 or newer here")
def test_a_real_go_builds_a_real_program_and_refuses_a_module_without_checksum(module, cache):
    recipe = GoProgram("hello", module)
    recipe.install(silent)
    assert subprocess.run([recipe.program()], capture_output=True, check=True).stderr == b"hello"
    (module / "go.mod").write_text("module hello\n\ngo 1.21\n\nrequire github.com/quic-go/quic-go v0.65.0\n")
    (module / "main.go").write_text('package main\n\nimport _ "github.com/quic-go/quic-go"\n\nfunc main() {}\n')
    with pytest.raises(CannotError, match=r"go\.sum|missing"):
        recipe.install(silent)
    assert not recipe.installed()
    assert (cache / "hello" / "hello").exists()  # the former stays until another is whole
