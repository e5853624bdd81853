"""The planner of a ladder: round after round, every rung once and both ends twice, in random order.

A rung's block in round r has the number 2 r; the second ones of the ends have 2 r + 1. So the difference from end to
end is estimated from blocks of its own, which share no trial with those of the steps.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from trifecta.analysis.estimate import Row
from trifecta.analysis.planner import Decision, Stop
from trifecta.design import plan
from trifecta.design.model import Cell, Study, Verdict


def block_of(round_: int, *, end: bool = False) -> int:
    """The number of a rung's block in a round; ``end``: of the second one of an end."""
    return 2 * round_ + int(end)


FEWEST_ROUNDS = 2
"""So many are run however long they take: one alone has no interval."""


class LadderPlanner:
    """Keeps nothing that the rows do not say, so that a ladder that was interrupted goes on as it would have.

    ``ends`` are the keys of the cells that have a second block in every round. A round that would end later than
    ``within_ns`` is not begun, by what the rounds before it took: time alone decides, and no value is looked at.
    """

    def __init__(
        self, study: Study, cells: Sequence[Cell], ends: Sequence[str], within_ns: float | None = None
    ) -> None:
        """A number of rounds is set in advance: the study's fewest blocks."""
        self.study = study
        self.cells = {cell.key: cell for cell in cells}
        self.ends = tuple(ends)
        self.rounds = study.min_blocks
        self.within_ns = within_ns
        self._arms = frozenset(plan.arms(study))

    def round(self, number: int) -> list[tuple[str, int]]:
        """The blocks of a round in their order, each with its cell; every order is equally likely."""
        order = [(key, block_of(number)) for key in self.cells]
        order += [(key, block_of(number, end=True)) for key in self.ends]
        random.Random(plan.stable_seed("ladder", self.study.seed, number)).shuffle(order)
        return order

    def next(self, rows: Sequence[Row], elapsed_ns: int, judged: Sequence[Verdict] | None = None) -> Decision | Stop:
        """The first block that lacks a trial."""
        arms_by_round: dict[tuple[str, int], set[str]] = {}
        for row in rows:
            arms_by_round.setdefault((str(row["cell"]), int(row["block"])), set()).add(str(row["arm"]))
        for number in range(self.rounds):
            order = self.round(number)
            if number >= FEWEST_ROUNDS and arms_by_round.keys().isdisjoint(order) and self._is_late(number, elapsed_ns):
                return Stop(f"the time was over after {number} of {self.rounds} rounds", "budget")
            for key, block in order:
                if not self._arms <= arms_by_round.get((key, block), set()):
                    return Decision(self.cells[key], block, f"round {number + 1} of {self.rounds}")
        return Stop(f"every rung has had its {self.rounds} rounds", "blocks")

    def _is_late(self, done: int, elapsed_ns: int) -> bool:
        """Whether one more round would end too late."""
        return self.within_ns is not None and elapsed_ns * (done + 1) / done > self.within_ns
