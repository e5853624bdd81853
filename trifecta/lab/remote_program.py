"""A program of the engine that is no process of this machine: files lie elsewhere for it, and it has no process id."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from trifecta.design.errors import CannotError
from trifecta.lab.engine import EngineError, EngineProgram, Role
from trifecta.lab.staged_files import Config


class RemotePlace(Protocol):
    """Where such programs find their files."""

    def relocated(self, config: Config) -> Config:
        """A configuration with the paths of the other end; CannotError when it is lost."""

    def get(self, path: Path) -> None:
        """Have here what was written there; CannotError, or ValueError for what is not what was asked for."""


class RemoteProgram(EngineProgram):
    """What is the same of it whatever leads there; used like ``EngineProcess``."""

    def __init__(self, role: Role, name: str, log: Path, elsewhere: RemotePlace) -> None:
        """As `EngineProgram`; ``elsewhere`` has its files."""
        super().__init__(role, name, log)
        self._elsewhere = elsewhere

    @property
    def pid(self) -> int:
        """0: it is no process of this machine."""
        return 0

    def configure(self, config: Config) -> None:
        """Hand over the configuration, with the paths that files have there; as `EngineProgram.configure`."""
        try:
            there = self._elsewhere.relocated(config)
        except CannotError as error:
            raise EngineError(self.name, None, str(error)) from error
        super().configure(there)

    def get(self, path: Path) -> None:
        """Have here what it wrote there; EngineError when it cannot be brought."""
        try:
            self._elsewhere.get(path)
        except (CannotError, ValueError) as error:
            raise EngineError(self.name, None, str(error)) from error
