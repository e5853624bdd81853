"""Which questions two runs both ask, and what of them is not asked alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from trifecta.analysis.estimate import arm_pairs
from trifecta.conclude.two_runs.differences import Difference, Of
from trifecta.conclude.two_runs.side import Side, asked_of, path
from trifecta.design import numbers, plan
from trifecta.design.builds import adapter_of
from trifecta.design.metric import Metric
from trifecta.design.model import Cell, Study

SERVER = "server"
Key: TypeAlias = tuple[str, str, str]
"""Of a question in its run: cell, arm, reference."""
Place: TypeAlias = frozenset[tuple[str, str]]
"""The levels that make a cell, but for factors that only one of two studies has."""


@dataclass(frozen=True)
class Unmatched:
    """A question of one run that the other did not ask."""

    cell: str
    arm: str
    reference: str


def builds(first: Study, second: Study) -> dict[str, str]:
    """Servers of the first by what the second calls them: builds of one server, of which each has one that the other
    lacks. A server in another version answers the same question; which of several it was would be a guess.
    """
    levels = [[plan.level_text(level) for level in study.factors.get(SERVER, ())] for study in (first, second)]
    mine = _by_server(first, levels[0], levels[1])
    theirs = _by_server(second, levels[1], levels[0])
    return {
        own_levels[0]: theirs[server][0]
        for server, own_levels in mine.items()
        if len(own_levels) == 1 and len(theirs.get(server, ())) == 1
    }


def _by_server(study: Study, levels: Sequence[str], others: Sequence[str]) -> dict[str, list[str]]:
    """The levels that the other study lacks, by the server that they are builds of."""
    levels_by_adapter: dict[str, list[str]] = {}
    for level in levels:
        if level not in others:
            levels_by_adapter.setdefault(adapter_of(level, study.servers), []).append(level)
    return levels_by_adapter


def questions(
    first: Side, second: Side, builds: Mapping[str, str]
) -> tuple[list[tuple[Key, Key]], list[Unmatched], list[Unmatched]]:
    """The questions of both, as each calls them, and those of one only, in the order of its study."""
    here, there = _questions_of(first, second.study, builds), _questions_of(second, first.study, {})
    shared = [(key, there[name]) for name, key in here.items() if name in there]
    lone = [
        [Unmatched(*key) for name, key in one.items() if name not in other]
        for one, other in ((here, there), (there, here))
    ]
    return shared, lone[0], lone[1]


def _questions_of(side: Side, other: Study, builds: Mapping[str, str]) -> dict[tuple[Place, str, str], Key]:
    """The questions of a run by what they are about, servers by what ``builds`` calls them.

    A factor of one level distinguishes no cells, so the other study need not have it; that it was the same there is
    seen by what was asked (`asked_of`).
    """

    def called(factor: str, level: str) -> str:
        return builds.get(level, level) if factor == SERVER else level

    compare = side.study.compare
    compared_factors = {
        name for name, factor_levels in side.study.factors.items() if len(factor_levels) > 1 or name in other.factors
    }
    keys = {}
    for cell in side.cells:
        levels = {name: plan.level_text(level) for name, level in cell.levels.items() if name in compared_factors}
        place = frozenset((name, called(name, level)) for name, level in levels.items())
        for arm, reference in arm_pairs(side.study):
            keys[place, called(compare, arm), called(compare, reference)] = (cell.key, arm, reference)
    return keys


def hindrances(
    sides: tuple[Side, Side], metrics: tuple[Metric, Metric], pair: tuple[Key, Key], builds: Mapping[str, str]
) -> tuple[Difference, ...]:
    """What two runs do not ask alike in one question: each makes its ratios those of something else."""
    differences = []
    if metrics[0] != metrics[1]:
        differences.append(Difference("study", "metric", metrics[0].label, metrics[1].label))
    studies = sides[0].study, sides[1].study
    if studies[0].margin != studies[1].margin:
        margins = [numbers.percent(study.margin) for study in studies]
        differences.append(Difference("study", "margin", margins[0], margins[1]))
    cells = [next(one for one in side.cells if one.key == key[0]) for side, key in zip(sides, pair, strict=True)]
    for arms in zip(pair[0][1:], pair[1][1:], strict=True):
        differences += _asked_otherwise(studies, (cells[0], cells[1]), arms, builds)
    return tuple(dict.fromkeys(differences))


def _asked_otherwise(
    studies: tuple[Study, Study], cells: tuple[Cell, Cell], arms: tuple[str, str], builds: Mapping[str, str]
) -> Iterator[Difference]:
    first, second = (asked_of(*one) for one in zip(studies, cells, arms, strict=True))
    if first["kind"] != second["kind"]:  # which have other fields
        yield Difference("workload", "kind", first["kind"], second["kind"])
        return
    names = [_path_name(*one) for one in zip(cells, arms, studies, strict=True)]
    for name in dict.fromkeys([*first, *second]):
        one, other = first.get(name, "none"), second.get(name, "none")
        if one != other and not (name == SERVER and builds.get(one) == other):
            of: Of = "path" if name == "path" else "program" if name in (SERVER, "client") else "workload"
            yield Difference(of, names[0] if of == "path" else name, one, other)
    specs = [study.paths.get(name) for name, study in zip(names, studies, strict=True)]
    done = [None if one is None else (one.forward, one.backward, one.frames, one.emulator) for one in specs]
    if done[0] != done[1] and path(specs[0]) == path(specs[1]):
        yield Difference("path", names[0], path(specs[0]), "the same in short, not in its details (study.yaml)")


def _path_name(cell: Cell, arm: str, study: Study) -> str:
    return str(plan.treatment(study, cell, arm).levels.get("path", ""))
