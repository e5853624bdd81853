"""The system's own apt-get with a state of its own: it knows one suite of Debian and no installed package."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from trifecta.design.errors import CannotError

_TIMEOUT_S = 1800
_KEYRINGS = ("/usr/share/keyrings/debian-archive-keyring.gpg", "/usr/share/keyrings/debian-archive-keyring.pgp")
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


class Apt:
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
        match = re.search(r"^Date: (.*)$", signed.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
        return match.group(1) if match else "unknown date"

    def choose(self, wanted: tuple[str, ...]) -> list[tuple[str, str, str]]:
        """Name, version and architecture of every package that is needed."""
        packages = _UNPACKS.findall(self._get("find its packages", "--simulate", "install", *wanted))
        missing = [name for name in wanted if name not in {found_name for found_name, _, _ in packages}]
        if missing:
            raise CannotError(
                f"{self._name}: apt does not say which {', '.join(missing)} it would install; report this"
            )
        return packages

    def missing_octets(self, wanted: tuple[str, ...]) -> int:
        """How much has yet to be downloaded."""
        output = self._get("find its packages", "--print-uris", "--yes", "install", *wanted)
        return sum(int(octets) for octets in _FETCHES.findall(output))

    def download(self, wanted: tuple[str, ...], packages: list[tuple[str, str, str]]) -> list[Path]:
        """Fetch the packages, checked by apt against the signed index; a file that is there in part is completed."""
        self._get("download it", "--download-only", "--yes", "install", *wanted)
        named = (f"{name}_{version.replace(':', '%3a')}_{architecture}.deb" for name, version, architecture in packages)
        return [self._archives / file for file in named]

    def _get(self, what: str, *arguments: str) -> str:
        options = [part for key, value in self._options.items() for part in ("-o", f"{key}={value}")]
        return run_tool(self._name, ["apt-get", "-c", str(self._settings), "-q", *options, *arguments], what)


def system_archive(name: str) -> Archive:
    """The Debian archive of the system's own sources; CannotError, with the remedy, when it has none."""
    form = "$(LABEL)|$(REPO_URI)"
    command = ["apt-get", "indextargets", "--format", form, "Created-By: Packages", "Component: main"]
    for line in run_tool(name, command, "list its sources").splitlines():
        label, _, uri = line.partition("|")
        # The label is in the lists, which a fresh container lacks; then the archive's usual path must do.
        if label == "Debian" or (label.startswith("$(") and uri.rstrip("/").endswith("/debian")):
            return Archive(uri, next((keyring for keyring in _KEYRINGS if Path(keyring).is_file()), None))
    raise CannotError(
        f"{name}: apt has no source of Debian here; add one (sources.list(5)) and the package debian-archive-keyring, "
        f"or install {name} with HTTP/3 so that it is on PATH"
    )


def need_tools(name: str) -> None:
    """CannotError, with the remedy, when this is no Debian-like system."""
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise CannotError(
                f"{name}: {tool} is not on this machine, and its packages are Debian's; "
                f"install {name} with HTTP/3 so that it is on PATH"
            )


def run_tool(name: str, command: list[str], what: str) -> str:
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
        messages = [line for line in lines if line.startswith("E: ")] or [
            line for line in lines if line.startswith("W: ")
        ]
        words = " ".join(" ".join(messages or lines).split())[:600] or "it said nothing"
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
