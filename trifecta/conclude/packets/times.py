"""Where the time of a cell's requests went, over all its captured blocks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from trifecta.analysis.transport.differences import Difference, by_block, difference, mean_of
from trifecta.conclude.packets.labels import TIME

Parts = Iterable[tuple[int, str, dict[str, float]]]  # block, arm, mean parts of a request's time in ns
WHOLE = "whole"


class TimeRow(TypedDict):
    """A row of the view ``packet_times``: a part of the time of a cell's requests over an arm, in ns."""

    cell: str
    arm: str
    part: str
    unit: str
    place: int
    value: float
    label: str
    share: float | None
    blocks: int
    difference: float | None
    difference_low: float | None
    difference_high: float | None


@dataclass(frozen=True)
class Times:
    """Mean parts by arm, and what each arm has more than the baseline. Blocks that lack an arm are left out."""

    blocks: int
    baseline: str
    parts: dict[str, dict[str, float]]
    differences: dict[str, Difference]


def times_of(trials: Parts, arms: Sequence[str], baseline: str, confidence: float) -> Times | None:
    """Of the trials of a cell; None where no time could be split."""
    blocks = by_block(trials, arms)
    if not blocks:
        return None
    base = blocks.get(baseline)
    others = [arm for arm in blocks if arm != baseline] if base else []
    differences = {arm: difference(list(zip(blocks[arm], base or [], strict=True)), confidence) for arm in others}
    return Times(
        len(next(iter(blocks.values()))),
        baseline,
        {arm: mean_of(one) for arm, one in blocks.items()},
        {arm: one for arm, one in differences.items() if one is not None},
    )


def rows(times: Mapping[str, Times]) -> list[TimeRow]:
    """The rows of the view ``packet_times``."""
    time_rows: list[TimeRow] = []
    for cell, one in times.items():
        for arm, parts in one.parts.items():
            total = sum(parts.values())
            arm_change = one.differences.get(arm)
            less = {each.part: each for each in (arm_change.whole, *arm_change.parts)} if arm_change else {}
            for place, (part, value) in enumerate([*parts.items(), (WHOLE, total)]):
                change = less.get(part)
                time_rows.append(
                    {
                        "cell": cell,
                        "arm": arm,
                        "part": part,
                        "unit": "ns",
                        "place": place,
                        "value": value,
                        "label": "all of it" if part == WHOLE else TIME[part],
                        "share": value / total if total else None,
                        "blocks": one.blocks,
                        "difference": change.difference_ns if change else None,
                        "difference_low": change.low_ns if change else None,
                        "difference_high": change.high_ns if change else None,
                    }
                )
    return time_rows
