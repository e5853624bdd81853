"""What the report adds for a sweep of request rates: from which rate on a program sets the pace (analysis/knee.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

import duckdb

from trifecta.analysis.knee import RATE, Knee, knees
from trifecta.contract.trial import TrialRow
from trifecta.design.study_file import parse_study
from trifecta.report import numbers, queries, tables
from trifecta.report.catalogue import Query
from trifecta.report.facts import RunFacts
from trifecta.report.figure import Figure
from trifecta.report.figures import curves, style
from trifecta.report.sections import Section
from trifecta.report.tables import Column, Table
from trifecta.store.run import RunDirectory

CHECK = "headroom"
EVERYWHERE = "all cells"
_COLUMNS = (
    "cell", "arm", "block", "valid", "error", "checks_json", "load_json", "server_json", "factors_json",
    "latency_p50_ns", "requests_per_s", "success_rate", "samples", "errors",
)  # fmt: skip

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


def derive(connection: duckdb.DuckDBPyConnection, about: RunFacts) -> list[Knee] | None:
    """Work it out from the trials; None for a study without several rates."""
    if len((about.study.get("factors") or {}).get(RATE) or ()) < 2:
        return None
    study = parse_study(RunDirectory.open(about.folder).study_text, "study.yaml")
    sql = f"SELECT {', '.join(_COLUMNS)} FROM trials ORDER BY block, trial"  # noqa: S608 - known columns
    return knees(study, queries.select(connection, TrialRow, sql), CHECK)


class SweepRow(TypedDict):
    """A row of the view ``rate_sweep``: a step of a sweep of request rates, and where the program's knee is."""

    place: str
    arm: str
    rate_per_s: float
    latency_ns: float | None
    latency_ns_low: float | None
    latency_ns_high: float | None
    against: str
    against_ns: float | None
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    done_per_s: float | None
    used: float | None
    loud: int
    trials: int
    state: str
    knee_low: float | None
    knee_high: float | None
    most_per_s: float | None
    most_per_s_low: float | None
    most_per_s_high: float | None


def rows(found: Sequence[Knee]) -> dict[str, list[SweepRow]]:
    """The rows of the view ``rate_sweep``."""
    made: list[SweepRow] = [
        {
            "place": one.place or EVERYWHERE, "arm": one.arm, "rate_per_s": step.rate_per_s,
            "latency_ns": step.latency_ns, "latency_ns_low": step.latency_low_ns,
            "latency_ns_high": step.latency_high_ns, "against": one.against, "against_ns": step.against_ns,
            "ratio": step.ratio, "ratio_low": step.low, "ratio_high": step.high, "done_per_s": step.done_per_s,
            "used": step.used, "loud": step.loud, "trials": step.trials, "state": step.state, "knee_low": one.low,
            "knee_high": one.high, "most_per_s": one.most_per_s, "most_per_s_low": one.most_low,
            "most_per_s_high": one.most_high,
        }
        for one in found for step in one.steps
    ]  # fmt: skip
    return {"rate_sweep": made}


def draw(connection: duckdb.DuckDBPyConnection, found: Sequence[Knee]) -> Content:
    """Everything the page shows. Ask within ``svg.drawing()``."""
    ends, steps = queries.ask(connection, KNEES), queries.ask(connection, STEPS)
    places = list(dict.fromkeys(one.place or EVERYWHERE for one in found))
    made_ends, made_steps, figures = [], [], []
    for number, place in enumerate(places):
        here = tables.with_rows(ends, ends.where(place=place))
        made_ends.append(tables.build(here, f"knee-{number}", place, ("protocol", "arm"), _KNEE))
        for arm in dict.fromkeys(row["arm"] for row in here.rows):
            own = tables.with_rows(steps, steps.where(place=place, arm=arm))
            title = f"{place}, {style.name(arm)}"
            made_steps.append(tables.build(own, f"sweep-{number}-{arm}", title, ("state", "state"), _STEPS))
        figures.append(Figure(place, "", _figure([one for one in found if (one.place or EVERYWHERE) == place], number)))
    return Content([sentence(one) for one in found], made_ends, made_steps, figures)


def sentence(one: Knee) -> str:
    """From which rate on a program sets the pace, in words."""
    write = numbers.per_second
    who = f"{one.place or EVERYWHERE}, {style.name(one.arm)}"
    last = one.steps[-1].rate_per_s
    if one.high is not None and one.low is not None:
        return f"{who}: becomes the bottleneck between {write(one.low)} and {write(one.high)}."
    if one.high is not None:
        return f"{who}: is the bottleneck at {write(one.high)}, perhaps below."
    if one.low is None:
        return f"{who}: where it becomes the bottleneck is open."
    if one.low == last:
        return f"{who}: keeps up at every rate asked, {write(last)} the highest."
    return f"{who}: keeps up to {write(one.low)}; open from there to {write(last)}."


_KNEE = [
    Column("keeps up to", "knee_low", "per_second"),
    Column("bottleneck from", "knee_high", "per_second"),
    Column("did at most", "most_per_s", "per_second"),
    Column("interval", "most_per_s_low,most_per_s_high", "per_second_interval"),
]
_STEPS = [
    Column("asked", "rate_per_s", "per_second"),
    Column("answered", "done_per_s", "per_second"),
    Column("median latency", "latency_ns", "duration"),
    Column("compared with", "against_ns", "duration"),
    Column("ratio", "ratio", "ratio"),
    Column("interval", "ratio_low,ratio_high", "known_interval"),
    Column("of its CPU time", "used", "percent"),
    Column("check warned or failed", "loud", "count"),
    Column("trials", "trials", "count"),
]


def _figure(found: Sequence[Knee], number: int) -> str:
    points = {
        one.arm: [
            curves.Point(
                step.rate_per_s, numbers.per_second(step.rate_per_s), step.latency_ns, step.latency_low_ns,
                step.latency_high_ns, step.state == "departs",
            )
            for step in one.steps
        ]
        for one in found
    }  # fmt: skip
    return curves.values(points, "requests asked for", "median latency", "ns", f"sweep{number}")


SECTION = Section(
    "sweep",
    "Request rates",
    derive=lambda run: derive(run.connection, run.about),
    draw=lambda run, derived: draw(run.connection, derived),
    rows=rows,
    page="sweep.html.j2",
)
