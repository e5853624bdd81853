"""The first screen in a terminal: one row per path, with a forest of characters where there is room."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from trifecta.conclude.comparisons import Comparison
from trifecta.conclude.facts import RunFacts
from trifecta.report import grids, overview
from trifecta.report.figures import scales
from trifecta.report.figures.style import name
from trifecta.report.overview import Overview, PathRow

WITH_FOREST = 76  # columns of the terminal from which there is room for it
WIDE = 110  # from which what is open gets a column of its own
_LEVEL = 10  # characters of a level's name in a line: of a longer one the hyphens are where it is cut
_FOREST = (11, 25)  # characters, with and without `WIDE`


def show(out: Console, facts: RunFacts, overview: Overview) -> None:
    """Print the rows of the first screen."""
    wide, forest = out.width >= WIDE, out.width >= WITH_FOREST
    grid = grids.grid(out)
    arm, reference = map(name, overview.pair)
    levels = [one if wide else textwrap.fill(one, _LEVEL, break_long_words=False) for one in map(name, facts.arms)]
    for heading in ("path", "first", *levels, f"{arm} ÷\n{reference}"):
        grid.add_column(grids.plain(out, heading), overflow="fold")
    if forest:
        grid.add_column(grids.plain(out, "cell by cell: ○ open, ● decided") if wide else "by cell", no_wrap=True)
    if wide:
        grid.add_column("verdicts", overflow="fold")
    drawn = [one for row in overview.rows for one in row.comparisons]
    ends = [one.row[end] for one in drawn for end in ("ratio", "low", "high") if one.row[end]]
    limits = scales.ratio_limits([min(max(value, 1 / 8), 8.0) for value in ends], facts.margin)
    for row in overview.rows:
        if len(row.comparisons) > 1:
            grid.add_section()
        _add(out, grid, facts, row, limits if forest else None)
    grids.show(out, grid)


def _add(out: Console, grid: Table, facts: RunFacts, row: PathRow, limits: tuple[float, float] | None) -> None:
    wide = out.width >= WIDE
    first = [" ".join(part for part in winner if part) for winner in overview.winners(row, len(facts.arms))]
    cells = [
        row.path or "all cells",
        "\n".join(first if wide else [*first, f"({row.next})"]),
        *(overview.spread(row, arm, facts.metric).replace("–", "–\n") for arm in facts.arms),
        _ratio(row),
    ]
    if limits is not None:
        cells.append(forest(row.comparisons, limits, _FOREST[wide]))
    if wide:
        cells.append(row.next)
    grid.add_row(*(Text(grids.plain(out, cell)) for cell in cells))


def _ratio(row: PathRow) -> str:
    of_ratio, of_interval = overview.known_in(row)
    return "\n".join(filter(None, (overview.ratio(row), of_ratio, overview.interval(row), of_interval)))


def forest(comparisons: Sequence[Comparison], limits: tuple[float, float], width: int) -> str:
    """A line a cell: its interval, its estimate (``●`` decided, ``○`` open) and ``│`` at 1, on a logarithmic axis."""
    low, high = map(math.log, limits)

    def place(value: float) -> int:
        share = (math.log(value) - low) / (high - low)
        return round(min(1.0, max(0.0, share)) * (width - 1))

    lines = []
    for one in comparisons:
        line = [" "] * width
        left, right = one.row["low"], one.row["high"]
        if one.has_interval:
            first, last = place(left) if left else 0, place(right) if right and math.isfinite(right) else width - 1
            line[first : last + 1] = "─" * (last + 1 - first)
        line[place(1.0)] = "│"
        if one.row["ratio"]:
            line[place(one.row["ratio"])] = "●" if one.decided else "○"
        lines.append("".join(line))
    return "\n".join(lines)
