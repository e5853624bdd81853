"""Changes of a study's document that several threats need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from trifecta.design.document import Document
from trifecta.design.errors import UserError

Node: TypeAlias = "str | int | float | bool | list[Node] | dict[str, Node] | None"
"""A part of a study as written (`design.document.Document.tree`)."""
Tree: TypeAlias = "dict[str, Node]"
SERVICES = ("chain", "fan-in", "sba-registration")  # workloads of services that call each other


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
    found = document.tree.setdefault("workload", {})
    if not isinstance(found, dict):
        raise document.error(("workload",), "is a single value; write 'name: value' lines below it")
    return found


def set_jitter(field: str, value: Node) -> Callable[[Document], None]:
    """A change of a field of every jitter of the study's paths."""

    words = str(value).lower() if isinstance(value, bool) else str(value)

    def change(document: Document) -> None:
        found = [jitter for path in paths(document) for jitter in mappings(path.get("jitter"))]
        if not found:
            raise UserError(
                "no path of this study has jitter; give one, for example --set paths.NAME.jitter.sigma=20ms"
            )
        for jitter in found:
            jitter[field] = value

    change.__doc__ = f"Every jitter of the study's paths has {field}: {words}."
    return change
