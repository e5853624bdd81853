"""The recipe of a Rust program: what its lock file says is built, the binary alone is kept, failures have remedies."""

from __future__ import annotations

import os
import subprocess
import tomllib

import pytest

from trifecta.design.errors import CannotError
from trifecta.implementations.recipes import PROGRAMS, cargo_program
from trifecta.implementations.recipes.cargo_program import BORING_TOOLS, CargoProgram
from trifecta.implementations.server import Unsupported

BUILDS = """
while [ $# -gt 0 ]; do case "$1" in --target-dir) target=$2;; esac; shift; done
mkdir -p "$target/release/deps"; echo object > "$target/release/deps/object"
printf '#!/bin/sh\\necho hello\\n' > "$target/release/hello-program"; chmod +x "$target/release/hello-program"
"""


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TRIFECTA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def package(tmp_path):
    source = tmp_path / "package"
    (source / "src").mkdir(parents=True)
    (source / "Cargo.toml").write_text('[package]\nname = "hello-program"\nrust-version = "1.70"\n')
    (source / "Cargo.lock").write_text("version = 4\n")
    (source / "src" / "main.rs").write_text('fn main() { println!("hello") }\n')
    return source


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """The only folder on PATH but those of the system's shell tools."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def fake(programs, name, script):
    (programs / name).write_text(f"#!/bin/sh\n{script}\n")
    (programs / name).chmod(0o755)


def silent(_text):
    pass


def test_cargo_builds_just_what_the_lock_file_says_and_the_binary_is_kept(tmp_path, package, programs, monkeypatch):
    monkeypatch.setenv("RUSTFLAGS", "-C target-cpu=native")
    fake(programs, "cargo", f'env > {tmp_path}/env; echo "$@" > {tmp_path}/arguments; pwd > {tmp_path}/where{BUILDS}')
    recipe = CargoProgram("hello", package)
    assert not recipe.installed()
    recipe.install(silent)
    assert recipe.installed()
    arguments = (tmp_path / "arguments").read_text().split()
    assert arguments[:3] == ["build", "--release", "--locked"]
    assert str(package / "Cargo.toml") in arguments
    assert "RUSTFLAGS=" in (tmp_path / "env").read_text().splitlines()
    assert not (tmp_path / "where").read_text().startswith(str(package)), "settings of a checkout would be read"
    assert sorted(entry.name for entry in recipe.folder().iterdir()) == [".whole", "hello"]
    assert sorted(entry.name for entry in package.iterdir()) == ["Cargo.lock", "Cargo.toml", "src"]
    assert subprocess.run([recipe.program()], capture_output=True, check=True).stdout == b"hello\n"


@pytest.mark.parametrize("changed", ["Cargo.toml", "Cargo.lock", "src/main.rs", "src/more.rs", "build.rs"])
def test_another_source_is_another_program(package, programs, changed):
    fake(programs, "cargo", BUILDS)
    recipe = CargoProgram("hello", package)
    recipe.install(silent)
    (package / "target").mkdir()
    (package / "target" / "made.rs").write_text("// by somebody's own build")
    (package / "README.md").write_text("")
    assert recipe.installed()
    with (package / changed).open("a") as file:
        file.write("\n")
    with pytest.raises(Unsupported, match=r"another version's.*trifecta get hello"):
        recipe.program()


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        ("error: package `x` cannot be built because it requires rustc 1.99 or newer", "install that Rust or a newer"),
        (
            "error: rustc 1.70 is not supported by the following packages:\n  x@1 requires rustc 1.99",
            "install that Rust",
        ),
        ("error: cannot update the lock file /x because --locked was passed to prevent this", "what Cargo.lock names"),
        ("error: checksum for `x v1` changed between lock files", "what Cargo.lock names"),
        ("error: failed to get `x`\n\nCaused by:\n  download of config.json failed", "check the network"),
        (
            "error: failed to run custom build command\n  Unable to find libclang: set LIBCLANG_PATH",
            "install libclang-dev",
        ),
        ("error: failed to run custom build command\n  'stddef.h' file not found", "install libclang-dev"),
        ("", "it said nothing"),
    ],
)
def test_what_cargo_says_is_told_on_one_line_with_a_remedy(tmp_path, package, programs, cache, words, remedy):
    (tmp_path / "words").write_text(f"    Updating crates.io index\nwarning: unused\n{words}\n" if words else "")
    fake(programs, "cargo", f"cat {tmp_path}/words >&2; exit 101")
    with pytest.raises(CannotError) as caught:
        CargoProgram("hello", package).install(silent)
    assert remedy in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "Updating" not in str(caught.value)
    assert [entry.name for entry in cache.iterdir()] == [".hello.lock"]


def test_a_build_that_makes_another_program_is_none(package, programs):
    fake(programs, "cargo", BUILDS.replace("hello-program", "other"))
    recipe = CargoProgram("hello", package)
    with pytest.raises(CannotError, match="hello-program"):
        recipe.install(silent)
    assert not recipe.installed()


def test_without_cargo_the_version_that_is_needed_is_told(tmp_path, package, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CARGO_HOME", str(tmp_path / "none"))
    monkeypatch.setattr(cargo_program, "_PLACES", ())
    with pytest.raises(CannotError, match=r"cargo is not installed; install Rust 1\.70 or newer: https://rustup\.rs"):
        CargoProgram("hello", package).install(silent)


def test_cargo_is_found_where_rustup_puts_it(tmp_path, package, monkeypatch):
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    fake(home / "bin", "cargo", f"PATH={os.environ['PATH']}{BUILDS}")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CARGO_HOME", str(home))
    monkeypatch.setattr(cargo_program, "_PLACES", ())
    recipe = CargoProgram("hello", package)
    recipe.install(silent)
    assert recipe.installed()


def test_what_builds_a_library_in_another_language_is_named_before_the_build(package, programs, monkeypatch):
    fake(programs, "cargo", "exit 1")
    fake(programs, "make", "exit 1")
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr(cargo_program, "_LIBCLANG", ())
    monkeypatch.delenv("LIBCLANG_PATH", raising=False)
    with pytest.raises(CannotError) as caught:
        CargoProgram("hello", package, BORING_TOOLS).install(silent)
    what = "hello is built with cmake, a C++ compiler, git, libclang, which this machine lacks"
    assert str(caught.value) == f"{what}; run: apt install cmake g++ git libclang-dev"


def test_libclang_is_found_where_its_users_look(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("LIBCLANG_PATH", raising=False)
    monkeypatch.setattr(cargo_program, "_LIBCLANG", (str(tmp_path).lstrip("/"),))
    is_here, _ = BORING_TOOLS["libclang"]
    (tmp_path / "libclang-cpp.so.14").touch()
    (tmp_path / "libclangAST.a").touch()
    assert not is_here()
    (tmp_path / "libclang-14.so.1").touch()
    assert is_here()
    (tmp_path / "libclang-14.so.1").unlink()
    monkeypatch.setenv("LIBCLANG_PATH", str(tmp_path))
    assert is_here()


def test_the_shipped_package_is_locked():
    source = PROGRAMS / "quiche-server"
    crates = tomllib.loads((source / "Cargo.lock").read_text())["package"]
    assert {crate["name"] for crate in crates} >= {"quiche", "hyper", "boring", "tokio-boring", "quiche-server"}
    assert all("checksum" in crate for crate in crates if crate["name"] != "quiche-server")
