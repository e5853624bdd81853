"""Packages of a newer Debian suite as a private root: verified by apt, unpacked without root rights, run in place.

The system's own apt says where its Debian archive is and how it is reached (mirror, proxy, credentials). Everything apt
keeps for this is in the cache; the system's lists, status and preferences are neither read nor changed, and no script
of a package is run. A program of the root is run by the root's own dynamic loader (ld.so(8)), so its libraries are the
suite's and the system's are left alone.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypedDict, cast

from trifecta.implementations.recipe import Recipe, Say
from trifecta.implementations.recipes.apt import Apt, need_tools, run_tool, system_archive
from trifecta.implementations.server import Unsupported
from trifecta.store.cache import cache_folder, digest_of, is_whole, locked, make_whole

MANIFEST = "trifecta-packages.json"
_FORMAT = "1"  # of what is unpacked: a new one makes older installations count as not installed
_SETUID = stat.S_ISUID | stat.S_ISGID


@dataclass(frozen=True)
class Program:
    """A program of a private root or of the system, and how it is run."""

    name: str
    arguments: tuple[str, ...]
    variables: tuple[tuple[str, str], ...] = ()
    origin: str = "on PATH"
    own_remedy: str = ""

    @property
    def file(self) -> Path:
        """The program itself, without the loader that runs it."""
        return Path(self.arguments[-1])

    @property
    def remedy(self) -> str:
        """What helps when it is not fit for use."""
        return self.own_remedy or f"run: trifecta get {self.name}"

    @property
    def environment(self) -> Mapping[str, str]:
        """What it needs besides the environment it is started in."""
        return dict(self.variables)

    def says(self, flag: str) -> str:
        """What it tells of itself on either output, asked once; Unsupported, with the remedy, when it does not run."""
        return _program_output(self, flag)

    def tells(self, flag: str, pattern: str) -> str:
        """The group of ``pattern`` where it last fits what the program says; ``unknown`` when it does not."""
        matches: list[str] = re.findall(pattern, self.says(flag))
        return matches[-1].strip() if matches else "unknown"


@cache
def _program_output(program: Program, flag: str) -> str:
    try:
        done = subprocess.run(
            [*program.arguments, flag], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True,
            timeout=30, stdin=subprocess.DEVNULL, env={**os.environ, **program.environment},
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        remedy = program.own_remedy or f"{program.remedy} --force"
        raise Unsupported(f"{program.file} does not run ({error}); {remedy}") from error
    return done.stdout


def program_of_build(name: str, path: Path) -> Program:
    """That of a build of the user's own, run as it is."""
    return Program(name, (str(path),), origin="a build of its own", own_remedy="build it again, or name another")


class Manifest(TypedDict):
    """What was unpacked, and of which day's index; package -> version."""

    suite: str
    date: str
    packages: dict[str, str]


class DebianPackages(Recipe):
    """Some packages of a suite with all they depend on, in a root of their own."""

    def __init__(self, name: str, packages: tuple[str, ...], suite: str = "sid") -> None:
        """``name`` is that of the implementation and of its folder in the cache."""
        self.name = name
        self.packages = packages
        self.suite = suite
        self.origin = f"Debian {suite}"

    def installed(self) -> bool:
        """Whether just these packages of this suite are there, whole."""
        return is_whole(self.folder(), self._digest())

    def install(self, say: Say) -> None:
        """Read the suite's index, download what is missing and unpack it; also brings a newer version."""
        make_whole(self.folder(), self._digest(), lambda folder: self._fill(folder, say), say)
        say(f"{self.name}: {len(self.manifest()['packages'])} packages of {self.origin} are in {self.folder()}")

    def program(self, path: str) -> list[str] | None:
        """The command that runs a program of the root (``usr/sbin/nginx``), or None when it is not installed."""
        program = self.folder() / path
        if not self.installed() or not program.is_file():
            return None
        libraries = self._libraries()
        loader = next(libraries.glob("ld-linux*.so.*"), None)
        if loader is None:
            return None
        return [str(loader), "--inhibit-cache", "--library-path", str(libraries), str(program)]

    def locate(self, path: str) -> Program:
        """The program of the root, or else the one on PATH; Unsupported, with the remedy, when there is neither."""
        rooted = self.program(path)
        if rooted is not None:
            return Program(self.name, tuple(rooted), tuple(self.environment().items()), self.build())
        # Debian keeps servers where an ordinary user's PATH does not lead.
        executable = shutil.which(
            Path(path).name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/local/sbin:/usr/sbin"
        )
        if executable is None:
            raise Unsupported(f"{self.name} is not installed; run: trifecta get {self.name}")
        return Program(self.name, (executable,))

    def environment(self) -> dict[str, str]:
        """What programs of the root need: OpenSSL takes modules and settings from the system (openssl-env(7))."""
        settings = self.folder() / "etc/ssl/openssl.cnf"
        return {
            "OPENSSL_MODULES": str(self._libraries() / "ossl-modules"),
            "OPENSSL_CONF": str(settings) if settings.is_file() else "/dev/null",
        }

    def manifest(self) -> Manifest:
        """What was unpacked: suite, date of its index, version of every package."""
        return cast(Manifest, json.loads((self.folder() / MANIFEST).read_text(encoding="utf-8")))

    def build(self) -> str:
        """Where the program comes from, for the record."""
        manifest = self.manifest()
        return (
            f"Debian {manifest['suite']} of {manifest['date']}, {self.packages[0]} "
            f"{manifest['packages'][self.packages[0]]}"
        )

    def _libraries(self) -> Path:
        """The folder of the root's libraries: that of the one architecture it has (Debian's multiarch layout)."""
        return next((self.folder() / "usr/lib").glob("*-linux-gnu*"), self.folder() / "usr/lib")

    def _digest(self) -> str:
        return digest_of([], _FORMAT, self.suite, *self.packages, platform.machine())

    def _fill(self, root: Path, say: Say) -> None:
        need_tools(self.name)
        with locked(cache_folder() / ".debian", say):
            apt = Apt(self.name, cache_folder() / ".debian", self.suite)
            say(f"{self.name}: apt reads the index of {self.origin}")
            date = apt.update(system_archive(self.name))
            packages = apt.choose(self.packages)
            octets = apt.missing_octets(self.packages)
            say(f"{self.name}: {len(packages)} packages, {octets / 1e6:.1f} MB to download")
            files = apt.download(self.packages, packages)
            say(f"{self.name}: unpacking")
            for file in files:
                run_tool(self.name, ["dpkg-deb", "-x", str(file), str(root)], "unpack it")
            for path in root.rglob("*"):
                mode = path.lstat().st_mode
                if stat.S_ISREG(mode) and mode & _SETUID:  # a cache is no place for programs with another's rights
                    path.chmod(stat.S_IMODE(mode) & ~_SETUID)
            manifest: Manifest = {
                "suite": self.suite,
                "date": date,
                "packages": {name: version for name, version, _ in packages},
            }
            (root / MANIFEST).write_text(json.dumps(manifest, indent=2), encoding="utf-8")
            for file in files:
                file.unlink()


NGINX = DebianPackages("nginx", ("nginx",))
HAPROXY = DebianPackages("haproxy", ("haproxy",))
CURL = DebianPackages("curl", ("curl",))
_RECIPES = {recipe.name: recipe for recipe in (NGINX, HAPROXY, CURL)}


def program(name: str, path: str) -> list[str] | None:
    """The command that runs ``path`` of the root of nginx, haproxy or curl; None when it is not installed."""
    return _RECIPES[name].program(path)
