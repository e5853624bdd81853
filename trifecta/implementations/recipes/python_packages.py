"""Python packages of pinned versions in an environment of their own, every file checked against its SHA-256."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from trifecta.design.errors import CannotError
from trifecta.implementations.recipe import Recipe, Say
from trifecta.implementations.server import Unsupported
from trifecta.store.cache import digest_of, is_whole, make_whole

_TIMEOUT_S = 1800
# What of the user's environment would lead pip to put packages elsewhere, or to take others for those asked for.
_MISLEADING = {"PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PIP_CONSTRAINT"}


class PythonPackages(Recipe):
    """What a lock file names (``pip``'s format, ``--hash`` for each), installed from the index that pip is set up for.

    Downloads stay in pip's own cache, so an installation that was interrupted goes on where it was. Only wheels are
    taken: building a package would run code that no checksum covers.
    """

    origin = "PyPI"

    def __init__(self, name: str, lock: Path, *, overridden: bool = False) -> None:
        """``name`` is that of the implementation and of its folder in the cache.

        ``overridden``: the lock file names all that is needed, some of it in another version than a package asks for.
        """
        self.name = name
        self.lock = lock
        self.overridden = overridden

    def installed(self) -> bool:
        """Whether just what the lock file names is there, for this Python, and that Python still exists."""
        return is_whole(self.folder(), self._digest()) and self._python().exists()

    def install(self, say: Say) -> None:
        """Make the environment and let pip fill it."""
        if find_spec("pip") is None:
            raise CannotError(f"{self.name}: pip is missing; run {sys.executable} -m ensurepip")
        make_whole(self.folder(), self._digest(), lambda folder: self._fill(folder, say), say)
        say(f"{self.name}: installed in {self.folder()}")

    def python(self) -> Path:
        """The environment's interpreter. Run modules with ``-m``: the scripts beside it name the folder pip worked in.

        Unsupported, with the remedy, when it is not installed.
        """
        self._require()
        return self._python()

    def file(self, path: str) -> Path:
        """A file below the environment's ``site-packages``; Unsupported when it is not installed."""
        self._require()
        return _site_packages(self.folder()) / path

    def version(self, package: str) -> str:
        """The installed version of a package; Unsupported when it is not installed."""
        self._require()
        for distribution in metadata.distributions(name=package, path=[str(_site_packages(self.folder()))]):
            return distribution.version
        raise Unsupported(f"{self.name} in the cache lacks {package}; run: trifecta get {self.name} --force")

    def _require(self) -> None:
        if not self.installed():
            raise Unsupported(self.missing())

    def _python(self) -> Path:
        return self.folder() / "bin" / "python"

    def _digest(self) -> str:
        return digest_of([self.lock], str(sys.implementation.cache_tag))

    def _pinned(self) -> list[tuple[str, str]]:
        """Names and versions that the lock file asks for on every machine: lines without a marker (PEP 508)."""
        lines = [line for line in self.lock.read_text(encoding="utf-8").splitlines() if re.match(r"\w", line)]
        pins = [line.removesuffix("\\").strip().split("==") for line in lines if ";" not in line]
        return [(_normalised_name(name), version) for name, version in pins]

    def _fill(self, folder: Path, say: Say) -> None:
        own = find_spec("pip") is not None  # an environment that uv made has none
        venv.EnvBuilder(symlinks=True, with_pip=not own).create(folder)
        say(f"{self.name}: pip installs {', '.join(name for name, _ in self._pinned())}")
        there = str(folder / "bin" / "python")
        pip = [sys.executable, "-m", "pip", "--python", there] if own else [there, "-m", "pip"]
        options = ["--disable-pip-version-check", "--no-input", "--quiet", "--require-hashes", "--only-binary=:all:"]
        options += ["--no-deps"] if self.overridden else []
        command = [*pip, "install", *options, "--requirement", str(self.lock)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S, stdin=subprocess.DEVNULL,
                env={name: value for name, value in os.environ.items() if name not in _MISLEADING},
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise CannotError(
                f"{self.name}: pip did not end within {_TIMEOUT_S} s; check the network and run it again"
            ) from error
        if done.returncode != 0:
            raise CannotError(f"{self.name}: pip cannot install it: {_reason(done.stderr)}")
        installed = {
            (_normalised_name(distribution.metadata["Name"]), distribution.version)
            for distribution in metadata.distributions(path=[str(_site_packages(folder))])
        }
        lacking = sorted(f"{name} {version}" for name, version in self._pinned() if (name, version) not in installed)
        if lacking:
            raise CannotError(f"{self.name}: pip installed all but {', '.join(lacking)}; look at `pip config list`")


def _site_packages(folder: Path) -> Path:
    # venv(3)'s layout of posix systems; sysconfig tells the one of this Python, which Debian patches.
    return folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"


def _normalised_name(name: str) -> str:
    """A package's name as all its spellings have it in common (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _reason(stderr: str) -> str:
    """What pip says went wrong, on one line, with what can be done."""
    if "DO NOT MATCH THE HASHES" in stderr:
        lines = [line.strip() for line in stderr.splitlines() if "Expected" in line or "Got" in line or ".whl" in line]
        mismatch = "; ".join(lines)[:400]
        return f"a file is not the one of the lock file and was not used ({mismatch}); `pip cache purge`, then again"
    errors = [line.removeprefix("ERROR: ") for line in stderr.splitlines() if line.startswith("ERROR: ")]
    message = errors[0] if errors else " ".join(stderr.split())[-300:] or "it said nothing"
    if "No matching distribution" in stderr:
        return f"{message}; there is no wheel for this Python or machine, or the package index cannot be reached"
    return f"{message}; check the network and the disk, then run it again"
