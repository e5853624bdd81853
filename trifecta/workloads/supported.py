"""Which cells of a study can run here, and why the others cannot: the questions of its workload, asked in turn."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from trifecta.contract.run import InstalledProgram, LeftOut
from trifecta.design import plan
from trifecta.design.errors import CannotError, UserError
from trifecta.design.factors import CLIENT_FACTOR, DEFAULT_CLIENT
from trifecta.design.model import PROTOCOL_FACTOR, Cell, Study, Treatment
from trifecta.implementations.browser import BrowserAdapter
from trifecta.implementations.client import ClientAdapter
from trifecta.implementations.isolated import call_apart
from trifecta.implementations.server import ServerAdapter, Unsupported
from trifecta.implementations.services.program import ServicesProgram
from trifecta.implementations.survey import FIND_TIMEOUT_S
from trifecta.lab.conntrack import find_nft

Adapter = TypeVar("Adapter", ServerAdapter, ClientAdapter, BrowserAdapter, ServicesProgram)
Client = TypeVar("Client", ClientAdapter, BrowserAdapter)


@dataclass(frozen=True)
class Supported:
    """What of a study can run here, and what cannot, with the reason for each."""

    cells: list[Cell]
    servers: dict[str, InstalledProgram]
    clients: dict[str, InstalledProgram]
    """Other clients than the engine's own."""
    left_out: list[LeftOut] = field(default_factory=list)
    """``factor``, ``level`` (with the cells meant, where not all of it are left out), ``reason``."""


@dataclass(frozen=True)
class Refusal:
    """What of a study cannot be, why, and the cells that go with it; without a reason it was said before."""

    cells: Collection[Cell]
    factor: str = ""
    level: str = ""
    reason: str = ""


Question = Callable[[Study, Sequence[Cell]], Iterable[Refusal]]
"""What cannot be of the cells that are left."""


@dataclass(frozen=True)
class SupportedPrograms:
    """The programs of a study that are here, and what was left out while they were looked for."""

    servers: dict[str, InstalledProgram]
    clients: dict[str, InstalledProgram]
    left_out: list[LeftOut]


def supported(
    study: Study, programs: SupportedPrograms, questions: Iterable[Question], nothing: Callable[[Sequence[str]], str]
) -> Supported:
    """The cells that no question refuses; CannotError when none is left, as ``nothing`` words the reasons."""
    left_out = list(programs.left_out)
    cells = plan.cells(study)
    for question in questions:
        refused: set[str] = set()
        for refusal in question(study, cells):
            refused.update(cell.key for cell in refusal.cells)
            item: LeftOut = {"factor": refusal.factor, "level": refusal.level, "reason": refusal.reason}
            if refusal.reason and item not in left_out:
                left_out.append(item)
        cells = [cell for cell in cells if cell.key not in refused]
    if not cells:
        raise CannotError(nothing([item["reason"] for item in left_out]))
    used = plan.treatments(study, cells)
    return Supported(
        cells,
        _of(programs.servers, (one.server for one in used)),
        _of(programs.clients, (one.client for one in used)),
        left_out,
    )


def _of(programs: Mapping[str, InstalledProgram], names: Iterable[str]) -> dict[str, InstalledProgram]:
    used = set(names)
    return {name: facts for name, facts in programs.items() if name in used}


def known_here(factor: str, levels: Iterable[object], adapters: Mapping[str, Adapter], *own: str) -> dict[str, Adapter]:
    """The adapters of these levels but for ``own``, which needs none; UserError for a level that has none."""
    names = [str(level) for level in levels if level not in own]
    for name in names:
        if name not in adapters:
            raise UserError(f"unknown {factor} {name!r}; known: {', '.join(sorted([*own, *adapters]))}")
    return {name: adapters[name] for name in names}


def found_here(factor: str, adapters: Mapping[str, Adapter], left_out: list[LeftOut]) -> dict[str, InstalledProgram]:
    """Those that are found, each asked in a process of its own: one that hangs or crashes is as good as missing."""
    programs: dict[str, InstalledProgram] = {}
    calls = {name: partial(_ask, adapter) for name, adapter in adapters.items()}
    for name, answer in call_apart(calls, timeout_s=FIND_TIMEOUT_S).items():
        if answer.problem is not None:
            left_out.append(
                {"factor": factor, "level": name, "reason": f"{name} cannot be looked for: {answer.problem}"}
            )
        elif "reason" in answer.value:
            left_out.append({"factor": factor, "level": name, "reason": answer.value["reason"]})
        else:
            programs[name] = answer.value
    return programs


def _ask(adapter: ServerAdapter | ClientAdapter | BrowserAdapter | ServicesProgram) -> dict[str, Any]:
    """Runs apart: all of it is the adapter's."""
    try:
        facts: dict[str, Any] = {"version": adapter.find(), "source": adapter.source}
    except Unsupported as error:
        return {"reason": str(error)}
    if not isinstance(adapter, ServerAdapter):
        return facts | {"declared": dict(adapter.declared())}
    identity = adapter.identity()
    return facts if identity is None else facts | {"sha256": identity}


