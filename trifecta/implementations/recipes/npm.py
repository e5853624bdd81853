"""Files of an npm package of a pinned version, taken out of its tarball; no script of the package is run."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from trifecta.design.errors import CannotError
from trifecta.implementations.recipe import Recipe, Say
from trifecta.implementations.server import Unsupported
from trifecta.store.cache import digest_of, is_whole, make_whole

_TIMEOUT_S = 1800


class NpmFiles(Recipe):
    """Some files of a package, fetched by ``npm pack`` from the registry that npm is set up for.

    The tarball is checked against its pinned integrity (Subresource Integrity, sha512) before it is read.
    """

    origin = "npm"

    def __init__(self, name: str, package: str, version: str, integrity: str, files: Mapping[str, str]) -> None:
        """``files``: path in the package (without ``package/``) -> path in the cache; one ending in / is a folder."""
        self.name = name
        self.package = package
        self.version = version
        self.integrity = integrity
        self.files = dict(files)

    def installed(self) -> bool:
        """Whether just this version is there, whole."""
        return is_whole(self.folder(), self._digest())

    def install(self, say: Say) -> None:
        """Fetch the tarball, check it, take the files out."""
        if shutil.which("npm") is None:
            raise CannotError(f"{self.name}: npm is not on this machine; install it, for example: apt-get install npm")
        make_whole(self.folder(), self._digest(), lambda folder: self.fill(folder, say), say)
        say(f"{self.name}: {self.package} {self.version} is in {self.folder()}")

    def file(self, path: str) -> Path:
        """A file in the cache; Unsupported, with the remedy, when it is not installed."""
        if not self.installed():
            raise Unsupported(self.missing())
        return self.folder() / path

    def _digest(self) -> str:
        return digest_of([], self.package, self.version, self.integrity, json.dumps(self.files, sort_keys=True))

    def fill(self, folder: Path, say: Say) -> None:
        """Fetch the tarball, check it, take the files out into ``folder``; CannotError when that fails."""
        say(f"{self.name}: npm fetches {self.package} {self.version}")
        with tempfile.TemporaryDirectory(prefix="trifecta-npm-") as scratch:
            tarball = self._pack(Path(scratch))
            verify(tarball, self.integrity, self.name)
            lacking = take(tarball, self.files, folder)
        if lacking:
            raise CannotError(f"{self.name}: {self.package} {self.version} lacks {', '.join(lacking)}; report this")

    def _pack(self, scratch: Path) -> Path:
        what = f"{self.package}@{self.version}"
        command = ["npm", "pack", what, "--ignore-scripts", "--pack-destination", str(scratch)]
        try:
            # In the scratch folder: npm reads the .npmrc of the project it is started in.
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S, stdin=subprocess.DEVNULL,
                cwd=scratch, env={**os.environ, "npm_config_update_notifier": "false"},
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise CannotError(f"{self.name}: npm did not end within {_TIMEOUT_S} s; check the network") from error
        tarballs = sorted(scratch.glob("*.tgz"))
        if done.returncode != 0 or len(tarballs) != 1:
            errors = [line for line in done.stderr.splitlines() if line.startswith(("npm error", "npm ERR!"))]
            words = " ".join(" ".join(errors or done.stderr.splitlines()).split())[:400] or "it said nothing"
            raise CannotError(f"{self.name}: npm cannot fetch {self.package} {self.version}: {words}")
        return tarballs[0]


def verify(tarball: Path, integrity: str, name: str) -> None:
    """CannotError when a file is not the pinned one (``sha512-BASE64``, W3C Subresource Integrity)."""
    algorithm, _, wanted = integrity.partition("-")
    digest = base64.b64encode(hashlib.new(algorithm, tarball.read_bytes()).digest()).decode("ascii")
    if digest != wanted:
        raise CannotError(f"{name}: the tarball is not the pinned one ({algorithm}-{digest[:16]}...) and was not used")


def take(tarball: Path, files: Mapping[str, str], folder: Path) -> list[str]:
    """Copy regular files out of a tarball into ``folder``; the names of those it lacks. Links are never followed."""
    lacking = set(files)
    with tarfile.open(tarball, "r:gz") as archive:
        for member in archive:
            path = PurePosixPath(member.name)
            if not member.isfile() or path.is_absolute() or ".." in path.parts or len(path.parts) < 2:
                continue
            inside = PurePosixPath(*path.parts[1:])
            for wanted, name_here in files.items():
                if wanted.endswith("/") and inside.is_relative_to(wanted):
                    target = folder / name_here / inside.relative_to(wanted)
                elif str(inside) == wanted:
                    target = folder / name_here
                else:
                    continue
                content = archive.extractfile(member)
                if content is not None:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(content.read())
                    lacking.discard(wanted)
    return sorted(lacking)
