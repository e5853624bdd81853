"""The levels of a study's factors: what a document may name, and what the workload fixes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from trifecta.design import plan
from trifecta.design.any_level import FoundLevels
from trifecta.design.builds import in_full
from trifecta.design.document import Section, did_you_mean, parse_text
from trifecta.design.factors import (
    CLIENT_FACTOR,
    CORE_FACTORS,
    KNOWN_FACTORS,
    WORKLOAD_FIELDS,
    parse_level,
)
from trifecta.design.impairments import ReadTrace, no_trace_files
from trifecta.design.model import PROTOCOL_FACTOR, PROTOCOLS, PathSpec, RequestsWorkload
from trifecta.design.quantity import QuantityError
from trifecta.design.workloads.kinds import DEFAULT_BROWSER, WORKLOADS

MAX_CELLS = 1_000
CLEAN = "clean"  # the path without any impairment is always there
_LEVEL = re.compile(r"[^,=\x00-\x1f\x7f]{1,64}")
_LONG_LEVEL = re.compile(r"[^,=\x00-\x1f\x7f]{1,1024}")  # of factors whose levels are paths of files
_URL_LEVEL = re.compile(r"[^,\x00-\x1f\x7f]{1,1024}")  # a cell's key is split at the first "=" of a part
FindProgramNear = Callable[..., str]
"""``(text, near=FILE)`` -> the full name of a program or folder, looked for beside the file that names it first;
QuantityError when it is not there."""
ReadServer = Callable[[str], tuple[str, str]]
"""The name of an adapter's file -> its text, and its name in full; QuantityError when it cannot be read."""


def program_in_full(text: str, near: str = "") -> str:
    """What finds programs where no file system is looked at."""
    return in_full(text)


def no_server_files(name: str) -> tuple[str, str]:
    """The reader of adapters' files where there is no folder to read them from."""
    raise QuantityError(f"the file {name!r} cannot be read here; write its fields in its place")


@dataclass(frozen=True)
class Surroundings:
    """What a study may name that the design does not know by itself."""

    servers: Collection[str] | None = None  # names with an adapter; None: any name is taken
    services: Collection[str] | None = None  # the same of programs that are services, with the engine's own
    clients: Collection[str] | None = None  # the same of clients, with the engine's own
    browsers: Collection[str] | None = None
    read_trace: ReadTrace = no_trace_files
    find_folder: Callable[[str], str] = (
        str  # a folder of messages: its name in full; QuantityError when it is not there
    )
    find_page: Callable[[str], str] = str  # the same of a page: a bundled one's name, or the folder of an archive
    find_clip: Callable[[str], str] = str  # the same of a video's clip: a bundled one's name, or a file
    find_program: FindProgramNear = program_in_full  # a program or the folder of a build, and the file that names it
    read_server: ReadServer = no_server_files
    found: FoundLevels | None = None  # what ``any`` stands for; None: it cannot be used


def named_things(around: Surroundings) -> dict[str, Callable[[Any], str]]:
    """Fields that name something outside of the study, with what looks for it."""
    finders = {"messages": around.find_folder, "page": around.find_page, "clip": around.find_clip}
    return {name: lambda value, find=find: find(parse_text(value)) for name, find in finders.items()}  # type: ignore[misc]


