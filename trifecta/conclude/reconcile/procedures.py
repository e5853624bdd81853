"""The studies' own procedures on the cells that their claims are about, held against what all blocks say there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trifecta.analysis.reconciling import PairEvidence, Place
from trifecta.analysis.resampling import SAME, Change, Concluded, truth
from trifecta.analysis.success import clopper_pearson
from trifecta.conclude import facts, queries
from trifecta.conclude.explain import resampled
from trifecta.design.errors import TrifectaError
from trifecta.threats import THREATS

PROCEDURES = ("single-load", "no-noise-floor", "retries-hidden", "different-work")


@dataclass(frozen=True)
class Procedure:
    """What a study's own procedure would have concluded on our data, over the cells that its claims are about.

    ``decided`` is the number of cells with a truth: all blocks name the faster protocol. ``draws``, ``wrong``, ``rate``
    with its interval, ``least`` and ``most`` (of a cell) are of these cells alone. In ``same`` cells there is no
    difference beyond the margin, ``open`` ones have no truth; there nothing counts as right or wrong. ``contradict`` is
    how often two such conclusions name different protocols, the mean over all ``cells``: it needs no truth.
    """

    study: str
    name: str
    cells: int
    decided: int
    same: int
    open: int
    draws: int
    wrong: int
    rate: float | None
    low: float | None
    high: float | None
    least: float | None
    most: float | None
    contradict: float | None
    ratio_low: float | None  # the widest of all cells
    ratio_high: float | None


@dataclass(frozen=True)
class ProcedureResults:
    """All procedures; the conclusions of each study by cell; what hidden retries change; what could not be read."""

    procedures: list[Procedure]
    cells: list[tuple[str, str, Concluded]]
    """Study, run, and what was concluded."""
    retries: list[tuple[Place, str, Change]]
    problems: list[str]


def carry_out(folder: Path, pairs: Sequence[PairEvidence], draws: int) -> ProcedureResults:
    """Carry them out on every cell that the claims of the pairs are about, once a cell and pair of protocols."""
    results = ProcedureResults([], [], [], [])
    done: set[tuple[str, ...]] = set()
    for evidence in pairs:
        for place in (place for side in evidence.places for place in side):
            study, pair = place.levels["study"], evidence.pair
            names = [name for name in PROCEDURES if name in THREATS and study in THREATS[name].studies]
            key = (place.run, place.cell, *sorted((pair.arm, pair.to)))
            run = folder / place.run
            if not names or key in done or not (run / "run.json").is_file() or not place.of_time:
                continue
            done.add(key)
            try:
                _cell(results, run, place, evidence, draws=draws, names=names)
            except TrifectaError as error:
                results.problems.append(str(error))
    groups = dict.fromkeys((study, one.procedure) for study, _, one in results.cells)
    for study, name in sorted(groups):
        every = [one for own, _, one in results.cells if (own, one.procedure) == (study, name)]
        results.procedures.append(pool_cells(study, name, every))
    return results


def _cell(
    results: ProcedureResults,
    run: Path,
    place: Place,
    pair: PairEvidence,
    *,
    draws: int,
    names: Sequence[str],
) -> None:
    arm, to, identity = pair.pair.arm, pair.pair.to, pair.pair.id
    about = facts.read(run)
    with queries.connect(run) as connection:
        blocks = resampled.times(connection, about, place.cell)
        right = truth(blocks, arm, to, about.margin, about.confidence)
        concluded = resampled.of_cell(connection, about, place.cell, [(arm, to, right)], names, draws=draws)
    if "retries-hidden" in names:
        change = resampled.retry_change(blocks, about, arm, to)
        if change is not None:
            results.retries.append((place, identity, change))
    results.cells.extend((place.levels["study"], place.run, one) for one in concluded if one.draws)


def pool_cells(study: str, name: str, every: Sequence[Concluded]) -> Procedure:
    """One procedure over its cells; only where all blocks name the faster protocol is a conclusion right or wrong."""
    kinds = Counter("open" if one.winner is None else "same" if one.winner == SAME else "decided" for one in every)
    named = [one for one in every if one.winner not in (None, SAME)]
    draws, wrong = sum(one.draws for one in named), sum(one.wrong for one in named)
    low, high = clopper_pearson(wrong, draws, 0.95) if draws else (None, None)
    rates = [one.rate for one in named if one.rate is not None]
    contradictions = [one.contradict for one in every if one.contradict is not None]
    return Procedure(
        study=study,
        name=name,
        cells=len(every),
        decided=kinds["decided"],
        same=kinds["same"],
        open=kinds["open"],
        draws=draws,
        wrong=wrong,
        rate=wrong / draws if draws else None,
        low=low,
        high=high,
        least=min(rates, default=None),
        most=max(rates, default=None),
        contradict=sum(contradictions) / len(contradictions) if contradictions else None,
        ratio_low=min((one.ratio_low for one in every if one.ratio_low is not None), default=None),
        ratio_high=max((one.ratio_high for one in every if one.ratio_high is not None), default=None),
    )
