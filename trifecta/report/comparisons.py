"""Verdicts as they are shown: who is faster, by how much, and in which order the protocols come in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from trifecta.analysis.forecast import FAR_FROM
from trifecta.design.metric import Metric
from trifecta.design.metrics import METRICS
from trifecta.design.model import AA_SUFFIX, PROTOCOL_FACTOR, PROTOCOL_NAMES
from trifecta.design.services import SERVER_LEVEL
from trifecta.report import numbers
from trifecta.report.figures import style

_BRACES = str.maketrans("[]", "{}")
# Levels that all cells of a kind of workload share tell nothing.
UNTOLD = frozenset({("server", SERVER_LEVEL), ("connection", "browser")})


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


@dataclass(frozen=True)
class Comparison:
    """One row of the query ``verdicts``; ``row`` keeps every column."""

    cell: str
    arm: str
    reference: str
    kind: str
    row: Mapping[str, Any]

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
    def likely(self) -> str | None:
        """What an undecided comparison would be, were it the only one asked; None where that is open, too."""
        return None if self.decided else self.row["likely"]

    def headline(self, times: str = "×") -> str:
        """``1.43× faster`` (by the metric: ``1.43× higher``), ``same``, ``likely 1.43× faster`` or ``undecided``."""
        if self.likely is not None:
            return f"likely {self._said(self.likely, times)}"
        return self._said(self.kind, times)

    def _said(self, kind: str, times: str) -> str:
        if kind in ("faster", "slower") and self.row["factor"] is not None:
            return f"{numbers.ratio(self.row['factor'])}{times} {self.metric.word(kind)}"
        return kind

    @property
    def has_interval(self) -> bool:
        """Whether there are blocks enough for an interval with at least one end."""
        return self.row["factor_low"] is not None or self.row["factor_high"] is not None

    @property
    def excludes_one(self) -> bool:
        """Whether its interval, by itself, excludes a ratio of 1."""
        low, high = self.row.get("low"), self.row.get("high")
        return (low is not None and low > 1) or (high is not None and high < 1)

    def interval(self) -> str:
        """The confidence sequence in prose, in the direction of the headline: ``[1.38, 1.49]``."""
        return numbers.interval((self.row["factor_low"], self.row["factor_high"]))

    def ratio_interval(self) -> str:
        """The confidence sequence in a column, where all are of the ratio arm / reference: ``[0.67, 0.72]``."""
        return numbers.interval((self.row["low"], self.row["high"]))

    def family_interval(self) -> str:
        """The same among all comparisons of the study, on which the verdict rests: ``{0.66, 0.73}``."""
        return numbers.interval((self.row["family_low"], self.row["family_high"])).translate(_BRACES)

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

    def more(self) -> str:
        """The range in short: ``2 to 9 more``, ``8 or more``, ``far off``, ``too early`` or ``no block``."""
        if not self.row["blocks"]:
            return "no block"
        if self.blocks_more is None:
            return "too early" if self.too_early else "far off"
        low, high = self.blocks_more
        if high is None:
            return f"{numbers.count(low)}+ more"
        return f"{numbers.count(low)} more" if low == high else f"{numbers.count(low)}-{numbers.count(high)} more"

    def statement(self, metric: str) -> str:
        """In full: ``HTTP/3 has 0.70 × the median latency of HTTP/2: 1.43× faster [1.38, 1.49]``."""
        arm, reference = style.name(self.arm), style.name(self.reference)
        if not self.decided:
            return f"{arm} against {reference}: {self.headline()} {self.interval()}, {self.needs()}"
        ratio = numbers.ratio(self.row["ratio"])
        return f"{arm} has {ratio} × the {metric} of {reference}: {self.headline()} {self.interval()}"

    def needs(self) -> str:
        """What an open verdict still needs: ``needs 2 to 9 more blocks``; empty when decided."""
        if self.decided:
            return ""
        if not self.row["blocks"]:
            return "no valid block"
        if self.blocks_more is None:
            return "too few blocks for a forecast" if self.too_early else "not within reach"
        low, high = self.blocks_more
        if high is None:
            return f"needs {numbers.count(low)} or more further blocks"
        if low == high:
            return f"needs {numbers.count(low)} more block{'' if low == 1 else 's'}"
        return f"needs {numbers.count(low)} to {numbers.count(high)} more blocks"


def from_rows(rows: Iterable[VerdictRow], metric: str) -> list[Comparison]:
    """Comparisons of one metric, without the A/A pairs."""
    return [
        Comparison(row["cell"], row["arm"], row["reference"], row["verdict"], row)
        for row in rows
        if row["metric"] == metric and not row["arm"].endswith(AA_SUFFIX)
    ]


@dataclass(frozen=True)
class Standing:
    """The trifecta of a cell: the arms of each place, nothing where the place is open."""

    places: tuple[tuple[str, ...], ...]

    @property
    def complete(self) -> bool:
        """Whether every place is taken."""
        return all(self.places)

    def ranks(self) -> list[tuple[str, tuple[str, ...]]]:
        """(``1st``, its arms) in order; arms that share places come once, as ``2nd–3rd``; open places have no arm.

        Where every place is open there is one entry, without a rank.
        """
        if not any(self.places):
            return [("", ())]
        found: list[tuple[str, tuple[str, ...]]] = []
        for place, arms in enumerate(self.places):
            if len(arms) != 1 and place and self.places[place - 1] == arms:
                first = found.pop()[0].split("–")[0]
                found.append((f"{first}–{ordinal(place + 1)}", arms))
            else:
                found.append((ordinal(place + 1), arms))
        return found

    def words(self) -> list[str]:
        """``1st HTTP/3`` and so on; ``2nd–3rd open`` where verdicts do not report, ``open`` where they tell nothing."""
        return [
            f"{rank} {' = '.join(style.name(arm) for arm in arms) if arms else 'open'}".strip()
            for rank, arms in self.ranks()
        ]


def standing(arms: list[str], comparisons: Iterable[Comparison]) -> Standing:
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
    return Standing(tuple(places))


def ordinal(number: int) -> str:
    """``1st``, ``2nd``, ``11th``."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number % 100 not in (11, 12, 13) else "th"
    return f"{number}{ending}"


def levels(cell: str) -> dict[str, str]:
    """``path=far,connection=new`` as a dictionary, in the order of the key."""
    found: dict[str, str] = {}
    last = ""
    for part in cell.split(","):
        name, equals, value = part.partition("=")
        if equals:
            last = name
            found[name] = value
        elif last:  # a comma inside a value
            found[last] += "," + part
    return found or {"cell": cell}


def place_words(cell: str, without: str = "path") -> str:
    """A cell in words: ``new connections, caddy``; the factor ``without`` is said elsewhere."""
    if "=" not in cell:
        return cell  # the name of a trial, or "run"
    there = {name: value for name, value in levels(cell).items() if (name, value) not in UNTOLD}
    said = [_level_words(name, value) for name, value in there.items() if name != without]
    return ", ".join(said) or cell


def _level_words(factor: str, level: str) -> str:
    if factor == PROTOCOL_FACTOR:
        return PROTOCOL_NAMES.get(level, level)
    if factor == "connection" and level in ("new", "reused"):
        return f"{level} connections"
    if factor in ("page", "clip"):
        return f"{factor} {level.rstrip('/').rsplit('/', 1)[-1]}"  # which may be a path
    return level if factor in ("path", "server", "connection") else f"{factor.replace('_', ' ')} {level}"
