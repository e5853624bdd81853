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
from typing import Any

from trifecta.design.errors import CannotError
from trifecta.implementations.recipe import Recipe, Say, cache_folder
from trifecta.implementations.recipes.whole import alone, digest_of, is_whole, make_whole
from trifecta.implementations.server import Unsupported

MANIFEST = "trifecta-packages.json"
_FORMAT = "1"  # of what is unpacked: a new one makes older installations count as not installed
_TIMEOUT_S = 1800
_KEYRINGS = ("/usr/share/keyrings/debian-archive-keyring.gpg", "/usr/share/keyrings/debian-archive-keyring.pgp")
_SETUID = stat.S_ISUID | stat.S_ISGID
_UNPACKS = re.compile(r"^Inst (?P<name>\S+) \((?P<version>\S+) .*\[(?P<architecture>\w+)\]\)", re.MULTILINE)
_FETCHES = re.compile(r"^'\S+' \S+ (?P<octets>\d+) \w+:", re.MULTILINE)
# Nothing unsigned is ever accepted, whatever the system's apt.conf allows (apt-secure(8)); a source that cannot be read
# is an error, not a warning; as root no change to the user _apt, who cannot read a home folder.
_OPTIONS = {
    "APT::Get::AllowUnauthenticated": "false",
    "Acquire::AllowInsecureRepositories": "false",
    "Acquire::AllowDowngradeToInsecureRepositories": "false",
    "Acquire::AllowWeakRepositories": "false",
    "APT::Update::Error-Mode": "any",
    "APT::Install-Recommends": "false",
    "APT::Sandbox::User": "",
    "Acquire::Languages": "none",
    "Acquire::PDiffs": "false",
    "Dir::Cache::pkgcache": "pkgcache.bin",  # containers turn it off, which costs seconds a call
    "Acquire::http::Timeout": "30",
    "Acquire::https::Timeout": "30",
    "Dir::Etc::sourceparts": "/dev/null",
    "Dir::Etc::preferences": "/dev/null",
    "Dir::Etc::preferencesparts": "/dev/null",
}
_NO_HOOKS = "#clear APT::Update::Post-Invoke;\n#clear APT::Update::Post-Invoke-Success;\n"


@dataclass(frozen=True)
class Archive:
    """A Debian archive and the keys that may sign it; without a keyring those that apt trusts anyway."""

    uri: str
    keyring: str | None


@dataclass(frozen=True)
class Program:
    """A program of a private root or of the system, and how it is run."""

    name: str
    arguments: tuple[str, ...]
    variables: tuple[tuple[str, str], ...] = ()
    origin: str = "on PATH"

    @property
    def environment(self) -> Mapping[str, str]:
        """What it needs besides the environment it is started in."""
        return dict(self.variables)

    def says(self, flag: str) -> str:
        """What it tells of itself on either output, asked once; Unsupported, with the remedy, when it does not run."""
        return _says(self, flag)


