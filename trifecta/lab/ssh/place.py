"""A place on a host by SSH (`trifecta.lab.place`): programs of the engine, and no others."""

from __future__ import annotations

from pathlib import Path

from trifecta.lab.engine import EngineProgram, Role
from trifecta.lab.ssh.host import SshHost
from trifecta.lab.ssh.program import SshProgram


class SshPlace:
    """A host by SSH, in its own network. Files are brought there and back."""

    def __init__(self, host: SshHost) -> None:
        """``host`` is open when programs are started."""
        self._host = host

    def start(self, role: Role, log: Path, *, name: str = "", cpus: frozenset[int] | None = None) -> EngineProgram:
        """Start a program of the engine, as `Place.start`; which core it has is the host's affair, not of ``cpus``."""
        return SshProgram(self._host, role, log, name=name)

    def put(self, path: Path, *, writable: bool = False) -> None:
        """Have it below the working folder of the host, as `Place.put`; CannotError when that fails."""
        self._host.put(path, writable=writable)
