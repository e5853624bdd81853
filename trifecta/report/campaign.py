"""A campaign at a glance: a row for each cell of its studies, in the terminal and on a page with links to reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import MutableMapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from trifecta.conclude import facts, queries
from trifecta.conclude.campaign import left_out
from trifecta.conclude.catalogue import VERDICTS
from trifecta.conclude.cells import cells_in_order, comparisons_of
from trifecta.conclude.comparisons import Comparison, levels
from trifecta.conclude.query import Query
from trifecta.conclude.visits.derive import derive
from trifecta.conclude.visits.published import Claim
from trifecta.contract.values import JsonObject
from trifecta.design import numbers, phrases
from trifecta.design.campaign import Campaign
from trifecta.design.factors import CONNECTION_LEVELS
from trifecta.design.metrics import METRICS
from trifecta.report import grids, verdict_words
from trifecta.report.figures import style
from trifecta.report.page_templates import Filter, page
from trifecta.report.visits.published import ours, with_place
from trifecta.report.visits.words import cell_words, claim_summary
from trifecta.store import manifest

PAGE = "index.html"
_HEADED = ("server", "connection", "place", "path")  # stand in the heading above the cells

# The middle of what the valid trials of an arm say, the A/A runs left out; successes are counted in all of them.
ARMS = Query(
    "campaign_arms",
    """
SELECT t.cell, t.arm, count(*) AS trials, count(*) FILTER (WHERE t.valid) AS valid_trials,
       median({value}) FILTER (WHERE t.valid) AS value,
       sum(t.samples - t.errors) / nullif(sum(t.samples), 0) AS success_rate
FROM trials AS t WHERE NOT t.is_aa
GROUP BY t.cell, t.arm ORDER BY t.cell, t.arm
""",
    ("cell", "arm"),
)


@dataclass
class Line:
    """One cell of one study."""

    study: str
    label: str
    tests: str
    where: str
    """Path, place and connection."""
    place: str
    """The levels that tell it from the other cells there."""
    metric: str
    """That of its values and verdicts."""
    arms: dict[str, dict[str, Any]]
    comparisons: dict[tuple[str, str], Comparison]

    def value(self, protocol: str) -> str:
        """The middle of a protocol's trials, with its unit."""
        value = self.arms[protocol]["value"]
        return numbers.NO_VALUE if value is None else numbers.in_unit(value, METRICS[self.metric].unit)

    def heading(self) -> str:
        """What the cells of one place have in common."""
        return self.label if self.label == self.where else f"{self.label}: {self.where}"


@dataclass
class Overview:
    """All that has been run of a campaign."""

    campaign: Campaign
    protocols: list[str]
    pairs: list[tuple[str, str]]
    lines: list[Line] = field(default_factory=list)
    reports: dict[str, str] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    metric: str = ""
    samples: str = "requests"
    claims: list[tuple[Claim, str]] = field(default_factory=list)
    """What each cell says to what others published, with the cell in words; claim by claim."""

    @property
    def tolerated_words(self) -> str:
        """Which trials count for the reproduction alone; empty where there are none."""
        checks = sorted(self.campaign.tolerate)
        if not checks:
            return ""
        sees = "this check sees" if len(checks) == 1 else "these checks see"
        return (
            f"The reproduction counts trials that fail {phrases.listed(checks, 'or')} and no other check, since {sees} "
            "published conditions. The medians and verdicts here, and the runs' reports, leave them out."
        )

    def claim_words(self) -> str:
        """How many of them agree."""
        return claim_summary([claim for claim, _ in self.claims])

    def by_claim(self) -> list[str]:
        """A line a claim: ``HTTP/3 loads ...: confirmed in 2 of 4 cells, contradicted in 1, open in 1``."""
        counts: dict[str, Counter[str]] = {}
        for claim, _ in self.claims:
            counts.setdefault(claim.text, Counter())[claim.relation] += 1
        return [
            f"{text.rstrip('.')}: "
            f"{', '.join(f'{relation} in {number}' for relation, number in relations.most_common())} of "
            f"{phrases.counted(relations.total(), 'cell')}."
            for text, relations in counts.items()
        ]


