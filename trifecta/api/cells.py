"""Which cell of a run is meant, by its levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from trifecta.conclude.comparisons import levels
from trifecta.contract.values import Level
from trifecta.design.document import did_you_mean
from trifecta.design.errors import UserError
from trifecta.design.model import PROTOCOL_NAMES
from trifecta.design.plan import level_text

_MOST = 4
_PROTOCOLS = {name: level for level, name in PROTOCOL_NAMES.items()}


def arm_of(text: str | None) -> str | None:
    """An arm as the tables name it: ``h3`` of ``HTTP/3``, any other as it is."""
    return text if text is None else _PROTOCOLS.get(text, text)


def fitting(path: Path, known: Sequence[str], wanted: Mapping[str, Level], cell: str | None = None) -> list[str]:
    """The cells among those known (or ``cell``) with these levels; UserError where none has them, and what there is."""
    if cell is not None and cell not in known:
        raise UserError(f"{path}: no cell {cell!r}; {did_you_mean(cell, known)}")
    cells_left = list(known) if cell is None else [cell]
    for factor, level in wanted.items():
        there = dict.fromkeys(levels(each).get(factor) for each in known)
        if set(there) <= {None}:
            factors = dict.fromkeys(name for each in known for name in levels(each))
            raise UserError(f"{path}: no factor {factor!r} in its cells; {did_you_mean(factor, factors)}")
        text = level_text(level)
        if text not in there:
            choices = [one for one in there if one is not None]
            raise UserError(f"{path}: no cell has {factor}={text}; {did_you_mean(text, choices)}")
        cells_left = [each for each in cells_left if levels(each).get(factor) == text]
    if not cells_left:
        raise UserError(f"{path}: no cell has {_levels_in_words(wanted)} together; its cells are {_listed(known)}")
    return cells_left


def one(path: Path, known: Sequence[str], wanted: Mapping[str, Level], cell: str | None = None) -> str:
    """The only cell that has these levels; UserError where several have, naming what distinguishes them."""
    if not known:
        raise UserError(f"{path}: has no cell with a trial yet; open it again later")
    cells_left = fitting(path, known, wanted, cell)
    if len(cells_left) > 1:
        first, second = levels(cells_left[0]), levels(cells_left[1])
        apart = [f"{name}={first[name]!r} or {second[name]!r}" for name in first if first[name] != second.get(name)]
        raise UserError(f"{path}: {len(cells_left)} cells fit, {_listed(cells_left)}; add {', '.join(apart)}")
    return cells_left[0]


def _levels_in_words(wanted: Mapping[str, Level]) -> str:
    return ", ".join(f"{name}={level_text(level)}" for name, level in wanted.items())


def _listed(cells: Sequence[str]) -> str:
    more = len(cells) - _MOST
    return "; ".join(cells[:_MOST]) + (f" and {more} more" if more > 0 else "")
