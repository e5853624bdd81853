"""Bundled studies, and reading study files from disk: the only place where a study touches the file system."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TypedDict

from trifecta.analysis.statements import Published
from trifecta.analysis.statements import parse as parse_published
from trifecta.contract.values import Level
from trifecta.design import plan
from trifecta.design.any_level import FoundLevels
from trifecta.design.browsers import BUNDLED_CLIPS, BUNDLED_PAGES
from trifecta.design.document import Document
from trifecta.design.errors import CannotError, UserError
from trifecta.design.model import Study
from trifecta.design.quantity import QuantityError, format_time, parse_count
from trifecta.design.resolve import Surroundings
from trifecta.design.study_file import parse_study
from trifecta.design.yaml_text import MAX_CHARACTERS

_FOLDER = Path(__file__).parent
_MAX_TRACE_BYTES = 16_000_000


def bundled() -> dict[str, Path]:
    """The studies that come with Trifecta, by name."""
    return {path.stem: path for path in sorted(_FOLDER.glob("*.yaml"))}


def campaigns() -> dict[str, Path]:
    """The campaigns that come with Trifecta, by name."""
    return {path.stem: path for path in sorted((_FOLDER / "campaigns").glob("*.yaml"))}


def experiments() -> dict[str, Path]:
    """The experiments that show the effect of a threat, as ``threats/NAME``."""
    return {f"threats/{path.stem}": path for path in sorted((_FOLDER / "threats").glob("*.yaml"))}


@cache
def published(*, as_published: bool = False) -> dict[str, Published]:
    """What other studies published, by name, in the order of their years.

    ``as_published``: as statements about what was measured under the studies' own conditions.
    """
    from ruamel.yaml import YAML

    reader = YAML(typ="safe", pure=True)
    files = sorted((_FOLDER / "published").glob("*.yaml"))
    studies = [parse_published(reader.load(path), as_published=as_published) for path in files]
    return {one.id: one for one in sorted(studies, key=lambda one: one.year)}


def experiment(name: str, overrides: Sequence[str] = ()) -> Study:
    """The experiment of a threat by its name."""
    return load(f"threats/{name}", overrides)


def find(study: str) -> Path:
    """The file of a bundled study's, campaign's or experiment's name, or of a path to one."""
    known = bundled() | campaigns()
    named = known | experiments()
    if study in named:
        return named[study]
    path = Path(study)
    if path.suffix in (".yaml", ".yml") or "/" in study or path.exists():
        return path
    raise UserError(f"no study {study!r}; give the path of a study file, or one of: {', '.join(known)}")


def load(
    study: str,
    overrides: Sequence[str] = (),
    servers: Collection[str] | None = None,
    *,
    clients: Collection[str] | None = None,
    found_levels: FoundLevels | None = None,
    change: Callable[[Document], None] | None = None,
) -> Study:
    """The study of this name or path, with ``KEY=VALUE`` overrides applied.

    ``servers`` and ``clients`` are the names a study may use; None: any name. ``found_levels`` says what ``any`` stands
    for; without it this machine is looked at. ``change`` is made to the document after them.
    Raises UserError or CannotError with one line.
    """
    path = find(study)
    text = read_text(path)
    # A bundled study names no folder, so one comes from the command line, and is the user's own.
    beside = None if study in bundled() else path.parent
    around = Surroundings(
        servers=servers,
        services=known_services(),
        clients=clients,
        read_trace=lambda name: read_trace(path.parent, name),
        find_page=lambda name: find_thing(path.parent, name, BUNDLED_PAGES, "page", "page.json"),
        find_clip=lambda name: find_thing(path.parent, name, BUNDLED_CLIPS, "clip"),
        find_folder=lambda name: find_messages(beside, name),
        find_program=partial(find_program, beside),
        read_server=partial(read_server, beside),
        found=found_levels or _found_here,
    )
    return parse_study(text, str(path), overrides, around, change)


def read_text(path: Path) -> str:
    """The text of a study file."""
    try:
        with path.open(encoding="utf-8") as file:
            return file.read(MAX_CHARACTERS + 1)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; 'trifecta studies' lists the bundled ones") from None
    except IsADirectoryError:
        raise UserError(f"{path}: is a folder; give a study file, or 'trifecta resume {path}' for a run") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: is not UTF-8 text (octet {error.start}); save it as UTF-8") from None
    except OSError as error:
        raise CannotError(f"{path}: cannot be read: {error.strerror}; check the file's permissions") from None


