"""Hosts of a study: on which machines its roles run. It names places; who starts programs there is not its affair."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Any

from trifecta.contract.values import JsonValue
from trifecta.design import plan
from trifecta.design.document import Document, Section, parse_text
from trifecta.design.errors import UserError
from trifecta.design.graph import Graph
from trifecta.design.impairments import ReadTrace, no_trace_files
from trifecta.design.machine import CLIENT, HERE, MIDDLE, ROLES, WRITTEN, Machine, parse_device, parse_machine
from trifecta.design.model import PathSpec, RequestsWorkload, Study
from trifecta.design.paths import Canonical, read_path
from trifecta.design.quantity import QuantityError

DIRECT = "direct"
"""The only path between hosts without a middle one: the network as it is."""
_SERVICE = re.compile(r"[A-Z][A-Z0-9-]{0,15}")


def read_hosts(root: Section, workload: RequestsWorkload) -> dict[str, Machine]:
    """The machines by role; empty where a study has none. UserError for the first fault.

    Who needs one, the factors say, too: `refuse_unplaced`.
    """
    if "hosts" not in root:
        return {}
    section = root.section("hosts")
    if workload.family not in ("requests", "services"):
        text = f"the workload {workload.kind!r} does not run on hosts, only requests and services do"
        text += "; leave the hosts out"
        if workload.family == "far":
            text += ", and give the places it is asked from as levels of the factor 'vantage'"
        raise section.error(None, text)
    section.allow(*workload.placeable)
    if CLIENT not in section:
        raise _unnamed(section, CLIENT)
    ends = [role for role in workload.placeable if role in section and role != MIDDLE]
    machines = {role: _read_machine(section, role) for role in ends}
    return machines | ({MIDDLE: _read_middle(section, machines)} if MIDDLE in section else {})


def refuse_unplaced(root: Section, study: Study) -> None:
    """UserError unless every role of the cells has a host, every host a role, and none asks for what a lab has."""
    if not study.hosts:
        return
    section = root.section("hosts")
    needed: dict[str, None] = {}
    for one in plan.treatments(study):
        workload = plan.workload_for(study, one)
        needed |= dict.fromkeys(workload.placed)
        if (problem := workload.hosts_problem()) is not None:
            field, text = problem
            raise root.section("factors" if field in study.factors else "workload").error(field, text)
    ends = {role: machine for role, machine in study.hosts.items() if role != MIDDLE}
    for role in needed:
        if role not in ends:
            raise _unnamed(section, role)
    for role in ends:
        if role not in needed:
            raise section.error(role, f"no cell has a service {role}; remove it, or give the chain that depth")
    if all(machine.is_here for machine in ends.values()):
        every = "both" if len(ends) == len(ROLES) else "all"
        raise section.error(None, f"are {every} {HERE}, where a lab has a network of its own; leave the hosts out")


def _unnamed(section: Section, role: str) -> UserError:
    text = f"name no {role}; add '{role}: ssh://HOST', or '{role}: {HERE}' for this machine"
    return section.error(None, text)


def role_of(graph: Graph, service: str) -> str:
    """The role of a service in ``hosts``: its name, or the client's."""
    return CLIENT if service == graph.client else service


def hosts_document(hosts: Mapping[str, Machine]) -> dict[str, JsonValue]:
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


def _read_middle(section: Section, ends: Mapping[str, Machine]) -> Machine:
    """The host with the emulator, which is neither of the others, and its two devices."""
    if not isinstance(section.raw(MIDDLE), dict):
        text = "has no devices; write {at: ssh://HOST, devices: [eth1, eth2]}, the one towards the client first"
        raise section.error(MIDDLE, text)
    own = section.section(MIDDLE)
    own.allow("at", "devices")
    if "at" not in own:
        raise own.error("at", f"is missing; {WRITTEN}")
    at = own.parse("at", parse_machine, Machine(HERE)).at
    for role, end in ends.items():
        if end.at == at:
            text = f"is the host of the {role}, whose own packets no device of it receives; name one between the two"
            raise own.error("at", text)
    devices = [own.parse_value(place, item, parse_device) for place, item in own.items("devices")]
    if len({*devices}) != 2 or len(devices) != 2:
        raise own.error("devices", "name two: the device towards the client, then that towards the server")
    return Machine(at, devices=(devices[0], devices[1]))


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
        text = (
            f"hosts have the network between them as it is, the path {DIRECT!r}; "
            f"add a host {MIDDLE!r} that makes it, or remove this path"
        )
        raise section.error(others[0], text)
    own = section.section(DIRECT)
    own.allow("trial")
    spec, canonical = read_path(DIRECT, own, read_trace)
    return {DIRECT: PathSpec(name=DIRECT, trial=spec.trial, as_is=True)}, {DIRECT: canonical}


def choose_direct(document: Document) -> None:
    """Where an option names hosts, cells have the path between them, and services not the number of hosts of a lab.

    A path or a number that another option names is refused later. With a host in the middle there is no such path.
    """
    option, place = asked_by_option(document), ("factors", "path")
    if option is not None:
        for name in ("workload", "factors"):
            fields = document.tree.get(name)
            if isinstance(fields, dict) and (name, "hosts") not in document.options:
                fields.pop("hosts", None)
    hosts, factors = document.tree.get("hosts"), document.tree.get("factors")
    if isinstance(hosts, dict) and MIDDLE in hosts:
        return
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
