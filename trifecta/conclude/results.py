"""Verdicts and checks of a run as its trials give them, where those that lie in its folder are not the run's.

A run's verdicts are kept so that they can be read quickly and asked in SQL. They are taken as they are where the
manifest has them; where it has not (changed, gone, written by an earlier version) they are worked out again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from trifecta.analysis.checks import check_run
from trifecta.analysis.checks.evidence import RunEvidence
from trifecta.analysis.verdict import verdicts
from trifecta.contract.run import RunDocument
from trifecta.contract.trial import TrialRow
from trifecta.design import naming, plan
from trifecta.design.model import Cell, CheckResult, Study, Verdict
from trifecta.design.study_file import parse_study
from trifecta.store import manifest, parquet, schema
from trifecta.store.run import RunDirectory

Row = dict[str, Any]
_BEFELL = {"changed": "was changed after the run wrote it", "missing": "is gone", "added": "is not the run's"}
_RECOMPUTED = "what follows was worked out from the trials again"
_SLACK = 1e-9  # of numbers that another processor rounds another way
_known: dict[tuple[Path, str], Results] = {}


@dataclass(frozen=True)
class Results:
    """What is to be taken instead of the files; None where a file stands. ``said``: why, a sentence each."""

    verdicts: list[Verdict] | None = None
    checks: list[CheckResult] | None = None
    said: list[str] = field(default_factory=list)


def of(run: Path) -> Results:
    """Look at a run's results; UserError where its trials are not as they were written."""
    folder = run.resolve()
    key = folder, _state(folder)
    if key not in _known:
        _known[key] = _work_out(folder)
    return _known[key]


def attach(connection: duckdb.DuckDBPyConnection, run: Path) -> Results:
    """Put what the trials give in place of the views ``verdicts`` and ``checks`` where the files do not stand."""
    results = of(run)
    if results.verdicts is not None:
        _replace(connection, "verdicts", [asdict(one) for one in results.verdicts], "false")
    if results.checks is not None:
        _replace(connection, "checks", [asdict(one) for one in results.checks], "scope IN (SELECT trial FROM trials)")
    return results


def _state(folder: Path) -> str:
    """Changes when anything does that the results rest on."""
    names = ("run.json", "study.yaml", manifest.FILE, *manifest.RESULTS)
    paths = [folder / name for name in names]
    states = [path.stat() if path.exists() else None for path in paths]
    return str([(one.st_size, one.st_mtime_ns, one.st_ctime_ns) if one else None for one in states])


def _work_out(folder: Path) -> Results:
    run = RunDirectory.open(folder)
    if not run.trial_names():
        return Results()
    if run.manifest.exists():
        return _by_manifest(run)
    return _by_trials(run)


def _by_manifest(run: RunDirectory) -> Results:
    changed = manifest.results_changed(run.path)
    if not changed:
        return Results()
    study, cells, rows = evidence(run)
    sentences = [f"{name} {_BEFELL[what]}: {_RECOMPUTED}" for name, what in changed.items()]
    judged = verdicts(study, rows, cells) if "verdicts.parquet" in changed else None
    checks = check_run(RunEvidence(study, cells, rows)) if "checks.parquet" in changed else None
    return Results(judged, checks, sentences)


def _by_trials(run: RunDirectory) -> Results:
    """Of a run without a manifest: its verdicts stand when the trials give the same."""
    path = run.path / "verdicts.parquet"
    if not path.exists():
        return Results()  # killed before its first block was judged
    study, cells, rows = evidence(run)
    stored = _stored(path)
    quick = verdicts(study, rows, cells, fixed=False)
    fresh = [asdict(one) for one in quick]
    difference = _first_difference(stored, fresh)
    if difference is None and _reasons(stored) == _reasons(fresh):
        return Results()
    # Reasons are sentences, which every version words as it does: that they are others is no accusation.
    said = [] if difference is None else [f"verdicts.parquet {difference}: {_RECOMPUTED}"]
    return Results(verdicts(study, rows, cells), None, said)


def evidence(run: RunDirectory) -> tuple[Study, list[Cell], list[TrialRow]]:
    """What a run's verdicts rest on: its study, the cells that it could do, its trials as they were written."""
    study = parse_study(run.study_text, str(run.path / "study.yaml"))
    rows = run.rows()
    return study, _cells(study, run.facts, rows), rows


def _cells(study: Study, facts: RunDocument, rows: Sequence[TrialRow]) -> list[Cell]:
    """The cells that the run could do: the family of its verdicts."""
    every = plan.cells(study)
    if "cells" in facts:
        known = set(facts["cells"])
        return [cell for cell in every if cell.key in known]
    cells_with_trials = {row["cell"] for row in rows}
    items = [*facts.get("unsupported", []), *facts.get("failed", [])]
    out = {(item["factor"], item["level"]) for item in items}
    left = {cell.key for cell in every for name, at in cell.levels.items() if (name, plan.level_text(at)) in out}
    return [cell for cell in every if cell.key in cells_with_trials or cell.key not in left]


def _stored(path: Path) -> list[Row]:
    return parquet.read(path)


def _first_difference(stored: list[Row], fresh: list[Row]) -> str | None:
    """How stored verdicts differ from the trials', but for reasons and the fixed-size analysis, in words."""
    younger = schema.YOUNGER["verdicts"]  # a run without a manifest is older than nodes
    names = [name for name in schema.VERDICTS.names if not name.startswith("fixed_") and name not in younger]
    lacking = [name for name in names if stored and name not in stored[0]]
    names.remove("reason")
    if lacking:
        return f"is of an earlier version (it has no {lacking[0]})"
    by_key = {_key(row): row for row in stored}
    for row in fresh:
        there = by_key.pop(_key(row), None)
        if there is None:
            return f"lacks the comparison {_comparison(row)}"
        if any(not _is_equal(there[name], row[name]) for name in names):
            return f"does not say what the trials give (first of {_comparison(row)})"
    return f"has a comparison too many ({_comparison(next(iter(by_key.values())))})" if by_key else None


def _reasons(rows: list[Row]) -> dict[tuple[Any, ...], Any]:
    return {_key(row): row["reason"] for row in rows}


def _key(row: Row) -> tuple[Any, ...]:
    return row.get("cell"), row.get("metric"), row.get("arm"), row.get("reference")


def _comparison(row: Row) -> str:
    arm, reference = (naming.name(str(row.get(name))) for name in ("arm", "reference"))
    return f"{arm} against {reference} in {row.get('cell')}"


def _is_equal(one: Any, other: Any) -> bool:
    if isinstance(one, int | float) and isinstance(other, int | float):
        return bool(math.isclose(one, other, rel_tol=_SLACK, abs_tol=_SLACK) or one == other)
    return bool(one == other)


def _replace(connection: duckdb.DuckDBPyConnection, name: str, rows: Sequence[Row], keep: str) -> None:
    """A table in place of a view: these rows, and of those that the view has the ones to ``keep``."""
    connection.execute(f"CREATE TABLE anew AS SELECT * FROM {name} WHERE {keep}")  # noqa: S608 - constants
    for row in rows:
        columns = ", ".join(f'"{column}"' for column in row)
        places = ", ".join("?" * len(row))
        connection.execute(f"INSERT INTO anew ({columns}) VALUES ({places})", list(row.values()))  # noqa: S608 - fields
    connection.execute(f"DROP VIEW {name}")
    connection.execute(f"ALTER TABLE anew RENAME TO {name}")
