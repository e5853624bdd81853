"""Looks: when a statement is judged whose blocks are added because it is open.

Student's interval holds for a number of blocks set in advance. Where blocks are added by looking, a statement is judged
at looks that are set in advance: after the blocks of its depth, then after half as many again each time (6, 9, 14,
21, ...). Look k has 1 / (k (k + 1)) of the error, which adds up to at most all of it however many looks there will be
(Bonferroni). What is judged at a look are the first blocks of each cell, the same ones whatever was looked at before,
so it does not matter by what rule blocks were added, to which cells, or when that ended. Blocks beyond a look wait for
the next one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from trifecta.analysis.places import Place

GROWTH = 1.5


def blocks_at(first: int, look: int) -> int:
    """The blocks of a cell that a look (1, 2, ...) judges, where its depth has ``first``."""
    blocks = first
    for _ in range(look - 1):
        blocks = math.ceil(blocks * GROWTH)
    return blocks


def look_of(first: int, done: int) -> int:
    """The last look for which there are blocks enough; 0 before the first."""
    look = 0
    while blocks_at(first, look + 1) <= done:
        look += 1
    return look


def confidence_at(confidence: float, look: int) -> float:
    """The confidence of the intervals of a look, so that those of all looks hold together."""
    return 1 - (1 - confidence) / (look * (look + 1))


def error(confidence: float, look: int) -> float:
    """The error of all looks together, from the confidence of one of them; of ``look`` 0 its own."""
    return (1 - confidence) * (look * (look + 1) if look else 1)


def waiting(places: Sequence[Place]) -> list[Place]:
    """The cells that a look waits for: those with a number of blocks of their own, and with any trial that counts."""
    return [place for place in places if place.first and place.rows]


def look_at(places: Sequence[Place]) -> int | None:
    """The last look that all cells of a statement have reached; None where their blocks were set in advance."""
    there = waiting(places)
    return min(look_of(place.first, place.done) for place in there) if there else None


def cut(places: Sequence[Place], look: int) -> list[Place]:
    """The cells with the blocks of a look, and its confidence. What a run's own planner chose by is not looked at."""
    return [
        replace(
            place,
            rows=[row for row in place.rows if int(row["block"]) < blocks_at(place.first, look)],
            confidence=confidence_at(place.confidence, look),
            verdicts={},
        )
        if place.first
        else place
        for place in places
    ]
