"""Servers that a study brings itself: other builds of a server that has an adapter, and adapters as data."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from trifecta.contract.run import ProgramFound
from trifecta.contract.values import JsonObject, JsonValue
from trifecta.design import quantity
from trifecta.design.protocols import PROTOCOL_NAMES, PROTOCOLS, SAFE_METHODS, Protocol
from trifecta.design.quantity import QuantityError

COMMAND = "cmd:"
ENDINGS = (".yaml", ".yml")
PLACEHOLDERS = ("address", "port", "cert", "key", "root", "state", "tls_version", "congestion_control", "streams")
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


ServerDefinition = ServerBuild | ServerProgram


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
    return PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), text)


def as_data(definition: ServerDefinition) -> JsonObject:
    """As it stands in a study file, without what is as usual."""
    if isinstance(definition, ServerBuild):
        build = {"version": definition.version} if definition.version else {"program": definition.program}
        return {"adapter": definition.adapter, **build}
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


def alike(servers: Mapping[str, ServerDefinition], found: Mapping[str, ProgramFound]) -> list[str]:
    """A sentence for each two levels of one server that are one program, by its digest: nothing tells them apart."""
    seen: dict[tuple[str, str], str] = {}
    said = []
    for level, facts in found.items():
        own, digest = servers.get(level), facts.get("sha256", "")
        what = level if own is None else own.adapter if isinstance(own, ServerBuild) else repr(own)
        first = seen.setdefault((what, digest), level)
        if digest and first != level:
            same = f"are one program (sha256 {digest[:12]}): what differs between them is chance; name another build"
            said.append(f"server {first} and server {level} {same}")
    return said
