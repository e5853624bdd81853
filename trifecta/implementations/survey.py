"""Which servers, clients, browsers and services are here: every adapter asked, with a time limit, all at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from trifecta.contract.codec import plain
from trifecta.contract.run import LeftOut, RunDocument
from trifecta.contract.values import JsonObject
from trifecta.design import quinn
from trifecta.design.errors import CannotError, TrifectaError
from trifecta.design.factors import DEFAULT_CLIENT as LOAD
from trifecta.design.services import SERVER_LEVEL
from trifecta.entries import BUILT_IN
from trifecta.implementations.browser import BrowserAdapter
from trifecta.implementations.builds import release, released, releases_here
from trifecta.implementations.client import ClientAdapter
from trifecta.implementations.isolated import CallOutcome, call_apart
from trifecta.implementations.registry import BROWSERS, CLIENTS, ONLY_BY_NAME, RECIPES, SERVERS, SERVICES
from trifecta.implementations.server import ServerAdapter, ServerOptions, Unsupported
from trifecta.implementations.services.program import ServicesProgram
from trifecta.implementations.table import Table
from trifecta.lab.doctor import Finding, Status
from trifecta.lab.engine import engine_versions, find_engine

Kind = Literal["server", "client", "browser", "service"]
KINDS: tuple[Kind, ...] = ("server", "client", "browser", "service")
_OWN: Mapping[Kind, tuple[str, str]] = {
    "client": (LOAD, "part of Trifecta (engine/crates/load)"),
    "service": (SERVER_LEVEL, "part of Trifecta (engine/crates/origin and load)"),
}
"""What the engine has of a kind."""
_SHORT = 48  # characters
FIND_TIMEOUT_S = 15.0  # a Python program of a cold, busy machine has taken 4 s to tell its version


@dataclass(frozen=True)
class Implementation:
    """A server, client, browser or program of services, and what is known of it on this machine."""

    kind: Kind
    name: str
    found: bool
    version: str | None
    protocols: tuple[str, ...]
    source: str
    """Where the program comes from, as its adapter says."""
    package: str
    """The Python package its adapter is part of: ``trifecta``, or another with its version."""
    reason: str | None = None
    """Why it is not found, with the remedy."""
    get: str | None = None
    """The command that brings it, when there is a recipe."""
    proxy: bool = False
    """Whether it passes requests on to another server, which adds a hop."""
    declared: Mapping[str, Any] = field(default_factory=dict)
    """What its adapter says of TLS library, congestion control and build."""

    def as_dict(self) -> JsonObject:
        """For a program to read."""
        return asdict(self)

    @property
    def short_version(self) -> str:
        """The beginning of the version for a table."""
        return shorten(self.version or "")


def survey(
    kinds: Iterable[Kind] = KINDS,
    names: Iterable[str] | None = None,
    *,
    servers: Table[ServerAdapter] = SERVERS,
    clients: Table[ClientAdapter] = CLIENTS,
    browsers: Table[BrowserAdapter] = BROWSERS,
    services: Table[ServicesProgram] = SERVICES,
    timeout_s: float | None = None,
) -> list[Implementation]:
    """Look for every server, client, browser and service (of these ``names``), in the order of the tables.

    One that hangs, crashes or cannot be loaded is in the list with its reason and does not touch the others.
    """
    tables: dict[Kind, Table[Any]] = {"server": servers, "client": clients, "browser": browsers, "service": services}
    wanted = None if names is None else set(names)
    calls: dict[tuple[Kind, str], Callable[[], Any]] = {}
    for kind in kinds:
        own = [_OWN[kind][0]] if kind in _OWN else []
        releases = _releases(wanted, servers) if kind == "server" else []
        for name in [*own, *tables[kind], *releases]:
            if wanted is None or name in wanted:
                calls[kind, name] = _looking(kind, name, tables[kind])
    limit_s = FIND_TIMEOUT_S if timeout_s is None else timeout_s
    answers = call_apart(calls, timeout_s=limit_s)
    implementations = [_implementation(kind, name, tables[kind], answer) for (kind, name), answer in answers.items()]
    refused = [
        Implementation(kind, each.name, False, None, (), each.reason, each.package, each.reason)
        for kind in kinds
        for each in tables[kind].refused()
        if wanted is None or each.name in wanted
    ]
    return [*implementations, *refused]


class Finder:
    """Resolves the level ``any`` to what is found here, and remembers what is left out and why."""

    def __init__(self, look: Callable[[Sequence[Kind]], list[Implementation]] = survey) -> None:
        """``look`` finds the implementations of some kinds; nothing is looked for before a study asks."""
        self._look = look
        self.chosen: dict[str, list[str]] = {}
        """Kind -> the names that ``any`` stood for."""
        self.left_out: list[LeftOut] = []
        """As in ``run.json``: factor, level, reason."""

    def facts(self) -> RunDocument:
        """What a run records of it: ``any`` and ``not_found``; nothing when no study asked."""
        return {"any": dict(self.chosen), "not_found": list(self.left_out)} if self.chosen else {}

    def __call__(self, factor: str) -> list[str]:
        """The names found, in the order of the tables; CannotError when there is none."""
        kind: Kind = next((one for one in KINDS if one == factor), "server")
        if kind not in self.chosen:
            survey = self._look([kind])
            usual = [each for each in survey if each.name not in ONLY_BY_NAME and "@" not in each.name]
            self.chosen[kind] = [each.name for each in usual if each.found]
            self.left_out += [
                {
                    "factor": {"browser": "client", "service": "server"}.get(kind, kind),
                    "level": each.name,
                    "reason": each.reason or "not found",
                }
                for each in survey
                if not each.found
            ]
            if not self.chosen[kind]:
                raise CannotError(f"no {kind} is found here; run: trifecta implementations")
        return self.chosen[kind]


def as_findings(implementations: Sequence[Implementation]) -> list[Finding]:
    """What ``trifecta doctor`` says of them: a line a kind; no study needs more than those it names."""
    findings = []
    for kind in KINDS:
        own = [each for each in implementations if each.kind == kind]
        there = [f"{each.name} {each.short_version}" for each in own if each.found]
        get = [each.name for each in own if not each.found and each.get]
        evidence = f"{len(there)} of {len(own)} found: {'; '.join(there) or 'none'} (`trifecta implementations`)"
        status: Status = "ok" if there else "missing"
        remedy = f"trifecta get {' '.join(get)}" if get else ""
        if kind == "browser" and not there:
            remedy = "sudo apt-get install -y chromium firefox-esr libnss3-tools"
        findings.append(Finding(f"{kind}s", status, evidence, remedy))
    return findings


def shorten(version: str) -> str:
    """The beginning of a version: some programs list all their libraries."""
    return version if len(version) <= _SHORT else f"{version[:_SHORT].rpartition(' ')[0] or version[:_SHORT]} …"


def names_of_kind(kind: Kind) -> list[str]:
    """The names of a kind, found or not, without looking for any."""
    tables: dict[Kind, list[str]] = {
        "server": [*SERVERS],
        "client": [LOAD, *CLIENTS],
        "browser": [*BROWSERS],
        "service": [SERVER_LEVEL, *SERVICES],
    }
    return tables[kind]


def _releases(wanted: Iterable[str] | None, servers: Table[ServerAdapter]) -> list[str]:
    """Those asked for, else those in the cache."""
    if wanted is None:
        return releases_here(servers)
    return sorted(name for name in wanted if name not in servers and release(name, servers) is not None)


def _looking(kind: Kind, name: str, table: Table[Any]) -> Callable[[], Any]:
    own, source = _OWN.get(kind, ("", ""))
    if name == own:
        return lambda: _the_engine(source)
    return lambda: _look_at(table[name] if name in table else released(name, table))


def _look_at(adapter: ServerAdapter | ClientAdapter | BrowserAdapter | ServicesProgram) -> dict[str, Any]:
    """Runs in a child: loading, finding and declaring are all foreign code."""
    facts: dict[str, Any] = {
        "protocols": [protocol for protocol in ("h1", "h2", "h3") if protocol in adapter.protocols],
        "source": adapter.source,
        "proxy": bool(getattr(adapter, "is_proxy", False)),
        "version": None,
        "reason": None,
        "declared": {},
    }
    try:
        version = adapter.find()
        if not isinstance(version, str) or not version.strip():
            raise TypeError(f"find() returned {version!r}, no version")
        facts["version"] = " ".join(version.split())
    except (Unsupported, TrifectaError) as error:
        return facts | {"reason": " ".join(str(error).split())}
    except (Exception, SystemExit) as error:
        return facts | {"reason": f"find() failed ({type(error).__name__}: {' '.join(str(error).split())})"}
    try:
        declared = adapter.declared(ServerOptions()) if isinstance(adapter, ServerAdapter) else adapter.declared()
        json.dumps(declared)
    except (Exception, SystemExit) as error:
        return facts | {"reason": f"declared() failed ({type(error).__name__}: {' '.join(str(error).split())})"}
    return facts | {"declared": dict(declared)}


def _the_engine(source: str) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "protocols": ["h1", "h2", "h3"],
        "source": source,
        "proxy": False,
        "version": None,
        "reason": None,
        "declared": {},
    }
    try:
        versions = engine_versions(find_engine())
    except TrifectaError as error:
        return facts | {"reason": str(error)}
    facts["version"] = versions.engine
    libraries = {
        name: version for name, version in plain(versions).items() if isinstance(version, str) and name != "engine"
    }
    return facts | {
        "declared": {
            "congestion_control": "as asked",
            "libraries": libraries,
            "tls_library": "rustls",
            "quic_library": quinn.LIBRARY,
            "quic_adaptations": dict(quinn.ADAPTATIONS),
        }
    }


def _implementation(kind: Kind, name: str, table: Table[Any], answer: CallOutcome) -> Implementation:
    package = table.package(name) if name in table else BUILT_IN
    get = f"trifecta get {name}" if name in RECIPES or name not in table else None
    if answer.problem is not None:
        return Implementation(kind, name, False, None, (), "", package, answer.problem, get)
    facts = answer.value
    return Implementation(
        kind=kind,
        name=name,
        found=facts["reason"] is None,
        version=facts["version"],
        protocols=tuple(facts["protocols"]),
        source=facts["source"],
        package=package,
        reason=facts["reason"],
        get=get,
        proxy=facts["proxy"],
        declared=facts["declared"],
    )
