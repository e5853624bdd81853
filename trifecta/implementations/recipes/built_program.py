"""A program that a builder of this machine makes: whole in the cache for just what it was made of."""

from __future__ import annotations

import os
import shutil
import subprocess
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

from trifecta.design.errors import CannotError
from trifecta.implementations.recipe import ProgramRecipe, Say
from trifecta.implementations.server import Unsupported
from trifecta.store.cache import is_whole, make_whole


class BuiltProgram(ProgramRecipe):
    """What ``go`` or ``cargo`` builds. What a builder downloads stays in its own cache."""

    builder: str
    timeout_s = 1800
    variables: Mapping[str, str]
    """Of the environment, beside those that are there."""

    def installed(self) -> bool:
        """Whether the program was built from just this source."""
        return is_whole(self.folder(), self._digest()) and os.access(self._program(self.folder()), os.X_OK)

    def install(self, say: Say) -> None:
        """Build it."""
        builder = self._find_builder(say)
        make_whole(self.folder(), self._digest(), lambda folder: self._build(builder, folder, say), say)
        say(f"{self.name}: built as {self._program(self.folder())}")

    def program(self) -> Path:
        """The program; Unsupported, with the remedy, when it is not installed."""
        if not self.installed():
            raise Unsupported(self.missing())
        return self._program(self.folder())

    @abstractmethod
    def _find_builder(self, say: Say) -> Path:
        """What builds it; CannotError, with the remedy, when there is none. ``say`` is told what takes long."""

    @abstractmethod
    def _build(self, builder: Path, folder: Path, say: Say) -> None:
        """Put the program into a folder."""

    @abstractmethod
    def _digest(self) -> str:
        """Of all that a program depends on."""

    @abstractmethod
    def _reason(self, stderr: str) -> str:
        """What the builder says went wrong, on one line, with what can be done."""

    def _program(self, folder: Path) -> Path:
        return folder / self.name

    def _run(self, command: Sequence[str], folder: Path | None = None) -> str:
        """What the builder says, in a folder; CannotError when it fails."""
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", check=False, timeout=self.timeout_s,
                cwd=folder, stdin=subprocess.DEVNULL, env={**os.environ, **self.variables},
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            what = f"{self.name}: {self.builder} did not end within {self.timeout_s} s"
            raise CannotError(f"{what}; check the network and run it again") from error
        if done.returncode != 0:
            raise CannotError(f"{self.name}: {self.builder} cannot build it: {self._reason(done.stderr)}")
        return done.stdout


def find_builder(name: str, places: Sequence[str], remedy: str) -> Path:
    """A command on PATH, or in one of these folders; CannotError, with the remedy, when there is none."""
    path = shutil.which(name) or shutil.which(name, path=os.pathsep.join(places))
    if path is None:
        raise CannotError(f"{name} is not installed; {remedy}")
    return Path(path)
