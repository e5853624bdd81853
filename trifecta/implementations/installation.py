"""Bring implementations into the cache by their recipes, and say what was done (``trifecta get``)."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Literal

from trifecta.contract.values import JsonObject
from trifecta.design.document import did_you_mean
from trifecta.design.errors import TrifectaError, UserError
from trifecta.implementations.builds import release
from trifecta.implementations.recipe import Recipe, Say
from trifecta.implementations.registry import RECIPES, SERVERS
from trifecta.implementations.survey import Implementation, names_of_kind, survey

Status = Literal["installed", "present", "found", "failed"]


@dataclass(frozen=True)
class InstallResult:
    """What became of one name."""

    name: str
    status: Status
    """``installed`` now; ``present``: was in the cache; ``found``: has no recipe and needs none; ``failed``."""
    version: str | None = None
    origin: str | None = None
    folder: str | None = None
    size_bytes: int | None = None
    seconds: float | None = None
    reason: str | None = None
    steps: list[str] = field(default_factory=list)
    """What the recipe said it did."""

    def as_dict(self) -> JsonObject:
        """For a program to read."""
        return asdict(self)


def chosen(names: Sequence[str], recipes: Mapping[str, Recipe] = RECIPES) -> list[str]:
    """Each name once, in order; UserError for one that is no server, client, service or recipe."""
    there = list(
        dict.fromkeys(
            (
                *recipes,
                *names_of_kind("server"),
                *names_of_kind("client"),
                *names_of_kind("browser"),
                *names_of_kind("service"),
            )
        )
    )
    for name in names:
        if "@" in name and release(name, SERVERS) is None:
            raise UserError(f"no recipe brings {name}; name a build of your own as a level of server instead")
        if "@" not in name and name not in there:
            raise UserError(f"no implementation {name!r}; {did_you_mean(name, there)}")
    return list(dict.fromkeys(names))


def get(
    name: str,
    say: Say,
    *,
    force: bool = False,
    recipes: Mapping[str, Recipe] = RECIPES,
    look: Callable[[str], list[Implementation]] = lambda name: survey(names=[name]),
) -> InstallResult:
    """Bring one implementation into the cache and check that it runs; ``force`` fetches it anew.

    What goes wrong is in the answer. Only an interrupt comes out of here, and then nothing half is in the cache.
    """
    recipe = recipes[name] if name in recipes else release(name, SERVERS)
    if recipe is None:
        return _without_recipe(name, look)
    began = time.monotonic()
    steps: list[str] = []

    def tell(text: str) -> None:
        steps.append(text)
        say(text)

    try:
        present = recipe.installed() and not force
        if not present:
            with ending_by_interrupt():
                recipe.install(tell)
            if not recipe.installed():
                raise RuntimeError("its recipe ended without an error, but it is not in the cache")
        folder = recipe.folder()
        size = folder_bytes(folder)
    except TrifectaError as error:
        return InstallResult(name, "failed", origin=recipe.origin, reason=str(error), steps=steps)
    except Exception as error:
        reason = f"its recipe failed ({type(error).__name__}: {error}); report it with TRIFECTA_DEBUG=1"
        return InstallResult(name, "failed", origin=recipe.origin, reason=reason, steps=steps)
    found_programs = look(name)
    problem = next((each.reason for each in found_programs if not each.found), None)
    if problem is not None:
        remedy = "" if force else f"; fetch it again: trifecta get --force {name}"
        reason = f"is in the cache ({folder}), but cannot be used: {problem}{remedy}"
        return InstallResult(name, "failed", origin=recipe.origin, folder=str(folder), reason=reason, steps=steps)
    return InstallResult(
        name=name,
        status="present" if present else "installed",
        version=_version(found_programs),
        origin=recipe.origin,
        folder=str(folder),
        size_bytes=size,
        seconds=None if present else time.monotonic() - began,
        steps=steps,
    )


def folder_bytes(folder: Path) -> int:
    """How much disk the files of a folder take."""
    total = 0
    for here, _, files in os.walk(folder):
        total += sum(os.lstat(Path(here) / file).st_blocks * 512 for file in files)
    return total


def _without_recipe(name: str, look: Callable[[str], list[Implementation]]) -> InstallResult:
    survey = look(name)
    missing = next((each for each in survey if not each.found), None)
    if missing is not None:
        return InstallResult(name, "failed", origin=missing.source, reason=missing.reason)
    return InstallResult(name, "found", version=_version(survey), origin=survey[0].source if survey else None)


def _version(implementations: Sequence[Implementation]) -> str | None:
    return implementations[0].version if implementations else None


@contextmanager
def ending_by_interrupt() -> Iterator[None]:
    """SIGTERM and SIGHUP end what is done here as Ctrl-C does: by an exception, so that it clears up."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
