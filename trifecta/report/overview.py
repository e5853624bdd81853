"""What a report and a terminal begin with: one row per path, and the one thing to do next."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import duckdb

from trifecta.conclude import more_blocks, queries
from trifecta.conclude.comparisons import Comparison, levels, rank_arms
from trifecta.conclude.exclusions import NeverCounted, never_counted
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.queries import QueryResult
from trifecta.conclude.query import Query
from trifecta.design import numbers
from trifecta.design.metrics import METRICS
from trifecta.design.phrases import counted, listed
from trifecta.report import next_commands
from trifecta.report.figures.style import name
from trifecta.report.tables import row_key

Ends = tuple[float | None, float | None]

# A row a path and arm: the medians of the trials of its cells, and its ratios to the reference.
PATHS = Query(
    "opening",
    """
SELECT m.path, m.arm, m.cells, m.least, m.most, v.least_ratio, v.most_ratio, v.ratios, v.low, v.high, v.intervals
FROM (SELECT path, arm, count(*) AS cells, min(value) AS least, max(value) AS most
      FROM (SELECT t.path, t.cell, t.arm, median({value}) AS value
            FROM trials AS t WHERE t.valid AND NOT t.is_aa GROUP BY t.path, t.cell, t.arm)
      GROUP BY path, arm) AS m
LEFT JOIN (SELECT c.path, v.arm, min(v.ratio) AS least_ratio, max(v.ratio) AS most_ratio, count(v.ratio) AS ratios,
                  count(coalesce(v.low, v.high)) AS intervals,
                  CASE WHEN count(v.low) = intervals THEN min(v.low) END AS low,
                  CASE WHEN count(v.high) = intervals THEN max(v.high) END AS high
           FROM verdicts AS v JOIN (SELECT DISTINCT cell, path FROM trials) AS c ON c.cell = v.cell
           WHERE v.metric = '{metric}' AND v.reference = '{reference}'
           GROUP BY c.path, v.arm) AS v ON v.path = m.path AND v.arm = m.arm
