"""What the report adds for a sweep of request rates: from which rate on a program sets the pace (analysis/knee.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from trifecta.analysis.knee import Knee
from trifecta.conclude import queries
from trifecta.conclude.query import Query
from trifecta.conclude.sweep import EVERYWHERE, Sweep, derive
from trifecta.design import numbers
from trifecta.report import tables
from trifecta.report.figure import Figure
from trifecta.report.figures import curves, style
from trifecta.report.sections import Section
from trifecta.report.tables import Column, Table

STEPS = Query(
    "rate_sweep",
    """
SELECT t.place, t.arm, t.rate_per_s, t.latency_ns, t.latency_ns_low, t.latency_ns_high, t.against_ns, t.ratio,
       t.ratio_low, t.ratio_high, t.done_per_s, t.used, t.loud, t.trials, t.state
FROM rate_sweep AS t
ORDER BY t.place, t.arm, t.rate_per_s
""",
    ("place", "arm", "rate_per_s"),
)
KNEES = Query(
    "knees",
    """
SELECT DISTINCT t.place, t.arm, t.knee_low, t.knee_high, t.most_per_s, t.most_per_s_low, t.most_per_s_high
FROM rate_sweep AS t
ORDER BY t.place, t.arm
""",
    ("place", "arm"),
)


@dataclass(frozen=True)
class Content:
    """What the page shows."""

    sentences: list[str]
    knees: list[Table]
    steps: list[Table]
    figures: list[Figure]


def draw(connection: duckdb.DuckDBPyConnection, derived: Sweep) -> Content:
    """Everything the page shows. Ask within ``svg.drawing()``."""
    knees = derived.knees
    ends, steps = queries.ask(connection, KNEES), queries.ask(connection, STEPS)
    places = list(dict.fromkeys(one.place or EVERYWHERE for one in knees))
    made_ends, made_steps, figures = [], [], []
    for number, place in enumerate(places):
        here = tables.with_rows(ends, ends.where(place=place))
        made_ends.append(tables.build(here, f"knee-{number}", place, ("protocol", "arm"), _KNEE))
        for arm in dict.fromkeys(row["arm"] for row in here.rows):
            own = tables.with_rows(steps, steps.where(place=place, arm=arm))
            title = f"{place}, {style.name(arm)}"
            made_steps.append(tables.build(own, f"sweep-{number}-{arm}", title, ("state", "state"), _STEPS))
        figures.append(Figure(place, "", _figure([one for one in knees if (one.place or EVERYWHERE) == place], number)))
    return Content([sentence(one) for one in knees], made_ends, made_steps, figures)


def sentence(knee: Knee) -> str:
    """From which rate on a program sets the pace, in words."""
    write = numbers.per_second
    who = f"{knee.place or EVERYWHERE}, {style.name(knee.arm)}"
    last = knee.steps[-1].rate_per_s
    if knee.high is not None and knee.low is not None:
        return f"{who}: becomes the bottleneck between {write(knee.low)} and {write(knee.high)}."
    if knee.high is not None:
        return f"{who}: is the bottleneck at {write(knee.high)}, perhaps below."
    if knee.low is None:
        return f"{who}: where it becomes the bottleneck is open."
    if knee.low == last:
        return f"{who}: keeps up at every requested rate, {write(last)} the highest."
    return f"{who}: keeps up to {write(knee.low)}; open from there to {write(last)}."


_KNEE = [
    Column("keeps up to", "knee_low", "per_second"),
    Column("bottleneck from", "knee_high", "per_second"),
    Column("did at most", "most_per_s", "per_second"),
    Column("interval", "most_per_s_low,most_per_s_high", "per_second_interval"),
]
_STEPS = [
    Column("requested", "rate_per_s", "per_second"),
    Column("answered", "done_per_s", "per_second"),
    Column("median latency", "latency_ns", "duration"),
    Column("compared with", "against_ns", "duration"),
    Column("ratio", "ratio", "ratio"),
    Column("interval", "ratio_low,ratio_high", "known_interval"),
    Column("of its CPU time", "used", "percent"),
    Column("check warned or failed", "loud", "count"),
    Column("trials", "trials", "count"),
]


def _figure(knees: Sequence[Knee], number: int) -> str:
    points = {
        one.arm: [
            curves.Point(
                step.rate_per_s, numbers.per_second(step.rate_per_s), step.latency_ns, step.latency_low_ns,
                step.latency_high_ns, step.state == "departs",
            )
            for step in one.steps
        ]
        for one in knees
    }  # fmt: skip
    return curves.values(points, "requested rate", "median latency", "ns", f"sweep{number}")


SECTION = Section(
    "sweep",
    "Request rates",
    derive=lambda run: derive(run.connection, run.about),
    draw=lambda run, derived: draw(run.connection, derived),
    page="sweep.html.j2",
)
