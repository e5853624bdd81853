"""A ladder: the conditions of a published claim, exchanged one thing at a time for those that are sound.

The lowest rung has the conditions as published, the highest those of today. Each step between them exchanges levels of
factors, or the metric by which a trial is read. A ladder is a file of ``trifecta/studies/ladders``; its measurement is
a study whose cells are its rungs (``cells``).
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trifecta.design import plan
from trifecta.design.document import Document
from trifecta.design.model import PROTOCOL_FACTOR, PROTOCOL_NAMES, Study
from trifecta.design.overrides import apply_overrides
from trifecta.design.resolve import resolve


@dataclass(frozen=True)
class Exchange:
    """One level of a factor for another, as they stand in a cell's key."""

    factor: str
    before: str
    after: str


@dataclass(frozen=True)
class Step:
    """What is exchanged between two rungs, and what the study says of it.

    ``source`` is where the study has the published condition; ``why`` says in one sentence what the exchange takes
    away. ``checks``: those that see the published condition in a trial, which counts all the same here.
    """

    id: str
    title: str
    exchanges: tuple[Exchange, ...]
    metric: tuple[str, str] | None
    source: str
    why: str
    threat: str = ""
    checks: tuple[str, ...] = ()

    @property
    def factors(self) -> frozenset[str]:
        """What it exchanges."""
        return frozenset(one.factor for one in self.exchanges) | (frozenset({"metric"}) if self.metric else frozenset())


@dataclass(frozen=True)
class Rung:
    """The levels of all factors that any step exchanges, and the metric by which trials are read."""

    levels: tuple[tuple[str, str], ...]
    metric: str

    @property
    def cell(self) -> str:
        """As ``cells`` of a study has it; empty where no step exchanges a level."""
        return ",".join(f"{name}={level}" for name, level in self.levels)


@dataclass(frozen=True)
class Ladder:
    """A ladder as its file has it. ``claim`` is a statement of ``trifecta/studies/published``."""

    id: str
    title: str
    claim: str
    arm: str
    to: str
    metric: str
    published: str
    lacks: tuple[str, ...]
    steps: tuple[Step, ...]
    bottom: tuple[tuple[str, str], ...]
    quick_rounds: int
    full_rounds: int
    quick: tuple[str, ...]
    file: str
    tree: Mapping[str, Any] = field(default_factory=dict, repr=False)
    lines: Mapping[tuple[str | int, ...], int] = field(default_factory=dict, repr=False)

    @property
    def study(self) -> str:
        """The published study."""
        return self.claim.partition(".")[0]

    def unapplied_steps(self, rung: Rung) -> list[Step]:
        """The steps whose published condition a rung still has."""

        def made(exchange: Exchange) -> bool:
            order = self._order(exchange.factor)
            return order.index(dict(rung.levels)[exchange.factor]) >= order.index(exchange.after)

        return [step for step in self.steps if not all(made(one) for one in step.exchanges)]

    def rungs(self) -> list[Rung]:
        """From the published conditions to today's: one more than steps."""
        return self._climb(self.steps)

    def _climb(self, steps: Sequence[Step]) -> list[Rung]:
        levels, metric = dict(self.bottom), self.metric
        rungs = [Rung(tuple(levels.items()), metric)]
        for step in steps:
            levels |= {one.factor: one.after for one in step.exchanges}
            metric = metric if step.metric is None else step.metric[1]
            rungs.append(Rung(tuple(levels.items()), metric))
        return rungs

    def other_order(self, first: int, second: int) -> tuple[Rung, Rung] | None:
        """Two rungs for steps ``first`` < ``second`` the other way round: with only the second of them exchanged at
        the place of the first, and all up to the second but the first. None where one needs the other.
        """
        between = self.steps[first + 1 : second + 1]
        if any(self.steps[first].factors & one.factors for one in between) or any(
            self.steps[second].factors & one.factors for one in self.steps[first:second]
        ):
            return None
        below = self.steps[:first]
        return (
            self._climb([*below, self.steps[second]])[-1],
            self._climb([*below, *between])[-1],
        )

    def measured_by(
        self,
        rungs: Sequence[Rung],
        *,
        rounds: int,
        seed: int,
        overrides: Sequence[str] = (),
        name: str = "",
    ) -> Study:
        """The study whose cells are these rungs, in their order, each once. UserError for a fault of the file."""
        document = Document(copy.deepcopy(dict(self.tree)), self.file, dict(self.lines))
        tree = document.tree
        apply_overrides(document, overrides)
        factors: dict[str, Any] = tree["factors"]
        for factor, _ in self.bottom:
            used = {dict(rung.levels)[factor] for rung in rungs}
            factors[factor] = sorted(used, key=self._order(factor).index)
        factors[PROTOCOL_FACTOR] = [PROTOCOL_NAMES[arm] for arm in PROTOCOL_NAMES if arm in (self.arm, self.to)]
        tree["study"] = name or self.id
        tree["title"] = self.title
        tree["baseline"] = PROTOCOL_NAMES[self.to]
        tree["cells"] = cells_of(rungs) if self.bottom else None
        # The ends are run twice a round (analysis/ladder_planner.py).
        tree["blocks"] = {"at_least": str(rounds), "at_most": str(rounds)}
        tree["seed"] = str(seed)
        tree.setdefault("conformance", "off")
        tree["give_up"] = "false"
        return resolve(document)

    def _order(self, factor: str) -> list[str]:
        first = dict(self.bottom)[factor]
        after = (one.after for step in self.steps for one in step.exchanges if one.factor == factor)
        return list(dict.fromkeys([first, *after]))


def cells_of(rungs: Sequence[Rung]) -> list[str]:
    """The cells of rungs, each once: rungs that differ in their metric alone have one."""
    return list(dict.fromkeys(rung.cell for rung in rungs))


def keys_of(study: Study, rungs: Sequence[Rung]) -> dict[str, str]:
    """By cell of the rungs the key that it has in the study made of them, whose cells are in the same order."""
    return dict(zip(cells_of(rungs), (cell.key for cell in plan.cells(study)), strict=True))


def pairs_of(ladder: Ladder) -> list[tuple[int, int]]:
    """The pairs of steps that can be in either order."""
    every = itertools.combinations(range(len(ladder.steps)), 2)
    return [pair for pair in every if ladder.other_order(*pair) is not None]


def ranked(sizes: Sequence[float | None], possible: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """These pairs of steps by their effects' magnitude, those of the largest two first; without those of no effect."""
    known = {pair: [abs(size) for one in pair if (size := sizes[one]) is not None] for pair in possible}
    sums = {pair: sum(both) for pair, both in known.items() if len(both) == 2}
    return sorted(sums, key=lambda pair: -sums[pair])
