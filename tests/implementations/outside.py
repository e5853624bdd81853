"""Packages that are not Trifecta's: written to a folder as an installer would leave them, with entry points."""

from __future__ import annotations

from pathlib import Path

SERVER = """
from trifecta.implementations.server import Command, ServerAdapter, Unsupported

class Outside(ServerAdapter):
    name = {name!r}
    source = "a test"

    def find(self):
        {find}

    def command(self, site, options):
        return Command(("true",))
"""
CLIENT = """
from trifecta.implementations.client import ClientAdapter
from trifecta.implementations.server import Command, Unsupported

class Outside(ClientAdapter):
    name = {name!r}
    source = "a test"

    def find(self):
        {find}

    def command(self, job):
        return Command(("true",))

    def rows(self, job, output):
        return iter(())
"""


def install(folder: Path, package: str, entries: str, code: str) -> None:
    """Module ``PACKAGE_module`` with this code, and the metadata that an installer writes beside it."""
    module = package.replace("-", "_") + "_module"
    (folder / f"{module}.py").write_text(code)
    info = folder / f"{package.replace('-', '_')}-1.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.5\n")
    (info / "entry_points.txt").write_text(entries.replace("MODULE", module))


def install_server(folder: Path, package: str, name: str, find: str = 'return "1.0"') -> None:
    """A server whose ``find`` does this."""
    entries = f"[trifecta.servers]\n{name} = MODULE:Outside\n"
    install(folder, package, entries, SERVER.format(name=name, find=find))


def install_client(folder: Path, package: str, name: str, find: str = 'return "1.0"') -> None:
    """A client whose ``find`` does this."""
    entries = f"[trifecta.clients]\n{name} = MODULE:Outside\n"
    install(folder, package, entries, CLIENT.format(name=name, find=find))
