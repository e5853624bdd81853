"""A Go program of ours on a module that today's Go does not build as it is: texts in a copy of it are changed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trifecta.design.errors import CannotError
from trifecta.implementations.recipes.go_program import GoProgram

_COPY = "patched"  # beside the program's own files, while it is built


@dataclass(frozen=True)
class Change:
    """A text of a file of the module that stands there once, and what is put in its place."""

    file: str
    before: str
    after: str


class PatchedGoProgram(GoProgram):
    """The module is fetched and checked against ``go.sum`` as every other; then a copy of it is changed and built."""

    def __init__(self, name: str, source: Path, shared: Sequence[Path], module: str, changes: Sequence[Change]) -> None:
        """``module`` is one that ``go.mod`` requires."""
        super().__init__(name, source, shared)
        self._module = module
        self._changes = tuple(changes)

    def _words(self) -> tuple[str, ...]:
        return (*super()._words(), self._module, repr(self._changes))

    def _apart(self) -> bool:
        """Beside the copy."""
        return True

    def _compile(self, go: Path, source: Path, folder: Path) -> None:
        module = json.loads(self._run([str(go), "mod", "download", "-C", str(source), "-json", self._module]))
        original, copy = Path(module["Dir"]), source / _COPY
        for file in original.rglob("*"):  # not its permissions: Go's cache may not be written
            if file.is_file() and not file.name.endswith("_test.go"):
                there = copy / file.relative_to(original)
                there.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, there)
        for change in self._changes:
            self._change(copy / change.file, change)
        replace = f"-replace={self._module}=./{_COPY}"
        self._run([str(go), "mod", "edit", "-C", str(source), replace])
        super()._compile(go, source, folder)

    def _change(self, path: Path, change: Change) -> None:
        text = path.read_text(encoding="utf-8")
        if text.count(change.before) != 1:
            raise CannotError(
                f"{self.name}: {self._module} is not as expected: {change.file} does not have {change.before!r} once; "
                "report it"
            )
        path.write_text(text.replace(change.before, change.after), encoding="utf-8")
