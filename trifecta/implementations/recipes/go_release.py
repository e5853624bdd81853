"""A release of a server in Go, built as its authors' ``go install`` does: its own go.mod says what of.

Go checks the modules against its checksum database (https://go.dev/ref/mod#checksum-database), since there is no go.sum
of ours for a version that a user names.
"""

from __future__ import annotations

import platform
from pathlib import Path

from trifecta.implementations.recipe import Say
from trifecta.implementations.recipes.go_program import GoProgram
from trifecta.store.cache import digest_of


class GoRelease(GoProgram):
    """A version of a program, in the cache beside any other."""

    def __init__(self, name: str, package: str, version: str, needs: str, *, stamp: str = "") -> None:
        """``name``: ``caddy@2.10.0``; ``package``: its import path; ``needs``: the oldest Go that is worth trying;
        ``stamp``: the variable from which the program tells its version, where it does not ask Go.
        """
        super().__init__(name, Path())
        self._package = package
        self._version = version
        self._needs = needs
        self._flags = f"-s -w -X {stamp}=v{version}" if stamp else "-s -w"

    def needs(self) -> str:
        """Go itself says what a version needs, once it is there."""
        return self._needs

    def _program(self, folder: Path) -> Path:
        return folder / self._package.rpartition("/")[2]

    def _digest(self) -> str:
        return digest_of([], self._package, self._version, self._flags, platform.machine())

    def _build(self, builder: Path, folder: Path, say: Say) -> None:
        say(f"{self.name}: go fetches the modules of version {self._version} and builds")
        self.variables = {**GoProgram.variables, "GOBIN": str(folder)}
        options = ["-trimpath", "-buildvcs=false", f"-ldflags={self._flags}"]
        self._run([str(builder), "install", *options, f"{self._package}@v{self._version}"], folder)
