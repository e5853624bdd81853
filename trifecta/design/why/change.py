"""What is done to a cell to remove causes from it, and which arms meet something of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trifecta.contract.values import JsonValue
from trifecta.design import quinn
from trifecta.design.transports import APART, over
from trifecta.design.tuning import SWITCHES

_OVER: Mapping[str, frozenset[str]] = {
    **{one.name: frozenset(one.set_by) for one in SWITCHES.values()},
    "quinn": frozenset({"h3"}),
    "tcp_nodelay": frozenset({"h1", "h2"}),
}
"""The protocols that have something to set, where it is not all of them."""


@dataclass(frozen=True)
class Change:
    """What is done to a cell: levels of factors, and fields of its path (None: left out)."""

    levels: tuple[tuple[str, str], ...] = ()
    path: tuple[tuple[str, JsonValue], ...] = ()

    def beside(self, other: Change, library: str) -> Change | None:
        """Both changes; None where they give one field two values. ``library``: how the cell has quinn-proto adapted,
        in which each of them switches its own.
        """
        levels, path = dict(self.levels), dict(self.path)
        for name, level in other.levels:
            there = levels.setdefault(name, level)
            if name == "quinn":
                levels[name] = quinn.combine(library, there, level)
            elif there != level:
                return None
        if any(path.get(name, value) != value for name, value in other.path):
            return None
        return Change(tuple(levels.items()), tuple((path | dict(other.path)).items()))


def compatible(changes: Mapping[str, Change], ids: Sequence[str], library: str) -> Change | None:
    """What removes all of these causes together; None where two of them set one field otherwise."""
    change: Change | None = Change()
    for one in ids:
        change = None if change is None else change.beside(changes[one], library)
    return change


def is_met(name: str, own: str, level: str, protocol: str) -> bool:
    """Whether a protocol meets a change of a field from its ``own`` level to another."""
    if protocol not in _OVER.get(name, (protocol,)):
        return False
    return over(own, protocol) != over(level, protocol) if name in APART else own != level
