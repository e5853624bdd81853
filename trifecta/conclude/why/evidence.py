"""What a run says before anything is removed: which difference is asked about, and what points to causes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict

import duckdb

from trifecta.conclude import catalogue, facts, queries
from trifecta.conclude.cells import cells_in_order, comparisons_of
from trifecta.conclude.comparisons import Comparison
from trifecta.conclude.explain import chain
from trifecta.conclude.facts import RunFacts
from trifecta.design import plan
from trifecta.design.errors import UserError
from trifecta.design.study_file import parse_study
from trifecta.design.why.cause import CellEvidence
from trifecta.design.why.rungs import Case, case_of, cell_named, with_evidence
from trifecta.store.run import RunDirectory

_MOST_OVERHEAD = 2.0


@dataclass(frozen=True)
class WhyQuestion:
    """The difference that is asked about: its cell and arms, with what the run has shown, and a block's wall time."""

    case: Case
    block_ns: float


class _Counts(TypedDict):
    """What the path did to the packets of a cell."""

    lost: int | None
    dropped: int | None
    overtaken: int | None


class _WallTime(TypedDict):
    """The wall time of a trial of an arm."""

    level: str
    took_ns: float


_PATH = """
SELECT sum(l.lost) AS lost, sum(l.queue_dropped) AS dropped, sum(l.reordered) AS overtaken
FROM link AS l JOIN trials AS t USING (trial) WHERE t.cell = ? AND list_contains(?, t.level)
"""
_TOOK = "SELECT level, median(ended_ns - started_ns) AS took_ns FROM trials WHERE cell = ? GROUP BY level"
_SPAN = "SELECT max(ended_ns) - min(started_ns), sum(ended_ns - started_ns) FROM trials"


def read(run: Path, cell: str | None = None, arm: str | None = None) -> WhyQuestion:
    """The decided difference with the largest effect, or that of a cell and an arm. UserError where none is decided
    and none is named.
    """
    about = facts.read(run)
    study = parse_study(RunDirectory.open(run).study_text, str(run / "study.yaml"))
    named = None if cell is None else cell_named(study, cell).key
    with about.naming(), queries.connect(run) as connection:
        queries.hold(connection, "request_sums")
        verdicts = queries.ask(connection, catalogue.VERDICTS)
        cells = cells_in_order(about, (row["cell"] for row in verdicts))
        comparisons = comparisons_of(about, verdicts, cells)
        candidates = [one for one in comparisons if one.reference == about.baseline and arm in (None, one.arm)]
        one = _largest([each for each in candidates if named in (None, each.cell)], open_too=named is not None)
        if one is None and named is None:
            whose = f" of {arm}" if arm else ""
            raise UserError(
                f"{run}: no difference{whose} from {about.baseline} is decided; name one with --cell and --arm, or go "
                f"on: `trifecta resume {run} --blocks 10`"
            )
        key = named or (one.cell if one is not None else "")
        own = arm or (one.arm if one is not None else plan.other_levels(study)[-1])
        case = case_of(study, next(each for each in plan.cells(study) if each.key == key), own, about.baseline)
        chains = chain.chains(connection, about, comparisons, [one], packets=False, metrics=False).chains if one else []
        cell_evidence = _cell_evidence(connection, case.evidence, key, chains[0] if chains else None)
        return WhyQuestion(with_evidence(case, cell_evidence), _block_ns(connection, about, key, (own, about.baseline)))


def _largest(comparisons: Sequence[Comparison], *, open_too: bool) -> Comparison | None:
    """The one with the largest effect of those decided, else, where a cell is named, of all."""

    def size(comparison: Comparison) -> float:
        ratio = comparison.row["ratio"]
        return max(ratio, 1 / ratio) if ratio else 0.0

    decided = [one for one in comparisons if one.kind in ("faster", "slower")]
    return max(decided or (comparisons if open_too else ()), key=size, default=None)


def _cell_evidence(
    connection: duckdb.DuckDBPyConnection, cell_evidence: CellEvidence, cell: str, seen_chain: chain.Chain | None
) -> CellEvidence:
    (path,) = queries.select(connection, _Counts, _PATH, [cell, [cell_evidence.arm, cell_evidence.to]])
    struck, shares = {}, {}
    if seen_chain is not None:
        struck = {one.check: one.counts["fail"] + one.counts["warn"] for one in seen_chain.checked}
        for split in seen_chain.splits[:1]:
            shares = {one.part: one.share for one in split.causes.causes if one.share is not None}
    return replace(
        cell_evidence,
        struck=struck,
        shares=shares,
        lost=int(path["lost"] or 0),
        queue_dropped=int(path["dropped"] or 0),
        overtaken=int(path["overtaken"] or 0) or int(_overtakes(cell_evidence)),
    )


def _overtakes(cell_evidence: CellEvidence) -> bool:
    """Whether the path was asked to let packets overtake."""
    jitter = cell_evidence.path.get("jitter")
    halves = [jitter, *jitter.values()] if isinstance(jitter, dict) else []
    return bool(cell_evidence.path.get("reorder")) or any(
        isinstance(one, dict) and one.get("reorder") is True for one in halves
    )


def _block_ns(connection: duckdb.DuckDBPyConnection, about: RunFacts, cell: str, pair: tuple[str, str]) -> float:
    """The wall time of a block of two arms, the reference twice, with what lies between trials."""
    took = {row["level"]: row["took_ns"] for row in queries.select(connection, _WallTime, _TOOK, [cell])}
    # A run that was gone on with has a long pause between trials, which the limit keeps out.
    totals = connection.execute(_SPAN).fetchone()
    overhead = totals[0] / totals[1] if totals and totals[1] else 1.0
    known = [took[arm] for arm in (*pair, pair[1]) if took.get(arm)]
    if len(known) < 3:
        raise UserError(f"{about.folder}: has no trial of {cell} for both arms; choose another cell with --cell")
    return sum(known) * min(max(1.0, overhead), _MOST_OVERHEAD)
