"""Verdicts cell by cell: who is faster, by how much, and in which order the protocols come in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from trifecta.analysis.forecast import FAR_FROM
from trifecta.analysis.programs import place_of
from trifecta.analysis.scaling import place_without
from trifecta.design.far import ELSEWHERE
from trifecta.design.metric import Metric
from trifecta.design.metrics import METRICS
from trifecta.design.model import AA_SUFFIX
from trifecta.design.services import SERVER_LEVEL

# Levels that all cells of a kind of workload share tell nothing.
UNTOLD = frozenset({("server", SERVER_LEVEL), ("server", ELSEWHERE), ("connection", "browser")})


class VerdictRow(TypedDict):
    """Of `catalogue.VERDICTS`: the verdict on an arm and a reference in a cell."""

    cell: str
    arm: str
    reference: str
    metric: str
    verdict: str
    likely: str | None
    ratio: float | None
    low: float | None
    high: float | None
    family_low: float | None
    family_high: float | None
    factor: float | None
    factor_low: float | None
    factor_high: float | None
    blocks: int | None
    blocks_needed_low: int | None
    blocks_needed_high: int | None
    margin: float
    noise_floor: float | None
    weather_floor: float | None
    modes: str | None
    reason: str | None
    nodes: int | None
    node_sd: float | None
    node_sd_low: float | None
    node_sd_high: float | None
    left_out_nodes_json: str | None


@dataclass(frozen=True)
class Comparison:
    """One row of the query ``verdicts``; ``row`` keeps every column."""

    cell: str
    arm: str
    reference: str
    kind: str
    row: Mapping[str, Any]

    @property
    def place(self) -> str:
        """Its cell without the programs."""
        return place_of(self.cell)

    def without(self, factor: str) -> str:
        """Its cell without this factor."""
        return place_without(levels(self.cell), factor)

    @property
    def metric(self) -> Metric:
        """What is compared, with its words."""
        return METRICS[self.row["metric"]]

    def values(self, columns: Sequence[str]) -> list[object]:
        """What its row has in these columns."""
        return [self.row[column] for column in columns]

    @property
    def decided(self) -> bool:
        """Whether anything can be said."""
        return self.kind != "undecided"

    @property
    def begun(self) -> bool:
        """Whether a block is complete, or a trial did not count: else its cell has not had its turn."""
        return bool(self.row["blocks"] or self.row.get("invalid_trials"))

    @property
    def likely(self) -> str | None:
        """What an undecided comparison would be, were it the only one asked; None where that is open, too."""
        return None if self.decided else self.row["likely"]

    @property
    def has_interval(self) -> bool:
        """Whether there are blocks enough for an interval with at least one end."""
        return self.row["factor_low"] is not None or self.row["factor_high"] is not None

    @property
    def excludes_one(self) -> bool:
        """Whether its interval, by itself, excludes a ratio of 1."""
        low, high = self.row.get("low"), self.row.get("high")
        return (low is not None and low > 1) or (high is not None and high < 1)

    @property
    def blocks_more(self) -> tuple[int, int | None] | None:
        """How many more blocks would decide an open verdict: a range, open above where that is out of reach.

        None when all of it is.
        """
        if self.decided or self.row["blocks_needed_low"] is None:
            return None
        done = self.row["blocks"] or 0
        low, high = self.row["blocks_needed_low"], self.row["blocks_needed_high"]
        return max(1, low - done), None if high is None else max(1, high - done)

    @property
    def too_early(self) -> bool:
        """Whether there is no forecast because there are too few blocks to make one of."""
        return not self.decided and self.blocks_more is None and (self.row["blocks"] or 0) < FAR_FROM


def from_rows(rows: Iterable[VerdictRow], metric: str) -> list[Comparison]:
    """Comparisons of one metric, without the A/A pairs."""
    return [
        Comparison(row["cell"], row["arm"], row["reference"], row["verdict"], row)
        for row in rows
        if row["metric"] == metric and not row["arm"].endswith(AA_SUFFIX)
    ]


@dataclass(frozen=True)
class CellRanking:
    """The trifecta of a cell: the arms of each place, nothing where the place is open."""

    places: tuple[tuple[str, ...], ...]

    @property
    def complete(self) -> bool:
        """Whether every place is taken."""
        return all(self.places)


def rank_arms(arms: list[str], comparisons: Iterable[Comparison]) -> CellRanking:
    """Work out who is certain of which place.

    An arm's best place is one more than the number of arms known to be faster, its worst leaves behind only those
    known to be slower. A place is given when both meet, or shared by two arms that are the *same* and span it alone.
    """
    faster: dict[str, set[str]] = {arm: set() for arm in arms}
    slower: dict[str, set[str]] = {arm: set() for arm in arms}
    same: set[frozenset[str]] = set()
    for one in comparisons:
        if one.arm not in faster or one.reference not in faster:
            continue
        if one.kind == "same":
            same.add(frozenset((one.arm, one.reference)))
        elif one.kind in ("faster", "slower"):
            first, second = (one.arm, one.reference) if one.kind == "faster" else (one.reference, one.arm)
            slower[first].add(second)
            faster[second].add(first)
    span = {arm: (len(faster[arm]), len(arms) - 1 - len(slower[arm])) for arm in arms}
    places: list[tuple[str, ...]] = []
    for place in range(len(arms)):
        certain = [arm for arm in arms if span[arm] == (place, place)]
        able = [arm for arm in arms if span[arm][0] <= place <= span[arm][1]]
        tied = all(frozenset((a, b)) in same and span[a] == span[b] for a in able for b in able if a != b)
        if len(certain) == 1:
            places.append(tuple(certain))
        elif len(able) > 1 and tied:
            places.append(tuple(able))
        else:
            places.append(())
    return CellRanking(tuple(places))


def levels(cell: str) -> dict[str, str]:
    """``path=far,connection=new`` as a dictionary, in the order of the key."""
    levels_by_name: dict[str, str] = {}
    last = ""
    for part in cell.split(","):
        name, equals, value = part.partition("=")
        if equals:
            last = name
            levels_by_name[name] = value
        elif last:  # a comma inside a value
            levels_by_name[last] += "," + part
    return levels_by_name or {"cell": cell}
