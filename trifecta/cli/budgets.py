"""A reproduction's runs and its clock, as the loop of a budget (`budgeting`) needs them. Inside the lab."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path

import click

from trifecta.analysis.places import Place
from trifecta.cli.budgeting import Budget, lost_s, with_elapsed
from trifecta.cli.clusters import OnCluster
from trifecta.cli.running import runner
from trifecta.conclude.reproduction.result import Result, StudyResult, read
from trifecta.conclude.reproduction.spending import BUDGET_SPENT
from trifecta.contract.invocation import ReproductionInvocation
from trifecta.design.campaign import Campaign
from trifecta.design.errors import CannotError
from trifecta.report import html
from trifecta.store import reproduction
from trifecta.store.run import RunDirectory
from trifecta.workloads.campaign import study_state
from trifecta.workloads.extending import RunExtension

PART = "budget"
"""The part of ``elapsed_s`` that was spent on open claims."""


class Lab:
    """The runs of a reproduction."""

    def __init__(
        self,
        folder: Path,
        campaigns: Mapping[str, Campaign],
        problems: Mapping[str, Mapping[str, str]],
        stop: Callable[[], bool],
        *,
        quiet: bool,
        cluster: OnCluster | None = None,
    ) -> None:
        """``problems``: by study what could not run in this session. ``cluster``: where blocks are run."""
        self.folder, self.campaigns, self.problems = folder, campaigns, problems
        self.stop, self.quiet, self.cluster = stop, quiet, cluster
        self.changed: set[str] = set()
        self._studies: dict[str, StudyResult] = {}
        self._runs: dict[str, list[Place]] = {}

    def read(self, changed: Collection[str]) -> Result:
        """Every claim judged; runs that did not change are not read again."""
        for run in changed:
            self._runs.pop(run, None)
            self._studies.pop(run.partition("/")[0], None)
        return read(self.folder, self.campaigns, self.problems, self._studies, self._runs)

    def measure(self, run: str, cells: Mapping[str, int], left_s: float) -> str:
        """Go on with a run until these cells have so many blocks, at most so long; why it could not, or nothing."""
        study, _, name = run.partition("/")
        path = self.folder / run
        begun = study_state(path.parent, name) == "begun"  # interrupted: to the end that it was given then
        done = {place.cell: place.done for place in self._runs.get(run, ())}
        if not begun and all(done.get(cell, 0) >= blocks for cell, blocks in cells.items()):
            return ""
        more = None if begun else RunExtension(budget_ns=max(1, round(left_s * 1e9)), cells=cells)
        self.changed.add(run)
        try:
            campaign = self.campaigns[study]
            run_one = runner(self.stop, quiet=self.quiet, more=more, tolerated=campaign.tolerate, cluster=self.cluster)
            one = run_one(campaign.studies[name], path, True)
        except CannotError as error:
            return str(error)
        return BUDGET_SPENT if one.kind == "budget" else ""

    def elapsed_s(self, run: str) -> float:
        """How long a run took in all."""
        return elapsed_s(self.folder / run)


def elapsed_s(run: Path) -> float:
    """How long a run took so far, as its planner noted after every block, in seconds."""
    return max((int(one["elapsed_ns"]) for one in RunDirectory.open(run).decisions()), default=0) / 1e9


def recover(folder: Path, invocation: ReproductionInvocation) -> None:
    """Count what a step took that was killed: its runs know it, and nobody else."""
    lost = lost_s(folder, lambda run: elapsed_s(folder / run))
    if not lost:
        return
    steps = reproduction.steps(folder)
    invocation["elapsed_s"][PART] = round(invocation["elapsed_s"].get(PART, 0.0) + lost, 1)
    reproduction.write(folder, invocation)
    reproduction.write_steps(folder, [*steps[:-1], with_elapsed(steps[-1], lambda run: elapsed_s(folder / run))])


def spend(folder: Path, invocation: ReproductionInvocation, lab: Lab, note: Callable[[], None]) -> Result:
    """Spend what is left of the budget on the claims that are open; all that was found. ``note`` keeps the time."""

    def say(words: str) -> None:
        if not lab.quiet:
            click.echo(words, err=True)

    def spent_s() -> float:
        note()
        return sum(invocation["elapsed_s"].values())

    result, spending = Budget(folder, (invocation.get("budget_ns") or 0) / 1e9, spent_s, lab.stop, say).spend(lab)
    for run in sorted(lab.changed):
        html.write_report(folder / run)
    return replace(result, spending=spending)
