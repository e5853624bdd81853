"""What Prometheus is told at ``/metrics`` of runs that are being measured: where each stands, from finished trials.

Names and labels are those of the export ``openmetrics``, so that one dashboard shows both. A run that was being
measured at a scrape is told of until this server ends: its last state is not between two scrapes.
"""
# Statements are put together from names of our own columns and paths of one run's folder.
# ruff: noqa: S608

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb

from trifecta.design.errors import TrifectaError
from trifecta.design.metrics import METRICS
from trifecta.store import facts, parquet, views
from trifecta.store.exports import grafana, tables
from trifecta.store.exports.exposition import Durations, Families
from trifecta.store.exports.openmetrics import LABELS, RATIOS, VERDICT
from trifecta.store.exports.otlp_metrics import BOUNDS_S, buckets
from trifecta.store.run import RunDirectory
from trifecta.ui import writers
from trifecta.ui.index import Index

SHARE = 0.002
"""Of a processor; with `file_polling.SHARE` and the list's it is less than 1 %."""
_DURATION = "(done_ns - origin_ns) / 1e9"
_OF_REQUESTS = ("cell", "arm", "protocol", "valid")


class _Run:
    """What was read of one run so far."""

    def __init__(self, folder: Path) -> None:
        """Nothing was."""
        self._folder = folder
        self._names: set[str] = set()
        self._left_out = 0
        self._latest: dict[tuple[str, str], dict[str, Any]] = {}  # by cell and arm the row of its last trial
        self._requests: dict[tuple[str, ...], Durations] = {}
        self._awaited: set[str] = set()  # trials whose samples are in an object store until the run is over

    def tell(self, families: Families, *, written: bool) -> None:
        """Read what came since, and add where the run stands. UserError where its files are not what a run writes."""
        run = RunDirectory.open(self._folder)
        identity = tables.identity(self._folder)
        of_run = {"study": identity.study, "run": identity.run}
        fresh = [name for name in run.trial_names() if name not in self._names]
        self._read(fresh)
        self._verdicts(families, of_run)
        decisions = run.decisions()
        families.gauge("trifecta_run_measuring", "1 while it is being measured", of_run, written)
        families.gauge("trifecta_run_trials", "Finished trials", of_run, len(self._names))
        families.gauge("trifecta_run_trials_left_out", "Finished trials that do not count", of_run, self._left_out)
        families.gauge("trifecta_run_blocks", "Finished blocks", of_run, len(decisions))
        spent_ns = decisions[-1].get("elapsed_ns", 0) if decisions else 0
        families.gauge("trifecta_run_spent_seconds", "Time up to the last block", of_run, spent_ns / 1e9, "seconds")
        self._trials(families, of_run)
        for alike, one in sorted(self._requests.items()):
            labels = {**of_run, **dict(zip(_OF_REQUESTS, alike, strict=True))}
            families.histogram(grafana.REQUESTS, "Duration of requests", labels, one)

    def _read(self, fresh: list[str]) -> None:
        if arrived := sorted(name for name in self._awaited if self._samples(name).exists()):
            self._awaited -= set(arrived)
            self._read_requests(self._rows(arrived), [self._samples(name) for name in arrived])
        if not fresh:
            return
        rows = self._rows(fresh)
        for row in rows:
            self._latest[row["cell"], row["arm"]] = row
        there = [name for name in fresh if self._samples(name).exists()]
        if there:
            self._read_requests(rows, [self._samples(name) for name in there])
        if "stored" in facts.read(self._folder):
            self._awaited |= {*fresh} - {*there}
        self._left_out += sum(not row["valid"] for row in rows)
        self._names |= set(fresh)

    def _rows(self, names: list[str]) -> list[dict[str, Any]]:
        files = [self._folder / "trials" / f"{name}.parquet" for name in names]
        return parquet.select(f"SELECT * FROM {parquet.scan(files, union=True)} ORDER BY trial")

    def _samples(self, name: str) -> Path:
        return self._folder / "samples" / f"{name}.parquet"

    def _read_requests(self, rows: list[dict[str, Any]], samples: list[Path]) -> None:
        """Those that were answered in full, without the warm-up."""
        requests = f"SELECT trial, {_DURATION} AS d FROM ({views.of_requests(*samples)}) WHERE success AND NOT warmup"
        query = f"SELECT trial, [{', '.join(buckets())}] AS counts, sum(d) AS sum_s FROM ({requests}) GROUP BY trial"
        trials = {row["trial"]: row for row in rows}
        for one in parquet.select(query):
            row = trials[one["trial"]]
            alike = (row["cell"], row["arm"], row["protocol"], _truth(row["valid"]))
            sofar = self._requests.setdefault(alike, Durations(BOUNDS_S, [0] * (len(BOUNDS_S) + 1)))
            sofar.counts = [before + more for before, more in zip(sofar.counts, one["counts"], strict=True)]
            sofar.sum_s += one["sum_s"]

    def _trials(self, families: Families, of_run: Mapping[str, str]) -> None:
        """The metrics of the last trial of each arm in each cell."""
        for one in METRICS.values():
            name, scale, unit = grafana.exported_name(one.name)
            for row in self._latest.values():
                if (value := row.get(one.name)) is not None:
                    labels = {label: row.get(label) for label in LABELS} | {"valid": _truth(row["valid"])}
                    families.gauge(name, one.label, {**of_run, **labels}, float(value) * scale, unit)

    def _verdicts(self, families: Families, of_run: Mapping[str, str]) -> None:
        path = self._folder / "verdicts.parquet"
        if not path.exists():
            return
        rows = parquet.select(f"SELECT {', '.join((*VERDICT, *RATIOS))} FROM {parquet.scan([path])} ORDER BY ALL")
        for column, about in RATIOS.items():
            for row in rows:
                if row[column] is not None:
                    labels = {name: row[name] for name in VERDICT}
                    families.gauge(f"trifecta_verdict_{column}", about, {**of_run, **labels}, row[column])


class Exposition:
    """The answer, worked out no more often than its cost allows: all of it stays below `SHARE` of a processor."""

    def __init__(self, index: Index) -> None:
        """Of the runs of ``index``."""
        self._index = index
        self._runs: dict[str, _Run] = {}
        self._text = ""
        self._until_s = 0.0

    def text(self) -> str:
        """The text; what it was before, where it would cost too much to look again. One at a time, in a thread."""
        if time.monotonic() >= self._until_s:
            began = time.thread_time()
            self._text = self._look()
            self._until_s = time.monotonic() + (time.thread_time() - began) / SHARE
        return self._text

    def _look(self) -> str:
        families = Families()
        folders = {one.name: self._index.path(one.name) for one in self._index.look() if one.kind == "run"}
        written = writers.writers(folders.values())
        for name, folder in folders.items():
            if folder in written:
                self._runs.setdefault(name, _Run(folder))
        for name in [name for name in self._runs if name not in folders]:
            del self._runs[name]
        for name, run in self._runs.items():
            readable = True
            try:
                run.tell(families, written=folders[name] in written)
            except (TrifectaError, duckdb.Error, OSError):
                readable = False  # who opens it is told why
            families.gauge(
                "trifecta_run_readable", "0 where its files are not what a run writes", {"folder": name}, readable
            )
        return families.text()


def _truth(value: object) -> str:
    return "true" if value else "false"
