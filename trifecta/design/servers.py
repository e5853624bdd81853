"""The servers that a study brings itself, by level: those of ``servers``, ``nginx@./build``, compose services."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import Any

from trifecta.design.builds import (
    COMMAND,
    COMPOSE,
    ENDINGS,
    VERSION,
    FindProgram,
    ServerBuild,
    ServerDefinition,
    parse_build,
)
from trifecta.design.compose import read_compose, read_defined
from trifecta.design.document import Section, did_you_mean, parse_text
from trifecta.design.levels import Surroundings
from trifecta.design.model import RequestsWorkload
from trifecta.design.quantity import QuantityError
from trifecta.design.server_data import parse_command, read_program
from trifecta.design.workloads.kinds import WORKLOADS
from trifecta.design.yaml_text import parse_document

_NAME = re.compile(r"(?!.*\.\.)[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")  # it is part of a host's name
_FORMS = "cmd: and a command line, a file that ends in .yaml, SERVER@BUILD, or compose:FILE#SERVICE"


def read_servers(
    root: Section, around: Surroundings, workload: RequestsWorkload
) -> tuple[dict[str, ServerDefinition], Surroundings]:
    """Those that the study's levels use, and surroundings in which they are servers like any other.

    UserError for the first that is wrong, and for one of an option that no level uses.
    """
    section, levels = root.section("servers"), root.section("factors").items("server")
    servers = {name: _read(section, name, around) for name in section.mapping}
    places = {parse_text(item): place for place, item in levels if not isinstance(item, dict | list)}
    for text, place in places.items():
        if text.startswith(COMMAND) or (text.endswith(ENDINGS) and not text.startswith(COMPOSE)):
            remedy = "name it under servers, as in 'servers: {mine: ./server.yaml}', and list the name here"
            raise root.document.error(place, f"{text!r} has no name that results could have; {remedy}")
        if _speaks(text) and text not in servers:
            servers[text] = root.parse_value(place, text, partial(_of_text, around))
    for name in section.mapping:
        if name not in places and ("servers", name) in root.document.options:
            raise section.error(name, f"no cell has the server {name!r}; add it to the levels, or leave it out")
    used = {text: servers[text] for text in places if text in servers}
    if used and WORKLOADS[workload.kind].services:
        place = places[next(iter(used))]
        what = f"servers of the workload {workload.kind} are services, and builds of a study's own are no services"
        raise root.document.error(place, f"{what}; name a program that `trifecta implementations` lists")
    if around.servers is not None:
        around = replace(around, servers=(*around.servers, *used))
    return used, around


def _speaks(level: str) -> bool:
    """Whether a level says itself what it is, so that its name may be what was written."""
    return level.startswith(COMPOSE) or "@" in level


def _read(section: Section, name: str, around: Surroundings) -> ServerDefinition:
    if not _speaks(name) and not _NAME.fullmatch(name):
        raise section.error(name, f"{name!r} is not a name; use letters, digits and ._- between them, at most 63")
    if around.servers is not None and name in around.servers:
        raise section.error(name, "is the name of a server that Trifecta has; choose another")
    if section.raw(name) is None:
        raise section.error(name, f"is empty; give {_FORMS}")
    if isinstance(section.raw(name), dict):
        return _of_fields(section.section(name), around, near="")
    definition: ServerDefinition = section.parse_value(
        (*section.place, name), section.raw(name), partial(_of_text, around)
    )
    return definition


def _of_fields(section: Section, around: Surroundings, near: str) -> ServerDefinition:
    find = partial(around.find_program, near=near)
    if "service" in section:
        return read_defined(section)
    if "adapter" not in section:
        return read_program(section, find)
    section.allow("adapter", "program", "version")
    if ("program" in section) == ("version" in section):
        raise section.error("adapter", "needs a program or a version beside it; give one of the two")
    adapter = section.parse("adapter", partial(_known_server, around), "")
    if "version" in section:
        return ServerBuild(adapter, version=section.parse("version", _version, ""))
    return ServerBuild(adapter, program=section.parse("program", lambda value: find(parse_text(value)), ""))


def _of_text(around: Surroundings, value: Any) -> ServerDefinition:
    text = parse_text(value).strip()
    if text.startswith(COMMAND):
        return parse_command(text.removeprefix(COMMAND), partial(around.find_program, near=""))
    if text.startswith(COMPOSE):
        return read_compose(text, around.read_server)
    if text.endswith(ENDINGS):
        written, file = around.read_server(text)
        return _of_fields(parse_document(written, file, begins="command: ./my-server ...").root(), around, near=file)
    if "@" in text:
        return _build(text, around=around)
    raise QuantityError(f"{text!r} is no server; give {_FORMS}")


def _build(value: Any, around: Surroundings) -> ServerBuild:
    find: FindProgram = partial(around.find_program, near="")
    build = parse_build(parse_text(value), find)
    _known_server(around, build.adapter)
    return build


def _version(value: Any) -> str:
    text = parse_text(value)
    if not VERSION.fullmatch(text):
        raise QuantityError(f"{text!r} is not a version; write for example 2.10.0")
    return text


def _known_server(around: Surroundings, value: Any) -> str:
    name = parse_text(value)
    if around.servers is not None and name not in around.servers:
        raise QuantityError(f"no server {name!r} that could have another build; {did_you_mean(name, around.servers)}")
    return name