def refused_servers(adapters: Mapping[str, ServerAdapter]) -> Question:
    """Cells whose servers are not found, do not speak a protocol of the cell or cannot answer the work of their cells.

    A cell needs all its arms: where servers are compared, one that is missing leaves nothing to compare it with.
    """

    def question(study: Study, cells: Sequence[Cell]) -> Iterator[Refusal]:
        used = {cell.key: [one.server for one in plan.treatments_of(study, cell)] for cell in cells}
        yield Refusal([cell for cell in cells if any(name not in adapters for name in used[cell.key])])
        for name, adapter in adapters.items():
            yield from _refused(study, adapter, name, [cell for cell in cells if name in used[cell.key]])

    return question


def _refused(study: Study, adapter: ServerAdapter, name: str, own: Sequence[Cell]) -> Iterator[Refusal]:
    refused: dict[str, list[Cell]] = {}
    for cell in own:
        mine = [one for one in plan.treatments_of(study, cell) if one.server == name]
        missing = [one.protocol for one in mine if one.protocol not in adapter.protocols]
        silent = f"{name} does not speak {', '.join(dict.fromkeys(missing))}" if missing else None
        if why := silent or _unanswerable(study, adapter, mine):
            refused.setdefault(why, []).append(cell)
    for why, without in refused.items():
        yield Refusal(without, "server", f"{name}{cells_in_words(without, own)}", why)


def _unanswerable(study: Study, adapter: ServerAdapter, own: Sequence[Treatment]) -> str | None:
    """Why a server cannot answer the work of its treatments; None when it can."""
    try:
        for one in own:
            workload = plan.workload_for(study, one).sized_for(one.protocol)
            if not adapter.has_timeouts and (workload.read_timeout_ns or workload.write_timeout_ns):
                text = f"{adapter.name} supports no read or write timeout; use server: caddy, nginx or haproxy"
                raise Unsupported(text)
            if workload.key_exchange in adapter.refused_key_exchanges:
                raise Unsupported(
                    f"{adapter.name} does not accept the key exchange {workload.key_exchange}; use X25519"
                )
            if not adapter.stands_alone and workload.place not in (None, "native"):
                text = f"what {adapter.name} needs in a container is unknown; use server: origin or nginx"
                raise Unsupported(text)
            adapter.check_workload(workload)
    except Unsupported as error:
        return str(error)
    return None


def refused_clients(
    adapters: Mapping[str, Client], refusal: Callable[[Study, Treatment, Client], str | None]
) -> Question:
    """Cells whose clients are not found, or refuse their work with an arm.

    A client may be able to do some cells and not others (reused connections but not new ones): those it can do stay.
    """

    def question(study: Study, cells: Sequence[Cell]) -> Iterator[Refusal]:
        refused: dict[tuple[str, str], list[Cell]] = {}
        for cell in cells:
            others = [one for one in plan.treatments_of(study, cell) if one.client != DEFAULT_CLIENT]
            if any(one.client not in adapters for one in others):
                yield Refusal([cell])
                continue
            known = [(one.client, why) for one in others if (why := refusal(study, one, adapters[one.client]))]
            for found in dict.fromkeys(known[:1] if study.compare == PROTOCOL_FACTOR else known):
                refused.setdefault(found, []).append(cell)
        for (name, reason), without in refused.items():
            own = [cell for cell in cells if any(one.client == name for one in plan.treatments_of(study, cell))]
            yield Refusal(without, CLIENT_FACTOR, f"{name}{cells_in_words(without, own)}", reason)

    return question


def cells_in_words(without: Collection[Cell], own: Collection[Cell]) -> str:
    """Which of its own cells are meant, in words: nothing when it is all, a level when it is all of that level."""
    if len(without) == len(own):
        return ""
    keys = {cell.key for cell in without}
    for factor in next(iter(own)).levels:
        levels = dict.fromkeys(cell.levels[factor] for cell in without)
        if {cell.key for cell in own if cell.levels[factor] in levels} == keys:
            return f" with {factor} {', '.join(plan.level_text(level) for level in levels)}"
    return f" in {', '.join(sorted(keys))}"


def without_needs(study: Study, cells: Sequence[Cell]) -> Iterator[Refusal]:
    """Cells that need what is not here: containers, a table of connections, or the translation of addresses."""
    reasons: dict[tuple[str, str], str | None] = {}
    for cell in cells:
        for one in plan.treatments_of(study, cell):
            for factor, level in plan.workload_for(study, one).needs:
                if (factor, level) not in reasons:
                    reasons[factor, level] = why_not(level) if factor == "place" else why_no_rules(level)
                if (reason := reasons[factor, level]) is not None:
                    yield Refusal([cell], factor, level, reason)


def why_no_rules(requested: str) -> str | None:
    """Why connections cannot be tracked, or addresses translated, here as asked; None when they can."""
    try:
        if requested != "off":
            find_nft()
    except CannotError as error:
        return str(error)
    return None


def why_not(place: str) -> str | None:
    """Why programs cannot run in a place here; None when they can."""
    if place == "native":
        return None
    from trifecta.lab.containers import docker_state

    state = docker_state("host" if place == "docker-host" else "bridge")
    return None if state.usable else f"{state.reason}; {state.remedy}"
