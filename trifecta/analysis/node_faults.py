"""Nodes of a cluster that do not agree with themselves: their baseline's two runs differ beyond chance.

Every block runs the baseline twice, so every node is compared with itself all the time. The blocks of a node, of all
cells together, bet against "the two runs are alike" (`confidence`); that evidence holds at any look, since the order of
the runs is drawn. Nodes seen so far are one family: closed testing with mean e-values (`family.adjusted_log_e`), so
the chance that any sound node is ever left out is at most 1 - the study's confidence. A node that was left out stays
out: its trials are marked with the check `nodes` (`Judge.distrust`), and what they said of it is kept.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.confidence import judge
from trifecta.analysis.estimate import Row, by_cell, node_of, pair_blocks, ratio_estimate, usable
from trifecta.analysis.family import adjusted_log_e
from trifecta.design.metrics import METRICS
from trifecta.design.model import AA_SUFFIX, Study

Floats = NDArray[np.float64]

CHECK = "nodes"
REMEDY = "check what else runs on that node, its cooling and the CPUs of its programs; or leave it out"


@dataclass(frozen=True)
class NodeBaseline:
    """The baseline against itself on one node, over all cells. ``reason``: why the node does not count; empty if it
    does. ``ratio`` is of the second run to the first, between ``low`` and ``high`` for this node by itself."""

    node: str
    blocks: int
    ratio: float | None
    low: float | None
    high: float | None
    e_value: float
    reason: str


def node_baselines(study: Study, rows: Sequence[Row]) -> list[NodeBaseline]:
    """Every node's baseline against itself, in the order of their names; nothing where the rows are of one node."""
    of_node: dict[str, list[Row]] = {}
    for row in rows:
        of_node.setdefault(node_of(row), []).append(row)
    if len(of_node) < 2:
        return []
    alpha, names = 1 - study.confidence, sorted(of_node)
    logs = [_own_logs(study, of_node[name]) for name in names]
    judged = [judge(one, alpha) for one in logs]
    adjusted = adjusted_log_e(np.array([one.log_e for one in judged]))
    baselines = []
    for name, own, one, in_family in zip(names, logs, judged, adjusted, strict=True):
        ratio, e_value = ratio_estimate(own), math.exp(min(one.log_e, 700.0))
        reason = next((reason_text for row in of_node[name] if (reason_text := mark(row))), "")
        if not reason and in_family >= math.log(1 / alpha):
            times = "no finite ratio" if ratio is None else f"ratio {ratio:.4g}"
            reason = (
                f"its baseline differs from itself, {times} over {len(own)} blocks, beyond chance among {len(names)} "
                f"nodes (e-value {e_value:.3g})"
            )
        low, high = (None if end is None else math.exp(end) for end in (one.interval.low, one.interval.high))
        baselines.append(NodeBaseline(name, len(own), ratio, low, high, e_value, reason))
    return baselines


def left_out(study: Study, rows: Sequence[Row]) -> dict[str, str]:
    """The nodes that do not count, with the reason."""
    return {one.node: one.reason for one in node_baselines(study, rows) if one.reason}


def as_json(out: Mapping[str, str]) -> str:
    """Nodes that do not count as they are stored with a verdict: ``[{"node": ..., "reason": ...}]``."""
    return json.dumps([{"node": node, "reason": reason} for node, reason in out.items()], ensure_ascii=False)


def _own_logs(study: Study, rows: Sequence[Row]) -> Floats:
    """(blocks, 2): logs of the baseline's second run and of its first, of a node's blocks in all cells."""
    baseline, metric = study.baseline.level, METRICS[study.metric]
    alike = [_unmarked(row) for row in rows]
    pairs = [
        pair_blocks(cell, own, metric, arm=baseline + AA_SUFFIX, reference=baseline, baseline=baseline).logs
        for cell, own in by_cell(alike).items()
    ]
    values: Floats = np.concatenate([np.empty((0, 2)), *pairs])
    return values


def _unmarked(row: Row) -> Row:
    """The row as it was before its node was left out: that verdict is not to rest on itself."""
    if usable(row) or not mark(row) or row.get("error"):
        return row
    others = [one for one in json.loads(row["checks_json"] or "[]") if one["check"] != CHECK]
    unmarked: Row = {**row, "valid": all(one["status"] != "fail" for one in others)}
    return unmarked


def mark(row: Row) -> str:
    """Why the row's node was left out before; empty where it was not."""
    checks_json = row.get("checks_json")
    if not checks_json or f'"{CHECK}"' not in checks_json:
        return ""
    failures = [one for one in json.loads(checks_json) if one["check"] == CHECK and one["status"] == "fail"]
    return str(failures[0]["evidence"]) if failures else ""
