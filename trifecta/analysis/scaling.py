"""Along a factor: cells that differ in one ordered number, and between which of its levels a verdict changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trifecta.design.factors import WORKLOAD_FIELDS
from trifecta.design.quantity import QuantityError

ORDERED = ("clients", "in_flight", "connections", "streams", "rate", "depth", "hosts", "request", "response")
"""Factors whose levels are numbers that a reader may think along, the number at once first."""


@dataclass(frozen=True)
class Step:
    """A level of an axis: its number, as it is written, and the cell that has it."""

    value: float
    text: str
    cell: str


@dataclass(frozen=True)
class Axis:
    """A factor in one place, a combination of all other factors, with at least two levels in rising order."""

    factor: str
    place: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Turn:
    """The verdict changes between two levels, given by place in their order; those between them are undecided."""

    before: int
    after: int


def number_of(factor: str, text: str) -> float | None:
    """The number that a level stands for, in its field's unit (octets, per second); None when it is none."""
    field = WORKLOAD_FIELDS.get(factor)
    try:
        value = text if field is None else field.parse(text)
        return None if isinstance(value, bool) else float(value)
    except (QuantityError, TypeError, ValueError):
        return None


def place_without(levels: Mapping[str, str], *factors: str) -> str:
    """A cell's key without these factors."""
    return ",".join(f"{name}={level}" for name, level in levels.items() if name not in factors)


def axes(cells: Mapping[str, Mapping[str, str]]) -> list[Axis]:
    """Every axis among the cells, given with their levels."""
    found_axes = []
    for factor in ORDERED:
        places: dict[str, list[Step]] = {}
        for cell, levels in cells.items():
            number = number_of(factor, levels[factor]) if factor in levels else None
            if number is not None:
                step = Step(number, levels[factor], cell)
                places.setdefault(place_without(levels, factor), []).append(step)
        for place, steps in places.items():
            ordered = tuple(sorted(steps, key=lambda step: step.value))
            if len({step.value for step in ordered}) > 1:
                found_axes.append(Axis(factor, place, ordered))
    return found_axes


def verdict_changes(kinds: Sequence[str]) -> list[Turn]:
    """Where the verdict changes along an axis; *undecided* is no verdict, so it only widens what lies between."""
    found_turns = []
    last: int | None = None
    for here, kind in enumerate(kinds):
        if kind == "undecided":
            continue
        if last is not None and kinds[last] != kind:
            found_turns.append(Turn(last, here))
        last = here
    return found_turns
