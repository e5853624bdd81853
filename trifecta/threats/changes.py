"""Changes of a study's document that several threats need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from trifecta.design.any_level import ANY
from trifecta.design.document import Document
from trifecta.design.errors import UserError
from trifecta.design.services import SERVER_LEVEL

Node: TypeAlias = "str | int | float | bool | list[Node] | dict[str, Node] | None"
"""A part of a study as written (`design.document.Document.tree`)."""
Tree: TypeAlias = "dict[str, Node]"
SERVICES = ("chain", "fan-in", "sba-registration")  # workloads of services that call each other
GO_SERVICES = "go-services"  # services with the switches that the engine's own have not
GO_SERVICES_2019 = "go-services-2019"


def mappings(value: Node) -> Iterator[Tree]:
    """The mapping itself, or its halves where it is written by direction."""
    if isinstance(value, dict):
        halves = [half for name in ("forward", "backward") if isinstance(half := value.get(name), dict)]
        yield from halves or [value]


def paths(document: Document) -> Iterator[Tree]:
    """The paths of a study."""
    section = document.tree.get("paths")
    yield from (path for path in (section.values() if isinstance(section, dict) else ()) if isinstance(path, dict))


def kind(document: Document) -> str:
    """The kind of the study's workload."""
    workload = document.tree.get("workload")
    return str(workload.get("kind", "requests")) if isinstance(workload, dict) else "requests"


def workload(document: Document) -> Tree:
    """The workload of a study, made where it has none."""
    return _section(document, "workload")


def factors(document: Document) -> Tree:
    """The factors of a study, made where it has none."""
    return _section(document, "factors")


def _section(document: Document, name: str) -> Tree:
    tree = document.tree.setdefault(name, {})
    if not isinstance(tree, dict):
        raise document.error((name,), "is a single value; write 'name: value' lines below it")
    return tree


def levels(document: Document, factor: str, usual: str) -> list[Node]:
    """The levels that a study lists of a factor, as they are written; ``usual`` where it lists none."""
    level = factors(document).get(factor, usual)
    return list(level) if isinstance(level, list) else [level]


def services_only(document: Document) -> None:
    """UserError where a study's programs are no services."""
    if kind(document) not in SERVICES:
        raise UserError(
            f"only services can do that, and this is the workload {kind(document)!r}; name a study of services, "
            "for example `trifecta run chain`"
        )


def in_a_lab(document: Document, what: str) -> None:
    """UserError where a study names its hosts: ``what`` is then as it is there, and no switch changes it."""
    if "hosts" in document.tree:
        raise UserError(f"this study names its hosts, and {what} can only be set in a lab; leave the hosts out")


def across_hosts(document: Document, what: str, otherwise: str) -> None:
    """UserError where all services share one host, for the reason ``otherwise``, or `in_a_lab` refuses ``what``."""
    in_a_lab(document, what)
    hosts = [workload(document).get("hosts", 1), *levels(document, "hosts", "1")]
    if all(str(number) == "1" for number in hosts):
        raise UserError(f"{otherwise}; set hosts: 2 or more")


def on_go(document: Document) -> None:
    """Services on Go take the place of the engine's, which cannot be switched; UserError where those are asked for."""
    services_only(document)
    given = levels(document, "server", SERVER_LEVEL)
    if SERVER_LEVEL not in given and ANY not in given:
        return
    decision = next((option for place, option in document.options.items() if place[:2] == ("factors", "server")), None)
    if decision is not None or ANY in given:
        who = decision or f"server: {ANY}"
        raise UserError(f"the engine's own services cannot do that, and {who} asks for them; set server={GO_SERVICES}")
    factors(document)["server"] = list(dict.fromkeys(GO_SERVICES if one == SERVER_LEVEL else one for one in given))


def put(document: Document, name: str, value: Node) -> None:
    """Set a field of the workload, which then is no factor; None leaves it out."""
    factors(document).pop(name, None)
    if value is None:
        workload(document).pop(name, None)
    else:
        workload(document)[name] = value


def of_go_services(name: str, value: Node = None) -> Callable[[Document], None]:
    """A change of a field that only services on Go have; without a value it is left out, as the engine's have it."""

    def change(document: Document) -> None:
        if value is None:
            services_only(document)
        else:
            on_go(document)
        put(document, name, value)

    change.__doc__ = f"{name}=none" if value is None else f"server={GO_SERVICES}; {name}={_word(value)}"
    return change


def set_jitter(field: str, value: Node) -> Callable[[Document], None]:
    """A change of a field of every jitter of the study's paths."""

    def change(document: Document) -> None:
        jitters = [jitter for path in paths(document) for jitter in mappings(path.get("jitter"))]
        if not jitters:
            raise UserError("no path of this study has jitter; add it, for example --set paths.NAME.jitter.sigma=20ms")
        for jitter in jitters:
            jitter[field] = value

    change.__doc__ = f"Every jitter of the study's paths has {field}: {_word(value)}."
    return change


def _word(value: Node) -> str:
    """As it is written in a study file."""
    return str(value).lower() if isinstance(value, bool) else str(value)
