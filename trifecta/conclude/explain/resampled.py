"""Published procedures on the samples of a run: which apply, and what they would have concluded."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import duckdb

from trifecta.analysis.resampling import (
    NO_NOISE_FLOOR,
    SAME,
    SINGLE_LOAD,
    TIMES,
    Block,
    Change,
    Concluded,
    Procedure,
    by_block,
    change,
    conclude,
    different_work,
    failures,
    retries_hidden,
)
from trifecta.conclude import catalogue, facts, queries
from trifecta.conclude.cells import cells_in_order, comparisons_of
from trifecta.conclude.comparisons import Comparison
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.visits.published import study_of
from trifecta.store import request_times

HEAVY_PAGE_REQUESTS = (120, 123, 134)  # of the three loads that baccichet2021 compared


def conclusions(run: Path, cells: Sequence[str] | None = None, *, draws: int = TIMES) -> list[Concluded]:
    """What the procedures would have concluded of every comparison of a run, or of some of its cells.

    Empty where the study's metric is no time: the procedures compared times.
    """
    about = facts.read(run)
    with queries.connect(run) as connection:
        verdicts = queries.ask(connection, catalogue.VERDICTS)
        order = cells_in_order(about, (row["cell"] for row in verdicts))
        comparisons = comparisons_of(about, verdicts, order)
        return of_comparisons(
            connection, about, [one for one in comparisons if cells is None or one.cell in cells], draws
        )


def of_comparisons(
    connection: duckdb.DuckDBPyConnection, about: RunFacts, comparisons: Sequence[Comparison], draws: int = TIMES
) -> list[Concluded]:
    """The same of these comparisons."""
    if not about.metric.startswith("latency_"):
        return []
    study = study_of(about)
    fixed = study.min_blocks == study.max_blocks
    conclusions = []
    for cell in dict.fromkeys(one.cell for one in comparisons):
        pairs = [
            (one.arm, one.reference, _winner(one, set_in_advance=fixed)) for one in comparisons if one.cell == cell
        ]
        conclusions += of_cell(connection, about, cell, pairs, draws=draws)
    return conclusions


def of_cell(
    connection: duckdb.DuckDBPyConnection,
    about: RunFacts,
    cell: str,
    pairs: Sequence[tuple[str, str, str | None]],
    names: Collection[str] | None = None,
    *,
    draws: int = TIMES,
) -> list[Concluded]:
    """Of one cell, for each (arm, reference, truth); ``names``: only these procedures."""
    blocks = times(connection, about, cell)
    conclusions = []
    for procedure in procedures(about, blocks):
        if names is None or procedure.name in names:
            conclusions += conclude(
                blocks, pairs, procedure, cell=cell, seed=about.seed, draws=draws, confidence=about.confidence
            )
    return conclusions


def procedures(about: RunFacts, blocks: Sequence[Block]) -> list[Procedure]:
    """Those that can be carried out on these samples: retries need failures, unequal work needs a page."""
    known_procedures = [SINGLE_LOAD, NO_NOISE_FLOOR]
    if failures(blocks):
        known_procedures.append(retries_hidden())
    if about.is_browser and not about.is_video:
        known_procedures.append(different_work(HEAVY_PAGE_REQUESTS))
    return known_procedures


def retry_change(blocks: Sequence[Block], about: RunFacts, arm: str, against: str | None) -> Change | None:
    """What hidden retries do to the mean of an arm, or to its ratio to another; None where nothing failed."""
    if not failures(blocks):
        return None
    return change(blocks, arm, against, retries_hidden(), NO_NOISE_FLOOR, seed=about.seed, confidence=about.confidence)


def times(connection: duckdb.DuckDBPyConnection, about: RunFacts, cell: str) -> list[Block]:
    """The samples of a cell, by block and protocol."""
    work = about.workload
    request = work.get("visit_timeout_ns") if about.is_browser else work.get("request_timeout_ns")
    limits = int(request or 0), int(work.get("connect_timeout_ns") or 0)
    return by_block(request_times.of_cell(connection, cell, *limits))


def _winner(comparison: Comparison, *, set_in_advance: bool = False) -> str | None:
    """Who is faster by the verdict; with a number of blocks set in advance by the interval that holds for that."""
    known = {"faster": comparison.arm, "slower": comparison.reference, "same": SAME}.get(comparison.kind)
    if known or not set_in_advance:
        return known
    low, high = comparison.row["fixed_low"], comparison.row["fixed_high"]
    if high is not None and high < 1:
        return comparison.arm
    return comparison.reference if low is not None and low > 1 else None
