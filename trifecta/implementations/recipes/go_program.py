"""A Go program of ours, built from its source here; its modules are checked against ``go.sum``."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from trifecta.implementations.recipe import Say
from trifecta.implementations.recipes.built_program import BuiltProgram, find_builder
from trifecta.implementations.server import Unsupported
from trifecta.store.cache import digest_of

_PLACES = ("/usr/local/go/bin", "/usr/lib/go/bin")  # where https://go.dev/doc/install and Debian put it
# -mod=readonly: what go.mod and go.sum say is what is built; GOTOOLCHAIN=local: no other Go is downloaded; without cgo
# no C compiler is needed and the program stands alone.
_ENVIRONMENT = {"GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local", "GOWORK": "off", "CGO_ENABLED": "0"}


class GoProgram(BuiltProgram):
    """A module that is part of Trifecta, built by the ``go`` of this machine.

    Downloaded modules stay in Go's own cache, so a build that was interrupted goes on where it was.
    """

    origin = "Go modules"
    builder = "go"
    variables: Mapping[str, str] = _ENVIRONMENT

    def __init__(self, name: str, source: Path, shared: Sequence[Path] = ()) -> None:
        """``source`` holds ``go.mod``, ``go.sum`` and the package ``main``, to which files of another one are added."""
        self.name = name
        self.source = source
        self.shared = tuple(shared)

    def _find_builder(self, say: Say) -> Path:
        return find_go(self.needs())

    def needs(self) -> str:
        """The oldest Go that builds it, ``1.26.0``."""
        lines = (self.source / "go.mod").read_text(encoding="utf-8").splitlines()
        return next(line.split()[1] for line in lines if line.startswith("go "))

    def versions(self) -> str:
        """Of quic-go, and of the Go whose net/http and crypto/tls it holds; Unsupported where it does not run."""
        try:
            done = subprocess.run([self.program(), "--version"], capture_output=True, text=True, check=True, timeout=30)
            told = json.loads(done.stdout)
            return f"quic-go {told['quic_go']}, Go {told['go']}"
        except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
            raise Unsupported(f"{self.name} does not run ({error}); trifecta get {self.name} --force") from error

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

    def _build(self, builder: Path, folder: Path, say: Say) -> None:
        say(f"{self.name}: go fetches the modules and builds")
        if not self._apart():
            self._compile(builder, self.source, folder)
            return
        with tempfile.TemporaryDirectory(prefix="trifecta-go-") as folder_name:
            for file in self._files():
                shutil.copy(file, folder_name)
            self._compile(builder, Path(folder_name), folder)

    def _compile(self, go: Path, source: Path, folder: Path) -> None:
        # -trimpath: equal sources give equal programs; the version control of a checkout is not the program's.
        options = ["-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", str(self._program(folder))]
        self._run([str(go), "build", *options, "."], source)

    def _reason(self, stderr: str) -> str:
        output_lines = (line for line in stderr.splitlines() if not line.startswith("go: downloading "))
        lines = [line.strip() for line in output_lines if line.strip()]
        message = "; ".join(lines)[:500] or "it said nothing"
        if "requires go >=" in message:
            return f"{message}; install that Go or a newer one: https://go.dev/doc/install"
        if "SECURITY ERROR" in message or "checksum mismatch" in message:
            return f"{message}; nothing else than what go.sum names is used; run `go clean -modcache`, then this again"
        return f"{message}; check the network and the disk, then run it again"


def find_go(needed: str) -> Path:
    """The ``go`` command; CannotError, with the remedy, when there is none."""
    return find_builder("go", _PLACES, f"install Go {needed} or newer: https://go.dev/doc/install")
