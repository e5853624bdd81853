"""The paired ratios of a cell, block by block, with the interval after each block."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from trifecta.analysis.estimate import Row, pair_blocks
from trifecta.analysis.nested import interval_of, middle_of
from trifecta.conclude.comparisons import Comparison
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.queries import QueryResult
from trifecta.design import naming
from trifecta.design.metrics import METRICS
from trifecta.design.model import AA_SUFFIX

MOST_LOOKS = 24


@dataclass(frozen=True)
class PairSeries:
    """The ratios of one arm to one reference: a value a block, the final interval, the interval after each block."""

    arm: str
    reference: str
    blocks: Sequence[int]
    ratios: Sequence[float]
    ratio: float | None
    low: float | None
    high: float | None
    looks: Sequence[int] = ()
    lows: Sequence[float | None] = ()
    highs: Sequence[float | None] = ()
    middles: Sequence[float] = ()

    @property
    def label(self) -> str:
        """``HTTP/3 / HTTP/2``."""
        return f"{naming.name(self.arm)} ÷ {naming.name(self.reference)}"


def drawn_blocks(blocks: int) -> list[int]:
    """After how many blocks the interval is drawn: all of them, or a spread that ends with the last."""
    if blocks <= MOST_LOOKS:
        return list(range(1, blocks + 1))
    steps = {round(math.exp(math.log(blocks) * i / (MOST_LOOKS - 1))) for i in range(MOST_LOOKS)}
    return sorted(steps | {blocks})


def series_of_cell(
    facts: RunFacts, cell: str, rows: Sequence[Row], comparisons: Sequence[Comparison], block_ratios: QueryResult
) -> list[PairSeries]:
    """A series for each comparison of the cell, and the baseline against itself last."""
    wanted = [*facts.pairs, (facts.baseline + AA_SUFFIX, facts.baseline)]
    metric = METRICS[facts.metric]
    series = []
    for arm, reference in wanted:
        pair = pair_blocks(cell, rows, metric, arm=arm, reference=reference, baseline=facts.baseline)
        shown = block_ratios.where(cell=cell, arm=arm, reference=reference)
        if pair.blocks == 0:
            continue
        after = drawn_blocks(pair.blocks)
        # The baseline against itself is drawn anew in each block: whatever nodes are like, it is 1.
        nodes: tuple[str, ...] = () if arm.endswith(AA_SUFFIX) else pair.nodes
        intervals = [interval_of(pair.logs[:count], nodes[:count], 1 - facts.confidence) for count in after]
        centres = [middle_of(pair.logs[:count], nodes[:count]) for count in after]
        middles = [math.nan if centre is None else math.exp(centre) for centre in centres]
        lows = [None if one.low is None else math.exp(one.low) for one in intervals]
        highs = [None if one.high is None else math.exp(one.high) for one in intervals]
        verdict = next(
            (one for one in comparisons if (one.cell, one.arm, one.reference) == (cell, arm, reference)), None
        )
        series.append(
            PairSeries(
                arm,
                reference,
                [row["block"] for row in shown],
                [row["ratio"] for row in shown],
                verdict.row["ratio"] if verdict else middles[-1],
                verdict.row["low"] if verdict else lows[-1],
                verdict.row["high"] if verdict else highs[-1],
                after,
                lows,
                highs,
                middles,
            )
        )
    return series