@dataclass(frozen=True)
class RunRead:
    """What the overview shows of one run."""

    about: facts.RunFacts
    lines: list[Line]
    claims: list[tuple[Claim, str]] | None
    """None: not of visits."""


def overview(
    campaign: Campaign, folder: Path, problems: dict[str, str], known_runs: MutableMapping[str, RunRead] | None = None
) -> Overview:
    """Read the runs of a campaign below its folder; ``problems`` are studies that could not run, with the reason.

    ``known_runs`` has runs that were read before and did not change since; the others are added to it.
    """
    runs = {name: folder / name for name in campaign.studies if (folder / name / "run.json").is_file()}
    away = {name: f"its files are still in its store; `trifecta resume {folder}` fetches them"
            for name, run in runs.items() if manifest.absent(run)}  # fmt: skip
    problems = {**away, **problems}
    campaign_overview, known_runs = (
        Overview(campaign, [], [], problems=left_out(campaign, folder, problems)),
        {} if known_runs is None else known_runs,
    )
    for name, run in runs.items():
        if name in away:
            continue
        if name not in known_runs:
            known_runs[name] = _read(campaign, name, run)
        about = known_runs[name].about
        if about.metric_label not in campaign_overview.metric.split(" or "):
            campaign_overview.metric = " or ".join(filter(None, (campaign_overview.metric, about.metric_label)))
        campaign_overview.protocols = campaign_overview.protocols or about.arms
        campaign_overview.pairs = campaign_overview.pairs or about.pairs
        if (run / "report.html").exists():
            campaign_overview.reports[name] = f"{name}/report.html"
        claims = known_runs[name].claims
        if claims is not None:
            campaign_overview.samples = "visits"
            campaign_overview.claims += claims
        campaign_overview.lines += known_runs[name].lines
    order = {
        heading: place
        for place, heading in enumerate(dict.fromkeys(line.heading() for line in campaign_overview.lines))
    }
    texts = list(dict.fromkeys(claim.text for claim, _ in campaign_overview.claims))
    campaign_overview.claims.sort(key=lambda one: texts.index(one[0].text))
    campaign_overview.lines.sort(key=lambda line: order[line.heading()])
    return campaign_overview


def _read(campaign: Campaign, name: str, run: Path) -> RunRead:
    about = facts.read(run)
    with queries.connect(run) as connection:
        arms = queries.ask(connection, replace(ARMS, sql=ARMS.sql.replace("{value}", queries.trial_value(about.of))))
        verdicts = queries.ask(connection, VERDICTS)
        cells = cells_in_order(about, dict.fromkeys(row["cell"] for row in arms))
        comparisons = comparisons_of(about, verdicts, cells)
        sections = derive(connection, about, comparisons)
    lines = []
    for cell in cells:
        own = levels(cell)
        varied = [key for key, known in campaign.studies[name].factors.items() if len(known) > 1]
        shown = [f"{key} {value}" for key, value in own.items() if key in varied and key not in _HEADED]
        where = [own[name] for name in ("path", "place") if name in own]
        if own.get("connection") in CONNECTION_LEVELS:  # a browser opens those it wants
            where.append(f"{own['connection']} connections")
        lines.append(
            Line(
                study=name,
                label=campaign.label(name, own),
                tests=campaign.test_names(name, own),
                where=", ".join(where),
                place=", ".join(shown) or campaign.studies[name].workload.kind,
                metric=about.metric,
                arms={row["arm"]: row for row in arms if row["cell"] == cell},
                comparisons={(one.arm, one.reference): one for one in comparisons if one.cell == cell},
            )
        )
    claims = [with_place(one, cell_words(one.cell)) for one in sections.claims] if sections else None
    return RunRead(about, lines, claims)


