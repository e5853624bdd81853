"""Gathers everything a report shows: answers, comparisons, tables and figures, cell by cell."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypedDict

import duckdb

from trifecta.contract.trial import TrialRow
from trifecta.design.errors import UserError
from trifecta.design.metrics import METRICS
from trifecta.design.model import AA_SUFFIX
from trifecta.report import catalogue, conformance, exclusions, queries
from trifecta.report.comparisons import Comparison, VerdictRow, from_rows, levels
from trifecta.report.facts import RunFacts
from trifecta.report.queries import Answer

_WHOLE_RUN = (
    catalogue.TOTALS,
    catalogue.VERDICTS,
    catalogue.CHECK_MATRIX,
    catalogue.CHECK_FINDINGS,
    catalogue.CHECKS_BY_CELL,
    catalogue.EXCLUDED,
    catalogue.PATHS,
    catalogue.PROBES,
    catalogue.PARITY,
    catalogue.HEADROOM,
    catalogue.COST,
    conformance.MATRIX,
    conformance.FINDINGS,
    conformance.PROXIES,
    exclusions.BY_ARM,
)
# These read every sample; they run beside the drawing of figures that do not need them.
_OVER_SAMPLES = (
    catalogue.PERCENTILES,
    catalogue.ECDF,
    catalogue.PHASES,
    catalogue.THROUGHPUT,
    catalogue.TLS,
    catalogue.ERRORS,
)


@dataclass
class Answers:
    """The answers of all queries; those over samples may still be on their way."""

    small: dict[str, Answer]
    large: dict[str, Future[Answer]]

    def __getitem__(self, query: catalogue.Query) -> Answer:
        name = query.name
        return self.small[name] if name in self.small else self.large[name].result()


def ask_all(connection: duckdb.DuckDBPyConnection, facts: RunFacts, pool: ThreadPoolExecutor) -> Answers:
    """Ask everything; the large queries run one after the other in ``pool``."""
    large = {query.name: pool.submit(queries.ask, connection, query) for query in _OVER_SAMPLES}
    small = {query.name: queries.ask(connection, query) for query in _WHOLE_RUN}
    for query in (catalogue.BLOCK_RATIOS, catalogue.NOISE):
        small[query.name] = queries.ask(connection, catalogue.for_metric(query, facts.metric))
    return Answers(small, large)


def cells_in_order(facts: RunFacts, keys: Iterable[str]) -> list[str]:
    """Cells in the order of the study's levels, unknown ones last."""
    factors = facts.study.get("factors") or {}
    positions = {name: {str(level): i for i, level in enumerate(found)} for name, found in factors.items()}

    def position(cell: str) -> tuple[Any, ...]:
        there = levels(cell)
        return (*(positions[name].get(there.get(name, ""), 999) for name in facts.factors), cell)

    return sorted(set(keys), key=position)


def comparisons(facts: RunFacts, verdicts: Answer, cells: Sequence[str]) -> list[Comparison]:
    """Comparisons of the study's metric, cell by cell in order."""
    place = {cell: i for i, cell in enumerate(cells)}
    found = from_rows(verdicts.of(VerdictRow), facts.metric)
    return sorted(found, key=lambda one: (place.get(one.cell, len(place)), one.arm, one.reference))


class CellChecks(TypedDict, total=False):
    """Of `catalogue.CHECKS_BY_CELL`: what the checks of a cell's trials said, and how many trials that excludes."""

    passed: int
    warned: int
    failed: int
    unknown: int
    excluded: int


def checks_of(answer: Answer, cell: str) -> CellChecks | None:
    """What the checks of a cell said; None where there was none."""
    return next(iter(answer.of(CellChecks, cell=cell)), None)


def arms_of(facts: RunFacts) -> list[str]:
    """Arms that figures and tables show, oldest protocol first; the A/A run shows in the ratios only."""
    return facts.arms


def aa_arm(facts: RunFacts) -> str:
    """The baseline's second run."""
    return facts.baseline + AA_SUFFIX


def finite(value: Any) -> bool:
    """Whether a value is a usable number."""
    return value is not None and math.isfinite(value)


def queries_of_cells(facts: RunFacts) -> list[catalogue.Query]:
    """The queries behind the figures of a cell."""
    ratios = catalogue.for_metric(catalogue.BLOCK_RATIOS, facts.metric)
    return [ratios, catalogue.ECDF, catalogue.PHASES, catalogue.THROUGHPUT, catalogue.COST]


def trial_values(connection: duckdb.DuckDBPyConnection, metric: str) -> dict[str, list[TrialRow]]:
    """The values of trials that the analysis needs, by cell."""
    if metric not in METRICS:
        raise UserError(f"metric {metric!r} of the study is not known; known are {', '.join(METRICS)}")
    columns = ", ".join(dict.fromkeys(("cell", "arm", "block", "valid", "samples", "success_rate", metric)))
    sql = f"SELECT {columns} FROM trials ORDER BY block, trial"  # noqa: S608 - known columns
    found: dict[str, list[TrialRow]] = {}
    for row in queries.select(connection, TrialRow, sql):
        found.setdefault(row["cell"], []).append(row)
    return found
