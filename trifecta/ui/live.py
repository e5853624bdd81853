"""A run while it happens, read from what it has finished: its verdicts after each block, its committed trials.

Nothing asks the process that measures, and nothing but files that it is done with is read.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import duckdb

from trifecta.conclude import catalogue, facts
from trifecta.conclude.cells import cells_in_order, comparisons_of
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.queries import QueryResult
from trifecta.contract.values import JsonObject
from trifecta.design import duration, numbers
from trifecta.design.errors import UserError
from trifecta.design.model import Study
from trifecta.design.study_file import parse_study
from trifecta.report import progress, verdict_words
from trifecta.report.question_progress import standing_words
from trifecta.store import damage, parquet
from trifecta.store.run import RunDirectory
from trifecta.ui import reading, tables, writers

MOST_FAILED = 200
"""So many trials that do not count are listed, the last ones; how many there are is always said."""


@dataclass
class _TrialsRead:
    """What was read of the trials so far."""

    names: set[str] = field(default_factory=set)
    failed: list[tuple[str, str, str]] = field(default_factory=list)  # trial, check, what is said of it
    last: str = ""


class Follower:
    """One run, read again when its files change."""

    def __init__(self, folder: Path, name: str) -> None:
        """The run in ``folder``, which the page calls ``name``."""
        self._folder, self._name = folder, name
        self._trials = _TrialsRead()
        self._about: RunFacts | None = None
        self._study: Study | None = None
        self._state: object = None
        self._verdicts_of: object = None
        self._cells: list[JsonObject] = []
        self._kinds: list[str] = []

    def changed(self) -> bool:
        """Whether there is something new; looks at file times and locks, and reads nothing."""
        names = ("trials", "verdicts.parquet", "planner.jsonl", "run.json")
        state = [_time(self._folder / name) for name in names], writers.writer(self._folder)
        if state == self._state:
            return False
        self._state = state
        return True

    @property
    def about(self) -> RunFacts:
        """What the run says of itself. UserError where its files are not what a run writes."""
        if self._about is None:
            self._about = facts.read(self._folder)
        return self._about

    def document(self) -> JsonObject:
        """Where the run stands. UserError where its files are not what a run writes."""
        run = RunDirectory.open(self._folder)
        pid = writers.writer(self._folder)
        if self._study is None:
            self._study = parse_study(run.study_text, str(self._folder / "study.yaml"))
        about, study, names = self.about, self._study, run.trial_names()
        with about.naming():
            self._read_trials(names)
            decisions = run.decisions()  # before verdicts, which are written first: no block without its verdicts
            self._read_verdicts(about)
            planned = duration.trials(study)
            spent_ns = decisions[-1].get("elapsed_ns", 0) if decisions else 0
            left_ns = self._left_ns(study, planned, len(names), spent_ns) if pid is not None else None
            left = progress.left_words(left_ns, planned).removeprefix(", ")
            written = run.facts
            reason = str(decisions[-1].get("reason", "")) if decisions else ""
            own = "map" in written or "gate" in written  # ends by a question of its own, not by verdicts
            return {
                "name": self._name,
                "began": str(written.get("started_utc") or ""),
                "title": about.title,
                "state": str(written.get("state", "")),
                "ended": str(written.get("ended_because") or ""),
                "written": pid is not None,
                "trials": len(names),
                "planned": planned,
                "of": f"{numbers.count(len(names))}{'' if planned is None else f' of {numbers.count(planned)}'} trials",
                "decided": standing_words(reason) if own else progress.decided_words(self._kinds),
                "left": left,
                "spent_ns": spent_ns,
                "budget_ns": study.budget_ns,
                "reason": reason,
                "blocks": len(decisions),
                "last": self._trials.last,
                "failed": [
                    {"trial": trial, "check": check, "said": evidence}
                    for trial, check, evidence in self._trials.failed[: -MOST_FAILED - 1 : -1]
                ],
                "failed_trials": len({trial for trial, _, _ in self._trials.failed}),
                "sides": about.sides,
                "margin": about.margin,
                "arms": [tables.arm(arm) for arm in about.arms],
                "cells": self._cells,
            }

    def _left_ns(self, study: Study, planned: int | None, done: int, spent_ns: int) -> float | None:
        """As the terminal says it (`report.progress`), from when the last block was finished."""
        if planned is not None and done and spent_ns:
            return spent_ns / done * max(0, planned - done)
        if study.budget_ns is None:
            return None
        since = time.time() - (_time(self._folder / "planner.jsonl") or _time(self._folder / "study.yaml")) / 1e9
        return max(0.0, study.budget_ns - spent_ns - max(0.0, since) * 1e9)

    def _read_trials(self, names: Sequence[str]) -> None:
        """Of the trials that came since: whether they count, and why not."""
        fresh = [name for name in names if name not in self._trials.names]
        if not fresh:
            return
        paths = [self._folder / "trials" / f"{name}.parquet" for name in fresh]
        source = parquet.scan(paths, union=True)
        rows = _select(f"SELECT trial, valid, error, checks_json FROM {source} ORDER BY trial", paths)  # noqa: S608
        for row in rows:
            if not row["valid"]:
                self._trials.failed += _failures(row)
        self._trials.names |= set(fresh)
        self._trials.last = str(rows[-1]["trial"]) if rows else ""

    def _read_verdicts(self, about: RunFacts) -> None:
        path = self._folder / "verdicts.parquet"
        if (state := _time(path)) == self._verdicts_of or not path.exists():
            return
        query = f"WITH verdicts AS (SELECT * FROM {parquet.scan([path])}) {catalogue.VERDICTS.text()}"  # noqa: S608
        answer = QueryResult(catalogue.VERDICTS, _select(query, [path]))
        cells = cells_in_order(about, (str(row["cell"]) for row in answer))
        every = comparisons_of(about, answer, cells)
        self._kinds = [one.kind for one in every]
        self._cells = []
        for key in cells:
            here = [one for one in every if one.cell == key]
            self._cells.append(
                {
                    "cell": key,
                    "place": verdict_words.place_words(key, without=""),
                    "order": reading.order_words(about.arms, here),
                    "verdicts": [reading.verdict(one) for one in here],
                }
            )
        self._verdicts_of = state


def _select(query: str, paths: Sequence[Path]) -> list[dict[str, Any]]:
    """The answer of a query over files; UserError names the one of them that is damaged."""
    try:
        return parquet.select(query)
    except duckdb.Error as error:
        for path in paths:
            if problem := damage.of_file(path, path.parent.name if path.parent.name == "trials" else path.name):
                raise UserError(f"{path}: {problem}") from error
        raise


def _failures(row: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Each check that a trial failed, with its evidence; or why it has no samples."""
    trial = str(row["trial"])
    checks = cast(list[dict[str, Any]], json.loads(row["checks_json"] or "[]"))
    against = [one for one in checks if one["status"] == "fail"]
    if not against:
        return [(trial, "", progress.counts_not(trial, str(row["error"] or "")))]
    failures = []
    for one in against:
        remedy = f"; {one['remedy']}" if one.get("remedy") else ""
        failures.append((trial, str(one["check"]), progress.counts_not(trial, f"{one['evidence']}{remedy}")))
    return failures


def _time(path: Path) -> int:
    """When a file or folder was last changed, in ns; 0 where there is none."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