def read_factors(
    root: Section,
    paths: Mapping[str, PathSpec],
    around: Surroundings,
    workload: RequestsWorkload,
    compare: str = PROTOCOL_FACTOR,
) -> dict[str, tuple[Any, ...]]:
    """The factors of a study with their levels; UserError for the first that it cannot have.

    ``compare`` makes no cells: its levels are the arms.
    """
    section = root.section("factors")
    kind = WORKLOADS[workload.kind]
    _allow_factors(section, workload)
    as_is = [name for name, path in paths.items() if path.as_is]  # between hosts there is no other
    declared = as_is or list(root.section("paths").mapping) or [CLEAN]
    factors: dict[str, tuple[Any, ...]] = {
        "protocol": PROTOCOLS,
        "path": tuple(declared),
        "connection": ("reused",),
        "server": (kind.server,),
    }
    if kind.clients == "browser":
        factors[CLIENT_FACTOR] = (DEFAULT_BROWSER,)
    factors |= {factor: (level,) for factor, level in kind.fixed.items()}
    first = (*CORE_FACTORS, CLIENT_FACTOR)
    finders = named_things(around)
    known: dict[str, Collection[str] | None] = {
        "server": around.services if kind.services else around.servers,
        CLIENT_FACTOR: around.browsers if kind.clients == "browser" else around.clients,
        **{factor: [level] for factor, level in kind.fixed.items()},
    }
    for factor in (*first, *(name for name in section.mapping if name not in first)):
        if factor not in section:
            if factor in section.mapping:
                raise section.error(factor, "has no level; list at least one, or remove the factor")
            continue
        levels: list[Any] = []
        for place, item in section.items(factor):

            def parse(value: Any, factor: str = factor) -> Any:
                if factor in kind.fixed:
                    return parse_text(value)
                return finders[factor](value) if factor in finders else parse_level(factor, value)

            level = section.parse_value(place, item, parse)
            if factor == "path" and level not in paths:
                raise root.document.error(place, f"path {level!r} is not defined; {did_you_mean(level, paths)}")
            names = known.get(factor)
            if names is not None and level not in names:
                raise root.document.error(place, f"no {factor} {level!r}; {did_you_mean(level, names)}")
            if not _form_of(factor, finders).fullmatch(plan.level_text(level)):
                raise root.document.error(
                    place, f"{level!r} is not a level's name; use no ',' '=' or control character"
                )
            if level in levels:
                raise root.document.error(place, f"level {level!r} is listed twice; list it once")
            levels.append(level)
        if not levels:
            raise section.error(factor, "has no level; list at least one, or remove the factor")
        if factor not in CORE_FACTORS and factor in root.section("workload"):
            raise section.error(factor, "is a field of the workload too; remove it from one of the two")
        factors[factor] = tuple(levels)
    combined = math.prod(len(levels) for name, levels in factors.items() if name != compare)
    if combined > MAX_CELLS and "cells" not in root:
        raise root.error("factors", f"their levels combine to more than {MAX_CELLS} cells; take some out")
    return factors


def read_cells(
    root: Section, factors: Mapping[str, tuple[Any, ...]], around: Surroundings, compare: str
) -> tuple[str, ...]:
    """The keys of the cells that a study names (``cells``), each once; none where every combination is one.

    A cell is written as ``factor=level,factor=level``; factors with one level may be left out.
    """
    finders, names, cells = named_things(around), [name for name in factors if name != compare], []
    for place, item in root.items("cells"):
        rewritten: dict[str, str] = {}
        for part in parse_text(item).split(","):
            name, equals, text = (one.strip() for one in part.partition("="))
            if not equals or name not in names or name in rewritten:
                sentence = "twice" if name in rewritten else did_you_mean(name, names)
                raise root.document.error(place, f"{part.strip()!r} is no factor and level of a cell; {sentence}")
            if text not in map(plan.level_text, factors[name]):  # written otherwise: 1000 B for 1 kB
                parse = finders.get(name) or partial(parse_level, name)
                text = plan.level_text(root.parse_value(place, text, parse))
            rewritten[name] = text
        levels: dict[str, Any] = {}
        for name in names:
            own = {plan.level_text(level): level for level in factors[name]}
            if name not in rewritten and len(own) > 1:
                raise root.document.error(place, f"which {name}? Name one of {', '.join(own)}")
            chosen = rewritten.get(name, next(iter(own)))
            if chosen not in own:
                raise root.document.error(place, f"{chosen!r} is not a level of {name}; {did_you_mean(chosen, own)}")
            levels[name] = own[chosen]
        key = plan.cell_of(levels).key
        if key in cells:
            raise root.document.error(place, f"the cell {key} is listed twice; list it once")
        cells.append(key)
    if "cells" in root and not 0 < len(cells) <= MAX_CELLS:
        raise root.error("cells", f"lists {len(cells)} cells; list 1 to {MAX_CELLS}, or remove the field")
    return tuple(cells)


def _allow_factors(section: Section, workload: RequestsWorkload) -> None:
    """Refuse what is not a factor of this workload: other workloads' fields, and a client where there is no choice."""
    known = factors_of(workload)
    for name in section.mapping:
        if name in KNOWN_FACTORS and name not in known:
            raise section.error(name, f"is not a factor of the workload {workload.kind!r}; remove it")
    section.allow(*known)


def factors_of(workload: RequestsWorkload) -> list[str]:
    """The factors that a study of this workload can have; one that is fixed is among them."""
    kind = WORKLOADS[workload.kind]
    known = [name for name in KNOWN_FACTORS if name not in WORKLOAD_FIELDS or name in kind.fields]
    return [name for name in known if not (kind.clients is None and name == CLIENT_FACTOR)]


def _form_of(factor: str, finders: Collection[str]) -> re.Pattern[str]:
    """What a level of a factor may look like: some are paths of files, or URLs."""
    if factor == "url":
        return _URL_LEVEL
    return _LONG_LEVEL if factor in (*finders, "server") else _LEVEL