ORDER BY m.path, m.arm
""",
    ("path", "arm"),
)


@dataclass(frozen=True)
class PathRow:
    """A path: who came first in how many of its cells, the values of every arm, the ratio of the first pair.

    ``values`` and ``ratio`` are the smallest and the largest over its cells, ``interval`` reaches from the lowest end
    of their intervals to the highest; ``ratios`` and ``intervals`` count the cells that have one. ``next`` says in a
    few words what is open.
    """

    path: str
    asked: str
    first: list[tuple[tuple[str, ...], int]]  # arms that came first (none: open), and in how many cells
    cells: int
    values: Mapping[str, Ends]
    keys: Mapping[str, str]  # by arm the row of the answer that has them
    ratio: Ends
    ratios: int
    interval: Ends
    intervals: int
    comparisons: list[Comparison]  # of the first pair, a cell each
    next: str


@dataclass(frozen=True)
class Overview:
    """The first screen: its rows, the pair that its ratios are of, and what to do next."""

    rows: list[PathRow]
    pair: tuple[str, str]
    answer: QueryResult
    next: str


def ask(connection: duckdb.DuckDBPyConnection, facts: RunFacts) -> QueryResult | None:
    """The numbers of the first screen; None where nothing is compared, or cells are places of a map."""
    if not facts.pairs or facts.is_map:
        return None
    reference = facts.pairs[0][1].replace("'", "''")
    value = queries.trial_value(facts.of)
    sql = PATHS.sql.replace("{value}", value).replace("{metric}", facts.metric).replace("{reference}", reference)
    return queries.ask(connection, replace(PATHS, sql=sql))


def overview(
    facts: RunFacts,
    comparisons: Sequence[Comparison],
    answer: QueryResult | None,
    totals: Mapping[str, int],
    checks: QueryResult,
    *,
    by_arm: QueryResult,
) -> Overview | None:
    """Make the first screen.

    It is of the answers of `ask`, ``catalogue.TOTALS``, ``evidence_queries.CHECK_MATRIX`` and ``exclusions.BY_ARM``.
    """
    if answer is None or not comparisons:
        return None
    rows = [_row(facts, path, list(here), answer) for path, here in groupby(comparisons, key=_path)]
    return Overview(rows, facts.pairs[0], answer, _next(facts, comparisons, totals, checks, never_counted(by_arm)))


def _path(comparison: Comparison) -> str:
    return levels(comparison.cell).get("path", "")


def _row(facts: RunFacts, path: str, comparisons: list[Comparison], answer: QueryResult) -> PathRow:
    cells = list(dict.fromkeys(one.cell for one in comparisons))
    first = Counter(rank_arms(facts.arms, [one for one in comparisons if one.cell == cell]).places[0] for cell in cells)
    arm, reference = facts.pairs[0]
    by_arm = {row["arm"]: row for row in answer if row["path"] == path or not path}
    ratio = by_arm.get(arm, dict.fromkeys(("least_ratio", "most_ratio", "ratios", "low", "high", "intervals")))
    return PathRow(
        path=path,
        asked=facts.path_words(path),
        first=sorted(first.items(), key=lambda one: (not one[0], -one[1])),
        cells=len(cells),
        values={one: (by_arm[one]["least"], by_arm[one]["most"]) for one in facts.arms if one in by_arm},
        keys={one: row_key(row[name] for name in answer.query.key) for one, row in by_arm.items()},
        ratio=(ratio["least_ratio"], ratio["most_ratio"]),
        ratios=ratio["ratios"] or 0,
        interval=(ratio["low"], ratio["high"]),
        intervals=ratio["intervals"] or 0,
        comparisons=[one for one in comparisons if (one.arm, one.reference) == (arm, reference)],
        next=_open(facts, comparisons),
    )


def winners(row: PathRow, arms: int) -> list[tuple[str, str]]:
    """(``HTTP/3``, ``in 3 of 4 cells``) and so on; ``open`` where no arm is known to come first."""
    places = []
    for first, cells in row.first:
        who = "no difference" if len(first) == arms else " = ".join(map(name, first)) if first else "open"
        where = "" if row.cells == 1 else f"in all {row.cells} cells" if cells == row.cells else f"in {cells}"
        places.append((who, where))
    if len(places) > 1:
        places[0] = (places[0][0], f"{places[0][1]} of {row.cells} cells")
    return places


def _open(facts: RunFacts, comparisons: Sequence[Comparison]) -> str:
    opened = [one for one in comparisons if not one.decided]
    if not opened:
        return "decided"
    more = more_blocks.blocks_needed(facts, opened)
    left = f"{len(opened)} of {len(comparisons)} open"
    each = " a cell" if len({one.cell for one in opened}) > 1 else ""
    return left if more is None else f"{left}: {counted(more, 'more block')}{each}"


def _next(
    facts: RunFacts,
    comparisons: Sequence[Comparison],
    totals: Mapping[str, int],
    checks: QueryResult,
    lost: NeverCounted | None = None,
) -> str:
    """The one thing to do: fix what spoils most trials, or all of an arm, else measure what is open, else ask why."""
    elsewhere = facts.rest.get("counted_elsewhere", [])
    remedy = checks.rows[0]["remedy"] if checks else ""
    excluded, trials = totals["excluded_trials"], totals["trials"]
    if remedy and 2 * excluded >= trials:
        many = "All trials" if excluded == trials else "Most trials" if 2 * excluded > trials else "Half of the trials"
        if checks.rows[0]["check_name"] in elsewhere:
            return (
                "See the reproduction, ladder or experiment that this run is part of: it counts trials that fail "
                f"{listed(elsewhere, 'or')} alone, which the verdicts here leave out."
            )
        return f"{many} failed a check. {remedy[:1].upper()}{remedy[1:].rstrip('.')}, then measure again."
    if lost is not None and lost.remedy and lost.check not in elsewhere:
        where = "any cell" if lost.cells == lost.of_cells else f"{lost.cells} of {lost.of_cells} cells"
        arms = listed([name(arm) for arm in lost.arms], "or")
        return f"No trial of {arms} counts in {where}. {lost.remedy[:1].upper()}{lost.remedy[1:]}, then measure again."
    more = more_blocks.blocks_needed(facts, comparisons)
    if more is not None:
        took = next_commands.estimate(facts, comparisons, totals["trials"])
        return f"Measure more: `{next_commands.command(facts, more)}`{took and f' ({took})'}."
    sentence = f"See where the time is: `trifecta explain {shlex.quote(next_commands.relative_folder(facts.folder))}`"
    line = next_commands.causes(facts, comparisons)
    return f"{sentence}; remove causes: `{line}`." if line else f"{sentence}."


def spread(row: PathRow, arm: str, metric: str) -> str:
    """An arm's values on a path: ``41.2 ms``, or over its cells ``41.2–82.9 ms``."""
    low, high = row.values.get(arm, (None, None))
    write = numbers.FORMATS[numbers.FORM_OF_UNIT[METRICS[metric].unit]]
    return _from_to(write(low), write(high))


def ratio(row: PathRow) -> str:
    """The ratio of the first pair on a path: ``0.70``, or over its cells ``0.70–1.02``."""
    low, high = row.ratio
    return _from_to(numbers.ratio(low), numbers.ratio(high))


def interval(row: PathRow) -> str:
    """Its interval: ``[0.67, 0.72]``."""
    return numbers.interval(row.interval)


def part(row: PathRow, count: int) -> str:
    """In how many of its cells something is known, where it is not in all: ``2 of 4 cells``."""
    return f"{count} of {row.cells} cells" if 0 < count < row.cells else ""


def known_in(row: PathRow) -> tuple[str, str]:
    """`part` of its ratio and of its interval, said once where both are known in as many cells."""
    ratios, intervals = part(row, row.ratios), part(row, row.intervals)
    return "" if ratios == intervals else ratios, intervals


def _from_to(low: str, high: str) -> str:
    if low == high:
        return low
    number, _, unit = low.partition(" ")
    return f"{number}–{high}" if unit and high.endswith(f" {unit}") else f"{low}–{high}"
