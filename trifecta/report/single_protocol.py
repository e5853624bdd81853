"""What a study of a single protocol says: nothing is compared, so absolute numbers, cell by cell."""

from __future__ import annotations

import duckdb
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from trifecta.conclude import queries
from trifecta.conclude.comparisons import levels
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.queries import QueryResult
from trifecta.conclude.query import Query
from trifecta.contract.values import JsonObject
from trifecta.design import numbers, percentiles
from trifecta.report import grids, tables
from trifecta.report.figures.style import name
from trifecta.report.tables import Column, Table
from trifecta.report.verdict_words import place_words

_TAILS = {"p90_ns": ("q[2]", 0.9), "p95_ns": ("q[3]", 0.95), "p99_ns": ("q[4]", 0.99), "p999_ns": ("q[5]", 0.999)}
# Both runs of a block count: they are of one protocol.
SUMMARY = Query(
    "alone",
    """
SELECT cell, succeeded, failed, requests_per_s, mean_ns, least_ns, q[1] AS p50_ns,
       {tails}, q[6] AS max_ns
FROM (SELECT t.cell, count(*) AS n, count(*) FILTER (WHERE s.success) AS succeeded,
             count(*) FILTER (WHERE NOT s.success) AS failed, avg(s.latency_ns) AS mean_ns,
             min(s.latency_ns) AS least_ns,
             (SELECT median(o.requests_per_s) FROM trials AS o WHERE o.valid AND o.cell = t.cell) AS requests_per_s,
             quantile_disc(s.latency_censored_ns, [0.5, 0.9, 0.95, 0.99, 0.999, 1.0]) AS q
      FROM samples AS s JOIN trials AS t USING (trial)
      WHERE t.valid AND NOT s.warmup{and_cell}
      GROUP BY t.cell)
ORDER BY cell
""".replace(
        "{tails}",
        ", ".join(f"{percentiles.held_sql(value, share, 'n')} AS {name}" for name, (value, share) in _TAILS.items()),
    ),
    ("cell",),
)
NOTE = (
    "Of all valid trials together, warm-up excluded; they describe these trials and compare nothing. ∞: that large "
    "a share failed. A percentile is left out where less than one request lies beyond it."
)
_TIMES = (
    ("mean", "mean_ns"),
    ("min", "least_ns"),
    ("p50", "p50_ns"),
    ("p90", "p90_ns"),
    ("p95", "p95_ns"),
    ("p99", "p99_ns"),
    ("p99.9", "p999_ns"),
    ("max", "max_ns"),
)


def ask(connection: duckdb.DuckDBPyConnection, about: RunFacts) -> QueryResult | None:
    """The numbers of a run of one protocol; None where there are several, or a map."""
    if len(about.arms) != 1 or about.is_map:
        return None
    return queries.ask(connection, SUMMARY)


def headline(about: RunFacts) -> str:
    """What stands in the place of a verdict."""
    protocol = name(about.arms[0])
    return f"{protocol} alone: nothing is compared, so there is no verdict; the numbers of every cell follow."


def table(about: RunFacts, answer: QueryResult) -> Table:
    """The same in the report."""
    columns = [
        Column("done", "succeeded", "count"),
        Column("failed", "failed", "count"),
        Column("per second", "requests_per_s", "per_second"),
        *(Column(title, column, "duration") for title, column in _TIMES),
    ]
    caption = f"{about.latency_word.capitalize()} of {name(about.arms[0])}"
    return tables.build(answer, "alone", caption, ("cell", "cell"), columns, notes=[NOTE])


def show(out: Console, about: RunFacts, answer: QueryResult) -> None:
    """Print them."""
    if not answer.rows:
        out.print("No trial counts, so there are no numbers to show.")
        return
    grid: Grid = grids.grid(out)
    grid.add_column("cell", overflow="fold")
    shown = [(title, column) for title, column in _TIMES if any(row[column] is not None for row in answer)]
    for title in ("done", "failed", "per second", *(title for title, _ in shown)):
        grid.add_column(title, justify="right", no_wrap=True)
    for row in answer:
        place = ", ".join(filter(None, (levels(row["cell"]).get("path", ""), place_words(row["cell"]))))
        counts = [numbers.count(row["succeeded"]), numbers.count(row["failed"])]
        times = [numbers.duration(row[column]) for _, column in shown]
        cells = [place, *counts, numbers.per_second(row["requests_per_s"]), *times]
        grid.add_row(*(Text(grids.plain(out, cell)) for cell in cells))
    out.print(Text(f"{about.latency_word.capitalize()} of {name(about.arms[0])}:", style="bold"))
    grids.show(out, grid)
    out.print(Text(grids.plain(out, NOTE), style="dim"))


def as_data(answer: QueryResult) -> list[JsonObject]:
    """The same for a program; what is infinite is null, as is a percentile beyond the sample."""
    infinite = float("inf")
    return [{name: None if value == infinite else value for name, value in row.items()} for row in answer]