def read_trace(folder: Path, name: str) -> list[int]:
    """The opportunities of a trace file, one time in ms a line; the file never lies outside the study's folder."""
    base = folder.resolve()
    path = (base / name).resolve()
    if not path.is_relative_to(base):
        raise QuantityError(f"the trace file {name!r} lies outside the study's folder; move it beside the study")
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_TRACE_BYTES + 1)
    except OSError as error:
        raise QuantityError(f"the trace file {name!r} cannot be read ({error.strerror}); check the name") from None
    if len(data) > _MAX_TRACE_BYTES:
        raise QuantityError(f"the trace file {name!r} has more than {_MAX_TRACE_BYTES} octets; shorten it")
    times = []
    for number, line in enumerate(data.decode("ascii", "replace").splitlines(), start=1):
        word = line.strip()
        if not word or word.startswith("#"):
            continue
        try:
            times.append(parse_count(word))
        except QuantityError:
            raise QuantityError(f"{name}:{number}: {word[:40]!r} is not a time in whole ms; fix the line") from None
    return times


def find_messages(folder: Path | None, name: str) -> str:
    """The full name of a folder of JSON messages; it never lies outside the study's ``folder``, where there is one."""
    base = (folder or Path()).resolve()
    path = (base / name).resolve()
    if folder is not None and not path.is_relative_to(base):
        raise QuantityError(f"the folder {name!r} lies outside the study's folder; move it beside the study")
    if not path.is_dir():
        raise QuantityError(f"the folder {name!r} is not there; it should hold the messages as *.json files")
    if not any(path.glob("*.json")):
        raise QuantityError(f"the folder {name!r} holds no *.json file; put the messages there")
    return str(path)


def find_thing(folder: Path, name: str, bundled_names: Collection[str], what: str, inside: str = "") -> str:
    """A bundled page or clip by its name, or the full path of a user's own, beside the study or where the user is.

    Pages and clips are read only, and may lie anywhere: whoever names one can read it without Trifecta as well.
    """
    if name in bundled_names:
        return name
    for base in (folder, Path()):
        path = (base / name).expanduser().resolve()
        if (path / inside).exists():
            return str(path)
    missing = f" with a {inside}" if inside else ""
    raise QuantityError(f"no {what} {name!r}; give one of: {', '.join(bundled_names)}, or the path of one{missing}")


def find_program(folder: Path | None, text: str, near: str = "") -> str:
    """The full name of a program, a file or the folder of a build; one without a slash is looked for on PATH.

    It is looked for beside the file that names it (``near``, else a study in ``folder``), then where the user is.
    """
    if "/" not in text:
        program = shutil.which(text)
        if program is None:
            raise QuantityError(f"no program {text!r} on PATH; install it, or write its path, such as ./{text}")
        return str(Path(program).absolute())
    bases = [Path(near).parent if near else folder or Path(), Path()]
    for path in ((base / text).expanduser().absolute() for base in bases):
        if path.exists():
            return str(path.resolve() if ".." in path.parts else path)
    raise QuantityError(f"{text!r} is not there; build it, or correct the path")


def read_server(folder: Path | None, name: str) -> tuple[str, str]:
    """The text of an adapter's file, and its name in full; it lies beside the study, or where the user is."""
    for path in (base / name for base in (folder or Path(), Path())):
        if path.exists():
            return read_text(path), str(path.absolute())
    raise QuantityError(f"the file {name!r} is not there; correct the path")


class Described(TypedDict):
    """A study for a program to read: what it compares, and its canonical text."""

    name: str
    title: str
    file: str
    factors: dict[str, list[Level]]
    baseline: str
    arms: list[str]
    cells: list[str]
    metric: str
    margin: float
    blocks: dict[str, int]
    budget: str | None
    seed: int
    source: str


def describe(study: Study, path: Path) -> Described:
    """A study for a program to read: what it compares, and its canonical text."""
    return {
        "name": study.name,
        "title": study.title,
        "file": str(path),
        "factors": {name: list(levels) for name, levels in study.factors.items()},
        "baseline": study.baseline.level,
        "arms": plan.arms(study),
        "cells": [cell.key for cell in plan.cells(study)],
        "metric": study.metric,
        "margin": study.margin,
        "blocks": {"at_least": study.min_blocks, "at_most": study.max_blocks},
        "budget": None if study.budget_ns is None else format_time(study.budget_ns),
        "seed": study.seed,
        "source": study.source,
    }


def known_servers() -> list[str]:
    """The servers that have an adapter here."""
    from trifecta.implementations.survey import names_of_kind

    return names_of_kind("server")


def known_clients() -> list[str]:
    """The clients that have an adapter here, and the engine's own."""
    from trifecta.implementations.survey import names_of_kind

    return names_of_kind("client")


def known_services() -> list[str]:
    """The programs that can be services here, and the engine's own."""
    from trifecta.implementations.survey import names_of_kind

    return names_of_kind("service")


def _found_here(factor: str) -> Sequence[str]:
    """What ``any`` stands for on this machine."""
    from trifecta.implementations.survey import Finder

    return Finder()(factor)
