"""A Go program that no Go of today builds: that of a Debian suite does, unpacked for the build and removed after it."""

from __future__ import annotations

import shutil
from pathlib import Path

from trifecta.implementations.recipe import Say
from trifecta.implementations.recipes.debian import DebianPackages
from trifecta.implementations.recipes.go_program import GoProgram


class OldGoProgram(GoProgram):
    """A module that is part of Trifecta, built by the Go of a Debian suite, as apt verified it."""

    def __init__(self, name: str, source: Path, go: str, suite: str) -> None:
        """``go`` is the Go as Debian numbers it, ``1.19``, and ``suite`` one that has it."""
        super().__init__(name, source)
        self._go = DebianPackages(f"golang-{go}", (f"golang-{go}-go",), suite)
        self._place = Path("usr", "lib", f"go-{go}")
        self.origin = f"Go modules, built by Go {go} of Debian {suite}"

    def install(self, say: Say) -> None:
        """Fetch Go, build, and remove Go again: it is many times the size of what it builds."""
        try:
            super().install(say)
        finally:
            shutil.rmtree(self._go.folder(), ignore_errors=True)

    def _find_builder(self, say: Say) -> Path:
        if not self._go.installed():
            self._go.install(say)
        root = self._go.folder() / self._place
        self.variables = {**GoProgram.variables, "GOROOT": str(root)}
        return root / "bin" / "go"

    def _words(self) -> tuple[str, ...]:
        return (*super()._words(), *self._go.packages, self._go.suite)
