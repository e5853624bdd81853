"""Rows of the queries on services that are told in words."""

from __future__ import annotations

from typing import TypedDict


class SuccessRow(TypedDict):
    """Of `catalogue.SUCCESS`: how many requests of a cell and arm succeeded, and what was left out of that."""

    cell: str
    arm: str
    rate: float
    low: float | None
    high: float | None
    requests: int
    failed: int
    excluded_requests: int
    excluded_failed: int


class ContrastRow(TypedDict):
    """Of `catalogue.CONTRASTS`: a level of a factor to another, in one place or all of them."""

    factor: str
    level: str
    against: str
    place: str
    metric: str
    arm: str
    reference: str | None
    ratio: float | None
    low: float | None
    high: float | None
    p_holm: float | None
    outcome: str
    blocks: int
    against_blocks: int


class CombinationRow(TypedDict):
    """Of `catalogue.COMBINATIONS`: protocols at the edge and inside, and how that compares with the baseline."""

    cell: str
    edge: str
    inside: str
    rank: str
    value: float | None
    low: float | None
    high: float | None
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    p_holm: float | None
    blocks: int


def best_rank(row: CombinationRow) -> int:
    """The first of the places that a combination may have: 2 of ``2–3``."""
    return int(row["rank"].split("–")[0])
