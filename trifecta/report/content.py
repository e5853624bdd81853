"""Asks everything that a report shows of the verdicts and checks of a run, and of its samples."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypedDict

import duckdb

from trifecta.conclude import catalogue, evidence_queries, exclusions, queries
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.queries import QueryResult
from trifecta.conclude.query import Query, for_metric
from trifecta.report import conformance

_WHOLE_RUN = (
    catalogue.TOTALS,
    catalogue.VERDICTS,
    evidence_queries.CHECK_MATRIX,
    evidence_queries.CHECK_FINDINGS,
    evidence_queries.CHECKS_BY_CELL,
    evidence_queries.EXCLUDED,
    evidence_queries.PATHS,
    evidence_queries.PROBES,
    evidence_queries.PARITY,
    evidence_queries.HEADROOM,
    catalogue.COST,
    conformance.MATRIX,
    conformance.FINDINGS,
    conformance.PROXIES,
    exclusions.BY_ARM,
)
# These read every sample; they run beside the drawing of figures that do not need them.
_OF_CURVES = (catalogue.PERCENTILES, catalogue.ECDF)
_OVER_SAMPLES = (
    catalogue.PHASES,
    catalogue.THROUGHPUT,
    evidence_queries.TLS,
    evidence_queries.ERRORS,
)


@dataclass
class QueryResults:
    """The answers of all queries; those over samples may still be on their way."""

    small: dict[str, QueryResult]
    large: dict[str, Future[QueryResult]]

    def __getitem__(self, query: Query) -> QueryResult:
        name = query.name
        return self.small[name] if name in self.small else self.large[name].result()


def ask_all(connection: duckdb.DuckDBPyConnection, facts: RunFacts, pool: ThreadPoolExecutor) -> QueryResults:
    """Ask everything; the large queries run one after the other in ``pool``."""
    curves_table = pool.submit(queries.keep, connection, catalogue.CURVES)
    large = {query.name: pool.submit(_of_curves, curves_table, connection, query) for query in _OF_CURVES}
    large |= {query.name: pool.submit(queries.ask, connection, query) for query in _OVER_SAMPLES}
    small = {query.name: queries.ask(connection, query) for query in _WHOLE_RUN}
    for query in (catalogue.BLOCK_RATIOS, evidence_queries.NOISE):
        small[query.name] = queries.ask(connection, for_metric(query, facts.metric))
    return QueryResults(small, large)


def _of_curves(curves_table: Future[None], connection: duckdb.DuckDBPyConnection, query: Query) -> QueryResult:
    curves_table.result()  # raises what went wrong with it
    return QueryResult(query, queries.ask(connection, catalogue.FROM_CURVES[query.name]).rows)


class CellChecks(TypedDict, total=False):
    """Of `evidence_queries.CHECKS_BY_CELL`: what the checks of a cell's trials said, and how many that excludes."""

    passed: int
    warned: int
    failed: int
    unknown: int
    excluded: int


def checks_of(answer: QueryResult, cell: str) -> CellChecks | None:
    """What the checks of a cell said; None where there was none."""
    return next(iter(answer.of(CellChecks, cell=cell)), None)


def queries_of_cells(facts: RunFacts) -> list[Query]:
    """The queries behind the figures of a cell."""
    ratios = for_metric(catalogue.BLOCK_RATIOS, facts.metric)
    return [ratios, catalogue.ECDF, catalogue.PHASES, catalogue.THROUGHPUT, catalogue.COST]
