"""Hosts of a study: on which machines its roles run. It names places; who starts programs there is not its affair."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from typing import Any

from trifecta.contract.values import JsonValue
from trifecta.design import plan
from trifecta.design.document import Document, Section, parse_text
from trifecta.design.errors import UserError
from trifecta.design.graph import Graph
from trifecta.design.impairments import ReadTrace, no_trace_files
from trifecta.design.machine import HERE, WRITTEN, Machine, parse_machine
from trifecta.design.model import PathSpec, RequestsWorkload, ServicesWorkload, Study
from trifecta.design.paths import Canonical, read_path
from trifecta.design.quantity import QuantityError
from trifecta.design.services import LETTERS

CLIENT = "client"
ROLES = (CLIENT, "server")
"""Of a client and a server; those of services are the client's, and the name of each service behind it."""
DIRECT = "direct"
"""The only path between hosts: the network as it is."""
_SERVICE = re.compile(r"[A-Z][A-Z0-9-]{0,15}")
_OF_A_LAB = {"impaired": "all", "conntrack": "off"}  # fields of services that ask something of a lab, when they do not


def read_hosts(root: Section, workload: RequestsWorkload) -> dict[str, Machine]:
    """The machines by role; empty where a study has none. UserError for the first fault."""
    if "hosts" not in root:
        return {}
    section = root.section("hosts")
    if workload.family not in ("requests", "services"):
        text = f"the workload {workload.kind!r} does not run on hosts, only requests and services do"
        raise section.error(None, f"{text}; leave the hosts out")
    roles = _roles_of_services(root, workload) if isinstance(workload, ServicesWorkload) else ROLES
    section.allow(*roles)
    found = {}
    for role in roles:
        if role in section:
            found[role] = _read_machine(section, role)
        elif role in ROLES:  # which services there are, the factors say, too: `refuse_unplaced`
            raise _unnamed(section, role)
    if all(machine.is_here for machine in found.values()):
        every = "both" if roles is ROLES else "all"
        raise section.error(None, f"are {every} {HERE}, where a lab has a network of its own; leave the hosts out")
    return found


def _unnamed(section: Section, role: str) -> UserError:
    text = f"name no {role}; add '{role}: ssh://HOST', or '{role}: {HERE}' for this machine"
    return section.error(None, text)


def _roles_of_services(root: Section, workload: ServicesWorkload) -> Sequence[str]:
    """All that a study of services may place: of a chain as many as there can be, its depth may be a factor."""
    where = "factors" if "hosts" in root.section("factors") else "workload"
    if where == "factors" or workload.hosts != 1:
        text = "is a number of hosts in a lab, and this study names its hosts; leave the number out"
        raise root.section(where).error("hosts", text)
    behind = LETTERS[1:] if workload.kind == "chain" else workload.graph.services[1:]
    return (CLIENT, *behind)


def role_of(graph: Graph, service: str) -> str:
    """The role of a service in ``hosts``: its name, or the client's."""
    return CLIENT if service == graph.client else service


def refuse_unplaced(root: Section, study: Study) -> None:
    """UserError unless every service of the cells has a host, and every host a service, and none asks for a lab."""
    if not study.hosts or not isinstance(study.workload, ServicesWorkload):
        return
    section = root.section("hosts")
    needed: dict[str, None] = {}
    for one in plan.treatments(study):
        workload = plan.workload_of(ServicesWorkload, study, one)
        graph = workload.graph
        needed |= dict.fromkeys(role_of(graph, service) for service in graph.services)
        for name, usual in _OF_A_LAB.items():
            if getattr(workload, name) != usual:
                where = root.section("factors" if name in study.factors else "workload")
                raise where.error(name, "is made by a lab on one machine, and hosts are as they are; leave it out")
    for role in needed:
        if role not in study.hosts:
            raise _unnamed(section, role)
    for role in study.hosts:
        if role not in needed:
            raise section.error(role, f"no cell has a service {role}; remove it, or give the chain that depth")


def written(hosts: Mapping[str, Machine]) -> dict[str, JsonValue]:
    """Hosts in the canonical form of a study; nothing without, so that older studies keep their identity."""
    return {"hosts": {role: machine.as_data() for role, machine in hosts.items()}} if hosts else {}


def _read_machine(section: Section, role: str) -> Machine:
    if not isinstance(section.raw(role), dict):
        return section.parse(role, parse_machine, Machine(HERE))
    own = section.section(role)
    own.allow("at", "address")
    if "at" not in own:
        raise own.error("at", f"is missing; {WRITTEN}")
    return Machine(own.parse("at", parse_machine, Machine(HERE)).at, own.parse("address", _parse_address, None))


def _parse_address(value: Any) -> str:
    text = parse_text(value)
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise QuantityError(f"{text!r} is not an IP address; give one like 192.0.2.1 or 2001:db8::1") from None


def asked_by_option(document: Document) -> str | None:
    """The option that named a host; None where the study's file names them, or there are none."""
    return next((option for place, option in document.options.items() if place[:1] == ("hosts",)), None)


def read_direct(
    root: Section, read_trace: ReadTrace = no_trace_files
) -> tuple[dict[str, PathSpec], dict[str, Canonical]]:
    """The only path between hosts, with the length of its trials where it has one, and its canonical form.

    UserError for another path in a file that names hosts itself; a study that an option gives them leaves its own out.
    """
    section = root.section("paths")
    others = [name for name in section.mapping if name != DIRECT]
    if others and asked_by_option(root.document) is None:
        text = f"hosts have the network between them as it is, the path {DIRECT!r}; remove this path, or the hosts"
        raise section.error(others[0], text)
    own = section.section(DIRECT)
    own.allow("trial")
    spec, canonical = read_path(DIRECT, own, read_trace)
    return {DIRECT: PathSpec(name=DIRECT, trial=spec.trial, as_is=True)}, {DIRECT: canonical}


def choose_direct(document: Document) -> None:
    """Where an option names hosts, cells have the path between them, and services not the number of hosts of a lab.

    A path or a number that another option names is refused later.
    """
    option, place = asked_by_option(document), ("factors", "path")
    if option is not None:
        for name in ("workload", "factors"):
            fields = document.tree.get(name)
            if isinstance(fields, dict) and (name, "hosts") not in document.options:
                fields.pop("hosts", None)
    factors = document.tree.get("factors")
    if option is None or place in document.options or not isinstance(factors, dict) or "path" not in factors:
        return
    factors["path"] = [DIRECT]
    for known in [one for one in document.lines if one[:2] == place]:
        del document.lines[known]
    document.options[place] = option


def parse_host_option(text: str) -> tuple[str, str]:
    """``ROLE=PLACE`` of ``--host`` as role and place; UserError with the remedy.

    Whether the study has a service of that name is seen when it is read.
    """
    role, equals, place = (part.strip() for part in text.partition("="))
    if not equals or not place or not (role in ROLES or _SERVICE.fullmatch(role)):
        services = "; of services client=ssh://HOST, B=ssh://HOST and so on"
        raise UserError(f"option --host {text}: write client=ssh://HOST or server=ssh://HOST{services}")
    return role, place
