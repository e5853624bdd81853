"""Servers that a study brings itself, as adapters: builds of those in the table, cached releases, data, services."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from copy import copy
from pathlib import Path

from trifecta.design.builds import VERSION, ServerBuild, ServerDefinition, ServerProgram, ServerService
from trifecta.design.model import Study
from trifecta.implementations.recipe import ProgramRecipe
from trifecta.implementations.recipes.go_release import GoRelease
from trifecta.implementations.server import ServerAdapter, Unsupported
from trifecta.implementations.servers.from_compose import FromCompose
from trifecta.implementations.servers.from_data import FromData
from trifecta.implementations.table import BrokenServer
from trifecta.store.cache import cache_folder

PLACES = ("", "sbin", "bin", "objs", "target/release", "engine/target/release")
"""Where a program is in the folder of a build: itself, what ``make install`` fills, where nginx and cargo build."""

GO_PACKAGES = {"caddy": ("github.com/caddyserver/caddy/v2/cmd/caddy", "github.com/caddyserver/caddy/v2.CustomVersion")}
"""What ``go install`` builds of a server, for ``caddy@2.10.0``, and the variable that tells its version, or nothing:
Caddy says "unknown" where it is not built as a dependency, as xcaddy does."""
MAJOR = re.compile(r"/v(\d+)/")
OLDEST_GO = "1.24"


class WithOwn(Mapping[str, ServerAdapter]):
    """The servers of a study: those of the table, which are loaded when they are used, and its own."""

    def __init__(self, table: Mapping[str, ServerAdapter], own: Mapping[str, ServerAdapter]) -> None:
        """``own``: by level."""
        self._table = table
        self._own = own

    def __getitem__(self, name: str) -> ServerAdapter:
        """The adapter of a level."""
        return self._own[name] if name in self._own else self._table[name]

    def __contains__(self, name: object) -> bool:
        """Whether there is such a level, without loading it."""
        return name in self._own or name in self._table

    def __iter__(self) -> Iterator[str]:
        """The levels."""
        yield from self._table
        yield from self._own

    def __len__(self) -> int:
        """How many there are."""
        return len(self._table) + len(self._own)


def with_own(table: Mapping[str, ServerAdapter], study: Study) -> Mapping[str, ServerAdapter]:
    """The servers that a study may use: the table, and those that it brings itself."""
    own = {level: adapter for level, one in study.servers.items() if (adapter := _adapter(level, one, table))}
    return WithOwn(table, own) if own else table


def release(name: str, table: Mapping[str, ServerAdapter]) -> ProgramRecipe | None:
    """The recipe of ``caddy@2.10.0``; None where nothing brings it."""
    server, _, version = name.partition("@")
    package, stamp = GO_PACKAGES.get(server, ("", ""))
    if server not in table or not package or not VERSION.fullmatch(version):
        return None
    major = MAJOR.search(package)
    right = major is None or version.startswith(f"{major[1]}.")
    return GoRelease(name, package, version, OLDEST_GO, stamp=stamp) if right else None


def released(name: str, table: Mapping[str, ServerAdapter]) -> ServerAdapter:
    """The adapter of ``caddy@2.10.0``, which says so when it is not in the cache."""
    server, _, version = name.partition("@")
    return _build(name, ServerBuild(server, version=version), table[server])


def releases_here(table: Mapping[str, ServerAdapter]) -> list[str]:
    """The releases in the cache."""
    folders = sorted(cache_folder().glob("[!.]*@*"))
    return [path.name for path in folders if (recipe := release(path.name, table)) is not None and recipe.installed()]


def _adapter(level: str, definition: ServerDefinition, table: Mapping[str, ServerAdapter]) -> ServerAdapter | None:
    if isinstance(definition, ServerProgram):
        return FromData(level, definition)
    if isinstance(definition, ServerService):
        return FromCompose(level, definition)
    return _build(level, definition, table[definition.adapter]) if definition.adapter in table else None


def _build(level: str, build: ServerBuild, adapter: ServerAdapter) -> ServerAdapter:
    """The adapter for another program; one that says why there is none, when it is looked for."""
    own = copy(adapter)
    own.name = level
    own.remedy = "build it again, or name another"
    try:
        own.build = _of_version(adapter, build.version) if build.version else _of_path(adapter, Path(build.program))
    except Unsupported as error:
        return BrokenServer(level, str(error))
    own.source = f"a build of {adapter.name}: {build.program or own.build}"
    return own


def _of_version(adapter: ServerAdapter, version: str) -> Path:
    recipe = release(f"{adapter.name}@{version}", {adapter.name: adapter})
    if recipe is None:
        what = f"nothing brings version {version} of {adapter.name}"
        raise Unsupported(f"{what}; name a build of it, as in {adapter.name}@./{version}")
    return recipe.program()


def _of_path(adapter: ServerAdapter, path: Path) -> Path:
    name = adapter.program_name
    if not name:
        raise Unsupported(f"{adapter.name} cannot be pointed to another build; name a program as cmd:, or server.yaml")
    program = path
    if path.is_dir():
        places = [path / place / name for place in PLACES]
        there = [place for place in places if place.is_file()]
        if not there:
            what = f"{path} holds no program {name}, nor do its {', '.join(PLACES[1:])}"
            raise Unsupported(f"{what}; build it, or name the program itself")
        program = there[0]
    if not program.is_file() or not os.access(program, os.X_OK):
        raise Unsupported(f"{program} is no program that can be run; build it, or run chmod +x")
    return program
