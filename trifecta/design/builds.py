"""Servers that a study brings itself: builds of one that has an adapter, adapters as data, compose services."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from trifecta.contract.run import InstalledProgram
from trifecta.contract.values import JsonObject, JsonValue
from trifecta.design import quantity
from trifecta.design.protocols import PROTOCOL_NAMES, PROTOCOLS, SAFE_METHODS, Protocol
from trifecta.design.quantity import QuantityError

COMMAND = "cmd:"
COMPOSE = "compose:"
ENDINGS = (".yaml", ".yml")
KNOWN_OF_SERVICE = "x-trifecta"
"""The field of a service that says what an adapter as data says; compose leaves names with ``x-`` to others."""
PLACEHOLDERS = (
    "address", "port", "endpoint", "cert", "key", "root", "state", "tls_version", "congestion_control", "streams",
)  # fmt: skip
"""What ``{...}`` can stand for in a command line, an environment and a configuration file (docs/add-a-server.md)."""
PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
VERSION = re.compile(r"\d+(\.\d+)+[A-Za-z0-9.+-]*")

FindProgram = Callable[[str], str]
"""A program, a file or a folder as it is written -> its name in full; QuantityError when it is not there."""


@dataclass(frozen=True)
class ServerBuild:
    """Another build of a server that has an adapter: a program or its folder, or a version that ``get`` brings."""

    adapter: str
    program: str = ""
    version: str = ""


@dataclass(frozen=True)
class ServerProgram:
    """An adapter as data: what ``ServerAdapter`` says in Python.

    ``version``: what the program is asked with for its version; None: ``--version``, which it may not know; none: it is
    not asked. ``congestion_control``: the one that it always has over QUIC, or its own names by ours; empty: not known.
    """

    command: tuple[str, ...]
    version: tuple[str, ...] | None = None
    protocols: tuple[Protocol, ...] = PROTOCOLS
    methods: tuple[str, ...] = SAFE_METHODS
    ready_says: str = ""
    ready_within_ns: int | None = None
    congestion_control: str | Mapping[str, str] = ""
    tcp_nodelay: bool | None = None
    zero_rtt: bool = False
    tls_library: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    def texts(self) -> tuple[str, ...]:
        """Everything in which placeholders are filled in."""
        return (*self.command, *self.environment.values(), *self.files.values())


@dataclass(frozen=True)
class ImageBuild:
    """How the image of a service is built. Paths are relative and lead downwards: from the file's folder, ``./``, and
    from the context.
    """

    context: str
    dockerfile: str = "Dockerfile"
    arguments: Mapping[str, str] = field(default_factory=dict)
    target: str = ""


@dataclass(frozen=True)
class ServerService:
    """A service of a compose file: a program in a container, and the image that it is in.

    ``program``: as of a server that is a process; its command begins with ``entrypoint``, or where that is empty with
    the image's own. ``image``: of ``archive``, where none is built. ``volumes``: what is mounted to be read, and where.
    """

    folder: str
    """Of the compose file, in full: below it lies what the service names."""
    program: ServerProgram
    image: str = ""
    archive: str = ""
    build: ImageBuild | None = None
    entrypoint: tuple[str, ...] = ()
    volumes: tuple[tuple[str, str], ...] = ()
    working_dir: str = ""
    ignored: tuple[str, ...] = ()
    """Fields of the service that change nothing here."""


ServerDefinition = ServerBuild | ServerProgram | ServerService


def in_full(text: str) -> str:
    """What finds programs where no file system is looked at: names in full only, as a run's ``study.yaml`` has them."""
    if not text.startswith("/"):
        raise QuantityError(f"{text!r} cannot be looked for here; give the path of the program in full")
    return text


def parse_build(text: str, find: FindProgram) -> ServerBuild:
    """``nginx@./build``, ``caddy@2.10.0``."""
    adapter, _, build = text.partition("@")
    if not adapter or not build:
        raise QuantityError(f"{text!r} is not SERVER@BUILD; write for example nginx@./build, or caddy@2.10.0")
    if VERSION.fullmatch(build):
        return ServerBuild(adapter, version=build)
    return ServerBuild(adapter, program=find(build))


def adapter_of(level: str, servers: Mapping[str, ServerDefinition]) -> str:
    """The server that a level is a build of; the level itself where it is none."""
    own = servers.get(level)
    return own.adapter if isinstance(own, ServerBuild) else level


def fill(text: str, values: Mapping[str, str]) -> str:
    """The text with its placeholders filled in, in one pass: what is put in is not looked at again."""
    return PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), text)


