"""What a budget has room for: how many causes, in how many rounds."""

from __future__ import annotations

from collections.abc import Sequence

LEAST_ROUNDS, MOST_ROUNDS = 4, 200
AMPLE_ROUNDS = 12
"""With so many rounds there is room for causes that nothing points to."""
SEARCH_SHARE = 0.6
"""Of the budget for every cause alone; the rest is for the largest two, and all that are named, together."""
MOST_OF_IT = 1.2
"""How much of the budget is taken at the most."""
RUN_NS = 3_000_000_000
"""Raising the lab, and what is written at the end."""


def rounds_in(budget_ns: float, blocks: int, block_ns: float) -> int:
    """How many rounds of so many blocks a time has room for; fewer than `LEAST_ROUNDS` where it is too short."""
    return min(MOST_ROUNDS, int((budget_ns - RUN_NS) // (blocks * block_ns)))


def search_blocks(causes: int, *, nearest: bool) -> int:
    """The blocks of a round: each cause, and twice the cell as it is (and as it is on the nearest stack)."""
    return causes + (4 if nearest else 2)


def chosen(suspicions: Sequence[float], budget_ns: int, block_ns: float, *, nearest: bool) -> tuple[int, int]:
    """How many of the causes, the most suspected first, are measured in a budget, and in how many rounds.

    Those that something points to come first: as many as leave `LEAST_ROUNDS`; the others where `AMPLE_ROUNDS` are
    left. (0, 0) where not even one has room.
    """
    count, rounds = 0, 0
    for number, suspicion in enumerate(suspicions, 1):
        fit = rounds_in(SEARCH_SHARE * budget_ns, search_blocks(number, nearest=nearest), block_ns)
        if fit < (LEAST_ROUNDS if suspicion > 0 else AMPLE_ROUNDS):
            break
        count, rounds = number, fit
    return count, rounds


def pair_rounds(budget_ns: int, blocks: int, block_ns: float) -> int:
    """The rounds of so many blocks in which the largest two are removed together."""
    return max(LEAST_ROUNDS, rounds_in((1 - SEARCH_SHARE) * budget_ns, blocks, block_ns))


def search_within_ns(budget_ns: int) -> float:
    """How long the causes alone may take, on a machine that is slower than the run was."""
    return MOST_OF_IT * SEARCH_SHARE * budget_ns


def pair_within_ns(budget_ns: int, spent_ns: int) -> float:
    """How long the largest two together may take after that."""
    return MOST_OF_IT * budget_ns - spent_ns
