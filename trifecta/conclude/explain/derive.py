"""Explains every comparison of a run to the baseline: the view ``causes``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from trifecta.analysis.causes import Cause
from trifecta.conclude.comparisons import Comparison
from trifecta.conclude.explain.chain import Chain, Explained, chains
from trifecta.conclude.facts import RunFacts

Row = dict[str, object]


@dataclass(frozen=True)
class Derived:
    """The chains of a run, and the rows of the view ``causes``."""

    explained: Explained
    rows: dict[str, list[Row]]


def derive(connection: duckdb.DuckDBPyConnection, about: RunFacts, comparisons: Sequence[Comparison]) -> Derived:
    """Explain every comparison to the baseline. Packets are left to their own section, which shows the same split;
    verdicts by other metrics to ``trifecta explain``."""
    chosen = [one for one in comparisons if one.reference == about.baseline]
    explanation = chains(connection, about, comparisons, chosen, packets=False, metrics=False)
    return Derived(explanation, {"causes": [row for chain in explanation.chains for row in _rows(chain)]})


def _rows(chain: Chain) -> list[Row]:
    one = chain.comparison
    rows = []
    for split in chain.splits:
        effect = split.causes.whole
        head = {"cell": one.cell, "arm": one.arm, "reference": one.reference, "source": split.parts.of}
        shares = {cause.part: cause for cause in split.causes.causes}
        for place, part in enumerate((*(effect.parts if split.causes.told_apart else ()), effect.whole)):
            rows.append(
                head
                | {"part": part.part, "place": place, "arm_ns": part.arm_ns, "reference_ns": part.reference_ns}
                | {"difference_ns": part.difference_ns, "low_ns": part.low_ns, "high_ns": part.high_ns}
                | _share(shares.get(part.part))
                | {"blocks": effect.blocks}
            )
    return rows


def _share(cause: Cause | None) -> Row:
    """Nulls of the whole, of a part that neither arm has, and without a difference."""
    shares = (cause.share, cause.share_low, cause.share_high) if cause else (None, None, None)
    return dict(zip(("share", "share_low", "share_high"), shares, strict=True))
