"""A Rust program of ours, built from its source here; its crates are checked against ``Cargo.lock``."""

from __future__ import annotations

import os
import platform
import shutil
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

from trifecta.design.errors import CannotError
from trifecta.implementations.recipe import Say
from trifecta.implementations.recipes.built_program import BuiltProgram, find_builder
from trifecta.store.cache import digest_of

_PLACES = ("/usr/local/cargo/bin",)  # beside where rustup puts it
_ENVIRONMENT = {"RUSTFLAGS": ""}  # one build, whatever this machine's others are told
# Where clang-sys looks, from the root on; libclang-cpp is another library.
_LIBCLANG = ("usr/lib*", "usr/lib/*-linux-gnu", "usr/lib/llvm*/lib", "usr/local/lib")
_LIBCLANG_NAMES = ("libclang.so*", "libclang-[0-9]*.so*")


def _on_path(*programs: str) -> Callable[[], bool]:
    return lambda: any(map(shutil.which, programs))


def _has_libclang() -> bool:
    named = os.environ.get("LIBCLANG_PATH") or shutil.which("llvm-config")
    return bool(named) or any(any(Path("/").glob(f"{place}/{name}")) for place in _LIBCLANG for name in _LIBCLANG_NAMES)


# What BoringSSL is built with and bound to: whether it is here, and the package of Debian.
BORING_TOOLS: Mapping[str, tuple[Callable[[], bool], str]] = {
    "cmake": (_on_path("cmake"), "cmake"),
    "make": (_on_path("make", "gmake"), "make"),
    "a C++ compiler": (_on_path("c++", "g++", "clang++"), "g++"),
    "git": (_on_path("git"), "git"),
    "libclang": (_has_libclang, "libclang-dev"),
}


class CargoProgram(BuiltProgram):
    """A package that is part of Trifecta, built by the ``cargo`` of this machine.

    Downloaded crates stay in cargo's own cache; what was built of them is removed with the rest of an attempt.
    """

    origin = "crates.io"
    builder = "cargo"
    timeout_s = 3600  # a C++ library within takes minutes of one core
    variables: Mapping[str, str] = _ENVIRONMENT

    def __init__(
        self, name: str, source: Path, tools: Mapping[str, tuple[Callable[[], bool], str]] | None = None
    ) -> None:
        """``source`` holds ``Cargo.toml``, ``Cargo.lock`` and ``src``; ``tools``: as `BORING_TOOLS`."""
        self.name = name
        self.source = source
        self.tools = dict(tools or {})

    def needs(self) -> str:
        """The oldest Rust that builds it, ``1.88``."""
        return str(self._package()["rust-version"])

    def _package(self) -> Mapping[str, object]:
        document = tomllib.loads((self.source / "Cargo.toml").read_text(encoding="utf-8"))
        package: Mapping[str, object] = document["package"]
        return package

    def _find_builder(self, say: Say) -> Path:
        cargo = find_cargo(self.needs())
        self._find_tools()
        return cargo

    def _digest(self) -> str:
        files = self._files()
        return digest_of(files, *(str(file.relative_to(self.source)) for file in files), platform.machine())

    def _files(self) -> list[Path]:
        """What the program is built of."""
        beside = [file for file in self.source.iterdir() if file.name in ("Cargo.toml", "Cargo.lock", "build.rs")]
        return sorted([*beside, *(self.source / "src").rglob("*.rs")])

    def _find_tools(self) -> None:
        missing = {tool: package for tool, (is_here, package) in self.tools.items() if not is_here()}
        if missing:
            what = f"{self.name} is built with {', '.join(missing)}, which this machine lacks"
            raise CannotError(f"{what}; run: apt install {' '.join(missing.values())}")

    def _build(self, builder: Path, folder: Path, say: Say) -> None:
        say(f"{self.name}: cargo fetches the crates and builds; that takes minutes")
        target = folder / "target"
        # In the cache's folder: cargo reads settings from where it is called and above, and a checkout has some.
        self._run(
            [str(builder), "build", "--release", "--locked", "--manifest-path", str(self.source / "Cargo.toml"),
             "--target-dir", str(target)],
            folder,
        )  # fmt: skip
        (target / "release" / str(self._package()["name"])).rename(self._program(folder))
        shutil.rmtree(target)

    def _reason(self, stderr: str) -> str:
        lines = [line.strip() for line in stderr.splitlines() if line.strip()]
        first = next((place for place, line in enumerate(lines) if line.startswith("error")), 0)
        message = "; ".join(lines[first:])[:500] or "it said nothing"
        if "requires rustc" in message or "is not supported by the following package" in message:
            return f"{message}; install that Rust or a newer one: https://rustup.rs"
        if "libclang" in message or "stddef.h" in message:  # its headers are a package more than itself
            return f"{message}; run: apt install libclang-dev"
        if "--locked" in message or "checksum" in message:
            remedy = "check cargo's settings, install Trifecta again"
            return f"{message}; nothing else than what Cargo.lock names is used; {remedy}"
        return f"{message}; check the network and the disk, then run it again"


def find_cargo(needed: str) -> Path:
    """The ``cargo`` command; CannotError, with the remedy, when there is none."""
    home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    return find_builder("cargo", [str(home / "bin"), *_PLACES], f"install Rust {needed} or newer: https://rustup.rs")