def as_data(definition: ServerDefinition) -> JsonObject:
    """As it stands in a study file, without what is as usual."""
    if isinstance(definition, ServerBuild):
        build = {"version": definition.version} if definition.version else {"program": definition.program}
        return {"adapter": definition.adapter, **build}
    if isinstance(definition, ServerProgram):
        return _program_data(definition)
    data: dict[str, JsonValue] = {"folder": definition.folder, "service": service_data(definition)}
    return data | {"ignored": list(definition.ignored)} if definition.ignored else data


def _program_data(definition: ServerProgram) -> dict[str, JsonValue]:
    usual = ServerProgram(definition.command)
    data: dict[str, JsonValue] = {"command": list(definition.command)}
    if definition.version is not None:
        data["version"] = list(definition.version) or "none"
    if definition.protocols != usual.protocols:
        data["protocols"] = [PROTOCOL_NAMES[protocol] for protocol in definition.protocols]
    if definition.methods != usual.methods:
        data["methods"] = list(definition.methods)
    ready: dict[str, JsonValue] = {"says": definition.ready_says} if definition.ready_says else {}
    if definition.ready_within_ns is not None:
        ready["within"] = quantity.format_time(definition.ready_within_ns)
    control = definition.congestion_control
    more: dict[str, JsonValue] = {
        "ready": ready,
        "congestion_control": control if isinstance(control, str) else dict(control),
        "zero_rtt": definition.zero_rtt,
        "tls_library": definition.tls_library,
        "environment": dict(definition.environment),
        "files": dict(definition.files),
    }
    data |= {name: value for name, value in more.items() if value}
    if definition.tcp_nodelay is not None:
        data["tcp_nodelay"] = definition.tcp_nodelay
    return data


def service_data(definition: ServerService) -> JsonObject:
    """The service as a compose file has it, without what is ignored: equal ones are one server of one image."""
    program, build = definition.program, definition.build
    own = ("command", "version", "environment")
    known = {name: value for name, value in _program_data(program).items() if name not in own}
    values: dict[str, JsonValue] = {}
    if build is not None:
        values = {"context": _escaped(build.context), "dockerfile": _escaped(build.dockerfile)}
        values |= (
            {"args": {name: _escaped(value) for name, value in build.arguments.items()}} if build.arguments else {}
        )
        values |= {"target": _escaped(build.target)} if build.target else {}
    data: dict[str, JsonValue] = {
        "image": _escaped(definition.image),
        "build": values,
        "entrypoint": [*map(_escaped, definition.entrypoint)],
        "command": [*map(_escaped, program.command[len(definition.entrypoint) :])],
        "environment": {name: _escaped(value) for name, value in program.environment.items()},
        "volumes": [f"{_escaped(source)}:{_escaped(target)}:ro" for source, target in definition.volumes],
        "working_dir": _escaped(definition.working_dir),
        KNOWN_OF_SERVICE: known | ({"archive": _escaped(definition.archive)} if definition.archive else {}),
    }
    return {name: value for name, value in data.items() if value}


def _escaped(text: str) -> str:
    """As it stands in a compose file, where ``$`` begins a variable."""
    return text.replace("$", "$$")


def alike(servers: Mapping[str, ServerDefinition], programs: Mapping[str, InstalledProgram]) -> list[str]:
    """A sentence for each two levels of one server that are one program, by its digest: nothing distinguishes them."""
    first_levels: dict[tuple[str, str], str] = {}
    sentences = []
    for level, facts in programs.items():
        digest = facts.get("sha256", "")
        first = first_levels.setdefault((_one_of(level, servers.get(level)), digest), level)
        if digest and first != level:
            same = f"are one program (sha256 {digest[:12]}): what differs between them is chance; name another build"
            sentences.append(f"server {first} and server {level} {same}")
    return sentences


def _one_of(level: str, own: ServerDefinition | None) -> str:
    """The same for levels whose digests tell whether they are one program."""
    if isinstance(own, ServerService):
        return COMPOSE  # its digest is of all that it says
    return level if own is None else own.adapter if isinstance(own, ServerBuild) else repr(own)


def not_heeded(servers: Mapping[str, ServerDefinition]) -> list[str]:
    """A sentence for each service of which something changes nothing here."""
    return [
        f"server {level}: what its compose file says of {', '.join(own.ignored)} changes nothing here"
        for level, own in servers.items()
        if isinstance(own, ServerService) and own.ignored
    ]


def in_containers(servers: Mapping[str, ServerDefinition]) -> bool:
    """Whether one of them is in a container."""
    return any(isinstance(own, ServerService) for own in servers.values())
