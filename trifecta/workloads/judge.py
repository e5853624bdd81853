"""Puts the evidence of a trial before the checks, and keeps what they say."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

from trifecta.analysis import node_faults
from trifecta.analysis.checks import check_run, check_trial, echo, is_valid
from trifecta.analysis.checks.evidence import Evidence, RunEvidence
from trifecta.analysis.checks.visits import Visits
from trifecta.analysis.deliveries import lies
from trifecta.analysis.estimate import node_of
from trifecta.contract.codec import plain
from trifecta.contract.machine import StaticFacts
from trifecta.contract.trial import TrialRow
from trifecta.contract.values import JsonObject
from trifecta.design import plan
from trifecta.design.model import Cell, CheckResult, Study
from trifecta.store.files import to_json
from trifecta.workloads.aggregate import aggregate
from trifecta.workloads.trial import Outcome
from trifecta.workloads.visits.aggregate import aggregate_visits

DELIVERED = "delivered"  # of the checks of the run that exclude trials; the other is `node_faults.CHECK`
_REMEDY = "check the link's configuration in the run's log, and the engine"


class Judge:
    """Judges the trials of a run as they come, and the run at its end."""

    def __init__(
        self,
        study: Study,
        cells: Sequence[Cell],
        rows: Sequence[TrialRow],
        facts: StaticFacts,
        samples_folder: Path,
    ) -> None:
        """``rows`` are the trials committed by an earlier part of a resumed run; ``facts`` those of the machine."""
        self._study = study
        self._cells = cells
        self._facts = facts
        self._earlier = list(rows)
        self._samples_folder = samples_folder
        self._checks = [CheckResult(**item) for row in rows for item in json.loads(row["checks_json"] or "[]")]
        self._lied = {
            str(row["path"]): item["evidence"].split(": ", 1)[-1]
            for row in rows
            for item in json.loads(row["checks_json"] or "[]")
            if item["check"] == DELIVERED
        }
        self._block: tuple[str, int] | None = None
        self._siblings: list[Evidence] = []

    def trial(self, outcome: Outcome) -> list[CheckResult]:
        """Check a trial; writes ``valid`` and ``checks_json`` into its row."""
        block = (outcome.trial.cell.key, outcome.trial.block)
        if block != self._block:
            self._block = block
            self._siblings = [self._remember(row, outcome) for row in self._earlier if _block_of(row) == block]
        details = outcome.details
        evidence = Evidence(
            study=self._study,
            trial=outcome.trial,
            row=outcome.row,
            samples=outcome.aggregate,
            load=plain(details.load),
            link=plain(details.link),
            server=plain(details.server),
            probe=plain(details.probe),
            machine=details.machine,
            transport=None if details.machine is None else details.machine["transport"],
            facts=self._facts,
            visits=outcome.visits,
            siblings=tuple(self._siblings),
            trouble=outcome.row["error"],
        )
        self._siblings.append(dataclasses.replace(evidence, siblings=()))
        results = check_trial(evidence)
        outcome.row["valid"] = outcome.row["error"] is None and is_valid(results)
        outcome.row["checks_json"] = to_json([dataclasses.asdict(result) for result in results])
        self._checks += results
        return results

    def _remember(self, row: TrialRow, outcome: Outcome) -> Evidence:
        """The evidence of a trial of an interrupted block, from its files."""
        machine = json.loads(row["machine_json"] or "null")
        samples = self._samples_folder / f"{row['trial']}.parquet"
        level = plan.treatment(self._study, outcome.trial.cell, row["arm"]).level
        trial = dataclasses.replace(
            outcome.trial, trial=row["trial"], arm=row["arm"], position=row["position"], level=level
        )
        return Evidence(
            study=self._study,
            trial=trial,
            row=row,
            samples=aggregate(samples) if samples.exists() else None,
            load=json.loads(row["load_json"] or "null"),
            link=json.loads(row["link_json"] or "null"),
            server=json.loads(row["server_json"] or "null"),
            probe=json.loads(row["probe_json"] or "null"),
            machine=machine,
            transport=(machine or {}).get("transport"),
            facts=self._facts,
            visits=self._visits(row["trial"]),
            trouble=row["error"],
        )

    def _visits(self, trial: str) -> Visits | None:
        """What a browser did in a trial, from the files it left beside its samples."""
        run_folder = self._samples_folder.parent
        visits, fetches, playback = (
            run_folder / name / f"{trial}.parquet" for name in ("visits", "fetches", "playback")
        )
        return aggregate_visits(visits, fetches, playback).visits if visits.exists() and fetches.exists() else None

    def took(self, row: TrialRow) -> list[CheckResult]:
        """Keep what the checks said of a trial that was judged where it ran, on a node of a cluster; that."""
        results = [CheckResult(**item) for item in json.loads(row["checks_json"] or "[]")]
        self._checks += results
        return results

    def distrust(self, rows: Sequence[TrialRow]) -> list[TrialRow]:
        """The trials that no longer count: the link of their path did not do what was asked over the run, or the node
        that they were run on does not agree with itself.

        Their rows are changed. A path or a node stays condemned: the promise of the test is about all looks together.
        """
        changed = [*self._of_lying_paths(rows), *self._of_left_out_nodes(rows)]
        return list({row["trial"]: row for row in changed}.values())

    def _of_left_out_nodes(self, rows: Sequence[TrialRow]) -> list[TrialRow]:
        """The trials of nodes that do not count, and are not marked yet; their rows are changed."""
        out = node_faults.left_out(self._study, rows)
        changed: list[TrialRow] = []
        for row in rows:
            reason = out.get(node_of(row))
            results = json.loads(row["checks_json"] or "[]") if reason else []
            if reason is None or any(item["check"] == node_faults.CHECK for item in results):
                continue
            scope, remedy = str(row["trial"]), node_faults.REMEDY
            self._mark(row, results, CheckResult(node_faults.CHECK, scope, "fail", reason, remedy=remedy))
            changed.append(row)
        return changed

    def _mark(self, row: TrialRow, results: Sequence[JsonObject], result: CheckResult) -> None:
        """A trial does not count because of this, beside what its own checks said."""
        row["valid"] = False
        row["checks_json"] = to_json([*results, dataclasses.asdict(result)])
        self._checks.append(result)

    def _of_lying_paths(self, rows: Sequence[TrialRow]) -> list[TrialRow]:
        """The trials whose path is not believed, and that are not marked yet; their rows are changed."""
        for row in rows:
            if echo.REMEDY not in (row["checks_json"] or ""):
                continue
            for item in json.loads(row["checks_json"] or "[]"):
                if echo.REMEDY in item["remedy"]:  # no matter of chance: one trial is enough
                    self._lied.setdefault(str(row["path"]), f"in {row['trial']} {item['evidence']}")
        for path, problem in lies(self._study, rows).items():
            self._lied.setdefault(path, problem)
        if not self._lied:
            return []
        changed = []
        for row in rows:
            reason = self._lied.get(str(row.get("path")))
            results = json.loads(row["checks_json"] or "[]")
            if reason is None or any(item["check"] == DELIVERED for item in results):
                continue
            text = f"the link of path {row['path']} is not believed: {reason}"
            self._mark(row, results, CheckResult(DELIVERED, str(row["trial"]), "fail", text, remedy=_REMEDY))
            changed.append(row)
        return changed

    def run(self, rows: Sequence[TrialRow]) -> list[CheckResult]:
        """Check the run as a whole; every check of it, those of its trials first."""
        return [*self._checks, *check_run(RunEvidence(self._study, self._cells, rows))]


def _block_of(row: TrialRow) -> tuple[str, int]:
    return str(row["cell"]), int(row["block"])