def write_page(overview: Overview, folder: Path) -> Path:
    """Write ``index.html`` of a campaign and return its path."""
    from trifecta.store import files

    filters: dict[str, Filter] = {
        "name": style.name,
        "share": _share,
        "headline": verdict_words.headline,
        "ratio_interval": verdict_words.ratio_interval,
    }
    text = page("campaign.html.j2", filters, overview=overview)
    target = folder / PAGE
    with files.disk_errors(target):
        files.write_text(target, text)
    return target


def print_overview(overview: Overview, folder: Path, console: Console | None = None) -> None:
    """Print a campaign's table."""
    out = console or Console(highlight=False)
    out.print(Text(overview.campaign.title, style="bold"))
    out.print()
    for heading, lines in groupby(overview.lines, key=Line.heading):
        out.print(Text(heading, style="bold"))
        grids.show(out, _grid(out, overview, list(lines)))
        out.print()
    invalid = sum(row["trials"] - row["valid_trials"] for line in overview.lines for row in line.arms.values())
    if invalid:
        total = sum(row["trials"] for line in overview.lines for row in line.arms.values())
        counts = "does" if invalid == 1 else "do"
        out.print(
            Text(f"{invalid} of {total} trials failed a check and {counts} not count; the reports say which and why.")
        )
    if overview.claims:
        out.print(Text(f"Published: {overview.claim_words()}"))
        for sentence in overview.by_claim():
            out.print(Text(f"  {sentence}"))
    for name, reason in overview.problems.items():
        out.print(Text(f"{name}: {reason}"))
    out.print(
        Text(
            f"Numbers: {overview.metric}, and the share of {overview.samples} that succeeded where it is not all.",
            style="dim",
        )
    )
    out.print(f"Page: {folder / PAGE}", soft_wrap=True, markup=False)


def _grid(out: Console, overview: Overview, lines: list[Line]) -> Grid:
    grid = grids.grid(out)
    grid.add_column("cell", overflow="fold")
    for protocol in overview.protocols:
        grid.add_column(style.name(protocol), no_wrap=True, justify="right")
    for arm, reference in overview.pairs:
        grid.add_column(f"{style.name(arm)} vs\n{style.name(reference)}", no_wrap=True)
    for line in lines:
        cells = [f"{line.tests} {line.place}".strip()]
        cells += [_arm(line, protocol) for protocol in overview.protocols]
        cells += [_verdict(line.comparisons.get(pair)) for pair in overview.pairs]
        grid.add_row(*cells)
    return grid


def as_data(overview: Overview, folder: Path) -> JsonObject:
    """The same for a program."""
    return {
        "campaign": overview.campaign.name,
        "depth": overview.campaign.depth,
        "folder": str(folder),
        "problems": overview.problems,
        "cells": [
            {
                "study": line.study,
                "scenario": line.label,
                "tests": line.tests,
                "where": line.where,
                "cell": line.place,
                "metric": line.metric,
                "arms": line.arms,
                "verdicts": [{"arm": arm, "reference": ref, "verdict": one.kind, "ratio": one.row["ratio"]}
                             for (arm, ref), one in line.comparisons.items()],
            }
            for line in overview.lines
        ],
        "claims": [{"id": claim.id, "cell": claim.cell, "study": claim.study, "text": claim.text,
                    "relation": claim.relation, "here": ours(claim.said)} for claim, _ in overview.claims],
    }  # fmt: skip


def _arm(line: Line, protocol: str) -> str:
    row = line.arms.get(protocol)
    if row is None:
        return numbers.NO_VALUE
    value, rate = line.value(protocol), row["success_rate"]
    return value if rate is None or rate == 1 else f"{value}\n{_share(rate)}"


def _verdict(comparison: Comparison | None) -> str:
    return numbers.NO_VALUE if comparison is None else verdict_words.headline(comparison, "x").replace(" ", "\n")


def _share(value: float | None) -> str:
    return numbers.NO_VALUE if value is None else numbers.percent(value)
