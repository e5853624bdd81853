"""Whether trials of one arm were left out more often than those of others, or all: what is left bears its verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trifecta.conclude.queries import QueryResult
from trifecta.conclude.query import Query

LEVEL = 0.05
"""Fewer draws than this leave out as many trials of the arm when it is drawn at random which of a cell's are."""

FEWEST_LOST = 3
"""An arm that lost fewer trials may have had bad luck: another block may count."""

# One row a cell and arm; a trial of the A/A pair is one of its arm. What failed most often there, with its remedy.
BY_ARM = Query(
    "excluded_by_arm",
    """
SELECT t.cell, replace(t.arm, '#aa', '') AS arm, count(DISTINCT t.trial) AS trials,
       count(DISTINCT t.trial) FILTER (WHERE NOT t.valid) AS excluded,
       mode(c.check) FILTER (WHERE NOT t.valid) AS check_name, mode(c.remedy) FILTER (WHERE NOT t.valid) AS remedy
FROM trials AS t LEFT JOIN checks AS c ON c.scope = t.trial AND c.status = 'fail'
GROUP BY t.cell, replace(t.arm, '#aa', '')
ORDER BY t.cell, arm
""",
    ("cell", "arm"),
)


@dataclass(frozen=True)
class UnevenExclusions:
    """An arm of which more was left out: so many of its trials, and of those of the other arms."""

    arm: str
    excluded: int
    trials: int
    others_excluded: int
    others: int
    cells: int
    check: str
    remedy: str


def uneven(by_arm: QueryResult) -> list[UnevenExclusions]:
    """The arms of which more trials were left out than of the others in the same cells, beyond chance; worst first."""
    uneven_exclusions = []
    for arm in sorted({str(row["arm"]) for row in by_arm}):
        tables = _tables(by_arm.rows, arm)
        hit = [table for table in tables if table[1]]
        if not hit or _chance(tables) > LEVEL:
            continue
        mine = [row for row in by_arm if row["arm"] == arm and row["excluded"]]
        worst = max(mine, key=lambda row: int(row["excluded"]))
        trials, excluded, others, others_excluded = (sum(column) for column in zip(*tables, strict=True))
        uneven_exclusions.append(
            UnevenExclusions(
                arm=arm,
                excluded=excluded,
                trials=trials,
                others_excluded=others_excluded,
                others=others,
                cells=len(hit),
                check=str(worst["check_name"] or ""),
                remedy=str(worst["remedy"] or ""),
            )
        )
    return sorted(uneven_exclusions, key=lambda one: -one.excluded / one.trials)


@dataclass(frozen=True)
class NeverCounted:
    """Arms of which no trial counts in so many cells of all; what failed most often there, with its remedy."""

    arms: tuple[str, ...]
    cells: int
    of_cells: int
    check: str
    remedy: str


def never_counted(by_arm: QueryResult) -> NeverCounted | None:
    """The arm that lost most trials in a cell, all of `FEWEST_LOST` or more, and those lost in the same cells."""
    lost = [row for row in by_arm if row["excluded"] == row["trials"] >= FEWEST_LOST]
    if not lost:
        return None
    worst = max(lost, key=lambda row: int(row["trials"]))
    cells = {
        arm: {row["cell"] for row in lost if row["arm"] == arm} for arm in dict.fromkeys(row["arm"] for row in lost)
    }
    alike = [str(arm) for arm, where in cells.items() if where == cells[worst["arm"]]]
    return NeverCounted(
        arms=tuple(alike),
        cells=len(cells[worst["arm"]]),
        of_cells=len({row["cell"] for row in by_arm}),
        check=str(worst["check_name"] or ""),
        remedy=str(worst["remedy"] or ""),
    )


def _tables(rows: Sequence[dict[str, Any]], arm: str) -> list[tuple[int, int, int, int]]:
    """By cell that has other arms too: trials and excluded ones of the arm, then of the others."""
    tables = []
    for cell in dict.fromkeys(row["cell"] for row in rows):
        here = [row for row in rows if row["cell"] == cell]
        mine = [row for row in here if row["arm"] == arm]
        others = [row for row in here if row["arm"] != arm]
        if mine and others:
            counts = [sum(int(row[of]) for row in part) for part in (mine, others) for of in ("trials", "excluded")]
            tables.append((counts[0], counts[1], counts[2], counts[3]))
    return tables


def _chance(tables: Sequence[tuple[int, int, int, int]]) -> float:
    """Fisher's exact test over all cells: the chance of as many excluded ones of the arm, given those of each cell."""
    total, seen_excluded = np.ones(1), 0
    for trials, excluded, others, others_excluded in tables:
        seen_excluded += excluded
        drawn = excluded + others_excluded
        here = [
            math.comb(trials, own) * math.comb(others, drawn - own) / math.comb(trials + others, drawn)
            for own in range(min(trials, drawn) + 1)
        ]
        total = np.convolve(total, here)
    return float(total[seen_excluded:].sum())