@cache
def _says(program: Program, flag: str) -> str:
    try:
        done = subprocess.run(
            [*program.arguments, flag], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True,
            timeout=30, stdin=subprocess.DEVNULL, env={**os.environ, **program.environment},
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        place = program.arguments[-1]
        raise Unsupported(f"{place} does not run ({error}); run: trifecta get {program.name} --force") from error
    return done.stdout


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
        found = shutil.which(Path(path).name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/local/sbin:/usr/sbin")
        if found is None:
            raise Unsupported(f"{self.name} is not installed; run: trifecta get {self.name}")
        return Program(self.name, (found,))

    def environment(self) -> dict[str, str]:
        """What programs of the root need: OpenSSL takes modules and settings from the system (openssl-env(7))."""
        settings = self.folder() / "etc/ssl/openssl.cnf"
        return {
            "OPENSSL_MODULES": str(self._libraries() / "ossl-modules"),
            "OPENSSL_CONF": str(settings) if settings.is_file() else "/dev/null",
        }

    def manifest(self) -> dict[str, Any]:
        """What was unpacked: suite, date of its index, version of every package."""
        found: dict[str, Any] = json.loads((self.folder() / MANIFEST).read_text(encoding="utf-8"))
        return found

    def build(self) -> str:
        """Where the program comes from, for the record."""
        found = self.manifest()
        return f"Debian {found['suite']} of {found['date']}, {self.packages[0]} {found['packages'][self.packages[0]]}"

    def _libraries(self) -> Path:
        """The folder of the root's libraries: that of the one architecture it has (Debian's multiarch layout)."""
        return next((self.folder() / "usr/lib").glob("*-linux-gnu*"), self.folder() / "usr/lib")

    def _digest(self) -> str:
        return digest_of([], _FORMAT, self.suite, *self.packages, platform.machine())

    def _fill(self, root: Path, say: Say) -> None:
        _need_tools(self.name)
        with alone(cache_folder() / ".debian", say):
            apt = _Apt(self.name, cache_folder() / ".debian", self.suite)
            say(f"{self.name}: apt reads the index of {self.origin}")
            date = apt.update(system_archive(self.name))
            packages = apt.choose(self.packages)
            octets = apt.missing_octets(self.packages)
            say(f"{self.name}: {len(packages)} packages, {octets / 1e6:.1f} MB to download")
            files = apt.download(self.packages, packages)
            say(f"{self.name}: unpacking")
            for file in files:
                _run(self.name, ["dpkg-deb", "-x", str(file), str(root)], "unpack it")
            for path in root.rglob("*"):
                mode = path.lstat().st_mode
                if stat.S_ISREG(mode) and mode & _SETUID:  # a cache is no place for programs with another's rights
                    path.chmod(stat.S_IMODE(mode) & ~_SETUID)
            manifest = {"suite": self.suite, "date": date, "packages": {name: version for name, version, _ in packages}}
            (root / MANIFEST).write_text(json.dumps(manifest, indent=2), encoding="utf-8")
            for file in files:
                file.unlink()


class _Apt:
    """apt-get with a state of its own: it knows one suite and no installed package."""

    def __init__(self, name: str, folder: Path, suite: str) -> None:
        self._name = name
        self._suite = suite
        self._lists = folder / suite / "lists"
        self._archives = folder / suite / "archives"
        self._sources = folder / suite / "suite.sources"
        self._settings = folder / suite / "apt.conf"
        status = folder / suite / "status"
        for place in (self._lists, self._archives):
            (place / "partial").mkdir(parents=True, exist_ok=True)
        status.write_bytes(b"")
        self._settings.write_text(_NO_HOOKS, encoding="ascii")
        self._options = _OPTIONS | {
            "Dir::State": str(folder / suite),
            "Dir::State::status": str(status),
            "Dir::State::lists": str(self._lists),
            "Dir::Cache": str(folder / suite),
            "Dir::Cache::archives": str(self._archives),
            "Dir::Log": str(folder / suite),
            "Dir::Etc::sourcelist": str(self._sources),
        }

    def update(self, archive: Archive) -> str:
        """Fetch and verify the suite's index; the date of it."""
        fields = {
            "Types": "deb",
            "URIs": archive.uri,
            "Suites": self._suite,
            "Components": "main",
            "Targets": "Packages",
        }
        if archive.keyring:
            fields["Signed-By"] = archive.keyring
        self._sources.write_text("".join(f"{key}: {value}\n" for key, value in fields.items()), encoding="utf-8")
        self._get("read the index", "update")
        # apt's own word that a signature was verified, asked for apart from the options that demand one.
        trusted = self._get("read the index", "indextargets", "--format", "$(TRUSTED)").split()
        if set(trusted) != {"yes"}:
            raise CannotError(
                f"{self._name}: apt could not verify the signature of {archive.uri} {self._suite}; not used"
            )
        signed = next(self._lists.glob("*_InRelease"), None) or next(self._lists.glob("*_Release"))
        found = re.search(r"^Date: (.*)$", signed.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
        return found.group(1) if found else "unknown date"

    def choose(self, wanted: tuple[str, ...]) -> list[tuple[str, str, str]]:
        """Name, version and architecture of every package that is needed."""
        found = _UNPACKS.findall(self._get("find its packages", "--simulate", "install", *wanted))
        missing = [name for name in wanted if name not in {found_name for found_name, _, _ in found}]
        if missing:
            raise CannotError(
                f"{self._name}: apt does not say which {', '.join(missing)} it would install; report this"
            )
        return found

    def missing_octets(self, wanted: tuple[str, ...]) -> int:
        """How much has yet to be downloaded."""
        said = self._get("find its packages", "--print-uris", "--yes", "install", *wanted)
        return sum(int(octets) for octets in _FETCHES.findall(said))

    def download(self, wanted: tuple[str, ...], packages: list[tuple[str, str, str]]) -> list[Path]:
        """Fetch the packages, checked by apt against the signed index; a file that is there in part is completed."""
        self._get("download it", "--download-only", "--yes", "install", *wanted)
        named = (f"{name}_{version.replace(':', '%3a')}_{architecture}.deb" for name, version, architecture in packages)
        return [self._archives / file for file in named]

    def _get(self, what: str, *arguments: str) -> str:
        options = [part for key, value in self._options.items() for part in ("-o", f"{key}={value}")]
        return _run(self._name, ["apt-get", "-c", str(self._settings), "-q", *options, *arguments], what)


def system_archive(name: str) -> Archive:
    """The Debian archive of the system's own sources; CannotError, with the remedy, when it has none."""
    form = "$(LABEL)|$(REPO_URI)"
    for line in _run(
        name, ["apt-get", "indextargets", "--format", form, "Created-By: Packages"], "be found"
    ).splitlines():
        label, _, uri = line.partition("|")
        # The label is in the lists, which a fresh container lacks; then the archive's usual path must do.
        if label == "Debian" or (label.startswith("$(") and uri.rstrip("/").endswith("/debian")):
            return Archive(uri, next((keyring for keyring in _KEYRINGS if Path(keyring).is_file()), None))
    raise CannotError(
        f"{name}: apt has no source of Debian here; add one (sources.list(5)) and the package debian-archive-keyring, "
        f"or install {name} with HTTP/3 so that it is on PATH"
    )


def _need_tools(name: str) -> None:
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise CannotError(
                f"{name}: {tool} is not on this machine, and its packages are Debian's; "
                f"install {name} with HTTP/3 so that it is on PATH"
            )


def _run(name: str, command: list[str], what: str) -> str:
    """Standard output of a tool; CannotError with what it said and what can be done."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S,
            stdin=subprocess.DEVNULL, env={**os.environ, "LC_ALL": "C"},
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise CannotError(
            f"{name}: {command[0]} did not end within {_TIMEOUT_S} s; check the network and run it again"
        ) from error
    except OSError as error:
        raise CannotError(f"{name}: {command[0]} cannot be run ({error.strerror}); install it") from error
    if done.returncode != 0:
        lines = done.stderr.splitlines()
        said = [line for line in lines if line.startswith("E: ")] or [line for line in lines if line.startswith("W: ")]
        words = " ".join(" ".join(said or lines).split())[:600] or "it said nothing"
        raise CannotError(f"{name}: {command[0]} cannot {what}: {words}; {_remedy(words)}")
    return done.stdout


def _remedy(words: str) -> str:
    if "not signed" in words or "GPG error" in words or "signature" in words:
        return "nothing unsigned is used; upgrade the package debian-archive-keyring"
    if "not valid yet" in words or "expired" in words:
        return "its index is older or newer than it may be; check the clock, or wait until the mirror is up to date"
    if "No space left" in words:
        return "make room, or name another cache with TRIFECTA_CACHE"
    return "check the network and run `trifecta get` again: it goes on where it was"


NGINX = DebianPackages("nginx", ("nginx",))
HAPROXY = DebianPackages("haproxy", ("haproxy",))
CURL = DebianPackages("curl", ("curl",))
_RECIPES = {recipe.name: recipe for recipe in (NGINX, HAPROXY, CURL)}


def program(name: str, path: str) -> list[str] | None:
    """The command that runs ``path`` of the root of nginx, haproxy or curl; None when it is not installed."""
    return _RECIPES[name].program(path)
