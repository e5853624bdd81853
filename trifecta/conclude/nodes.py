"""What the verdicts of a run say of the nodes of a cluster: how many, how much they differ, which do not count."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from trifecta.analysis.nested import FEW
from trifecta.conclude.comparisons import Comparison


@dataclass(frozen=True)
class Nodes:
    """Of all comparisons of a run: ends of what each says. Standard deviations are of log ratios between nodes.

    ``most_high`` is the largest upper end of their intervals; None where one of them has none.
    """

    fewest: int
    most: int
    few: bool
    least_sd: float | None
    most_sd: float | None
    most_high: float | None
    left_out: dict[str, str]


def of(comparisons: Sequence[Comparison]) -> Nodes | None:
    """None of a run on one machine, or one node."""
    rows = [one.row for one in comparisons if one.row.get("nodes") is not None]
    if not rows:
        return None
    counts = [int(row["nodes"]) for row in rows]
    spreads = [float(row["node_sd"]) for row in rows if row["node_sd"] is not None]
    ends = [row["node_sd_high"] for row in rows if row["node_sd"] is not None]
    out = {
        str(one["node"]): str(one["reason"])
        for text in dict.fromkeys(row["left_out_nodes_json"] for row in rows)
        for one in json.loads(text or "[]")
    }
    return Nodes(
        fewest=min(counts),
        most=max(counts),
        few=min(counts) < FEW,
        least_sd=min(spreads, default=None),
        most_sd=max(spreads, default=None),
        most_high=None if not ends or None in ends else max(ends),
        left_out=out,
    )
