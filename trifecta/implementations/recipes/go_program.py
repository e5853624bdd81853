"""A Go program of ours, built from its source here; its modules are checked against ``go.sum``."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from trifecta.design.errors import CannotError
from trifecta.implementations.recipe import ProgramRecipe, Say
from trifecta.implementations.server import Unsupported
from trifecta.store.cache import digest_of, is_whole, make_whole

_TIMEOUT_S = 1800
_PLACES = ("/usr/local/go/bin", "/usr/lib/go/bin")  # where https://go.dev/doc/install and Debian put it
# -mod=readonly: what go.mod and go.sum say is what is built; GOTOOLCHAIN=local: no other Go is downloaded; without cgo
# no C compiler is needed and the program stands alone.
_ENVIRONMENT = {"GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local", "GOWORK": "off", "CGO_ENABLED": "0"}


class GoProgram(ProgramRecipe):
    """A module that is part of Trifecta, built by the ``go`` of this machine.

    Downloaded modules stay in Go's own cache, so a build that was interrupted goes on where it was.
    """

    origin = "Go modules"
    variables: Mapping[str, str] = _ENVIRONMENT

    def __init__(self, name: str, source: Path, shared: Sequence[Path] = ()) -> None:
        """``source`` holds ``go.mod``, ``go.sum`` and the package ``main``, to which files of another one are added."""
        self.name = name
        self.source = source
        self.shared = tuple(shared)

    def installed(self) -> bool:
        """Whether the program was built from just this source."""
        return is_whole(self.folder(), self._digest()) and os.access(self._program(self.folder()), os.X_OK)

    def install(self, say: Say) -> None:
        """Build it."""
        go = self._find_go(say)
        make_whole(self.folder(), self._digest(), lambda folder: self._build(go, folder, say), say)
        say(f"{self.name}: built as {self._program(self.folder())}")

    def program(self) -> Path:
        """The program; Unsupported, with the remedy, when it is not installed."""
        if not self.installed():
            raise Unsupported(self.missing())
        return self._program(self.folder())

    def _find_go(self, say: Say) -> Path:
        """What builds it; CannotError, with the remedy, when there is none. ``say`` is told what takes long."""
        return find_go(self.needs())

    def needs(self) -> str:
        """The oldest Go that builds it, ``1.26.0``."""
        lines = (self.source / "go.mod").read_text(encoding="utf-8").splitlines()
        return next(line.split()[1] for line in lines if line.startswith("go "))

    def _program(self, folder: Path) -> Path:
        return folder / self.name

    def _digest(self) -> str:
        return digest_of(self._files(), *self._words())

    def _words(self) -> tuple[str, ...]:
        """What else a program depends on."""
        return (*(file.name for file in self._files()), platform.machine())

    def _files(self) -> list[Path]:
        """What the program is built of."""
        own = sorted(file for file in self.source.iterdir() if file.suffix in (".go", ".mod", ".sum"))
        return [*own, *self.shared]

    def _apart(self) -> bool:
        """Whether it is built in another folder than its source's."""
        return bool(self.shared)

    def _build(self, go: Path, folder: Path, say: Say) -> None:
        say(f"{self.name}: go fetches the modules and builds")
        if not self._apart():
            self._compile(go, self.source, folder)
            return
        with tempfile.TemporaryDirectory(prefix="trifecta-go-") as made:
            for file in self._files():
                shutil.copy(file, made)
            self._compile(go, Path(made), folder)

    def _compile(self, go: Path, source: Path, folder: Path) -> None:
        # -trimpath: equal sources give equal programs; the version control of a checkout is not the program's.
        options = ["-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", str(self._program(folder))]
        self._run([str(go), "build", *options, "."], source)

    def _run(self, command: Sequence[str], folder: Path | None = None) -> str:
        """What go says, in a folder (its option -C is of 1.20); CannotError when it fails."""
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S,
                cwd=folder,
                stdin=subprocess.DEVNULL, env={**os.environ, **self.variables},
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise CannotError(
                f"{self.name}: go did not end within {_TIMEOUT_S} s; check the network and run it again"
            ) from error
        if done.returncode != 0:
            raise CannotError(f"{self.name}: go cannot build it: {_reason(done.stderr)}")
        return done.stdout


def find_go(needed: str) -> Path:
    """The ``go`` command; CannotError, with the remedy, when there is none."""
    found = shutil.which("go") or shutil.which("go", path=os.pathsep.join(_PLACES))
    if found is None:
        raise CannotError(f"go is not installed; install Go {needed} or newer: https://go.dev/doc/install")
    return Path(found)


def _reason(stderr: str) -> str:
    """What go says went wrong, on one line, with what can be done."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip() and not line.startswith("go: downloading ")]
    said = "; ".join(lines)[:500] or "it said nothing"
    if "requires go >=" in said:
        return f"{said}; install that Go or a newer one: https://go.dev/doc/install"
    if "SECURITY ERROR" in said or "checksum mismatch" in said:
        return f"{said}; nothing else than what go.sum names is used; run `go clean -modcache`, then this again"
    return f"{said}; check the network and the disk, then run it again"
