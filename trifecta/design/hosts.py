"""Hosts of a study: on which machines its roles run. It names places; who starts programs there is not its affair."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from trifecta.contract.values import JsonValue
from trifecta.design.document import Document, Section, parse_text
from trifecta.design.errors import UserError
from trifecta.design.impairments import ReadTrace, no_trace_files
from trifecta.design.machine import HERE, WRITTEN, Machine, parse_machine
from trifecta.design.model import PathSpec, RequestsWorkload
from trifecta.design.paths import Canonical, read_path
from trifecta.design.quantity import QuantityError

ROLES = ("client", "server")
DIRECT = "direct"
"""The only path between hosts: the network as it is."""
_FAMILY = "requests"  # of the workloads that can run on hosts


def read_hosts(root: Section, workload: RequestsWorkload) -> dict[str, Machine]:
    """The machines by role; empty where a study has none. UserError for the first fault."""
    if "hosts" not in root:
        return {}
    section = root.section("hosts")
    section.allow(*ROLES)
    if workload.family != _FAMILY:
        text = f"the workload {workload.kind!r} does not run on hosts, only 'requests' does; leave the hosts out"
        if workload.family == "far":
            text += ", and give the places it is asked from as levels of the factor 'vantage'"
        raise section.error(None, text)
    found = {}
    for role in ROLES:
        if role not in section:
            raise section.error(None, f"name no {role}; add '{role}: ssh://HOST', or '{role}: {HERE}' for this machine")
        found[role] = _read_machine(section, role)
    if all(machine.is_here for machine in found.values()):
        raise section.error(None, f"are both {HERE}, where a lab has a network of its own; leave the hosts out")
    return found


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
    """Where an option names hosts, cells have the path between them; one that another option names is refused later."""
    option, place = asked_by_option(document), ("factors", "path")
    factors = document.tree.get("factors")
    if option is None or place in document.options or not isinstance(factors, dict) or "path" not in factors:
        return
    factors["path"] = [DIRECT]
    for known in [one for one in document.lines if one[:2] == place]:
        del document.lines[known]
    document.options[place] = option


def parse_host_option(text: str) -> tuple[str, str]:
    """``ROLE=PLACE`` of ``--host`` as role and place; UserError with the remedy."""
    role, equals, place = (part.strip() for part in text.partition("="))
    if not equals or role not in ROLES or not place:
        raise UserError(f"option --host {text}: write client=ssh://HOST or server=ssh://HOST")
    return role, place
