"""Does every node of a cluster agree with itself?

## Fails when
The baseline's two runs differ on a node beyond chance among all nodes, under continuous monitoring. Then no trial of
that node counts; they are kept and marked.

## Warns when
They differ on a node judged alone.

## Why
A node that gets two results from the same treatment would also distinguish identical arms.

## Sources
Marcus et al. 1976 (closed testing); Vovk & Wang 2021 (e-values); Ville 1939 (a test valid under continuous monitoring).
"""

from __future__ import annotations

from trifecta.analysis.checks.evidence import RunEvidence
from trifecta.analysis.node_faults import CHECK, REMEDY, NodeBaseline, node_baselines
from trifecta.design.arms import node_words
from trifecta.design.model import CheckResult


def check(evidence: RunEvidence) -> list[CheckResult]:
    """Per node: fail where its A/A pair differs beyond chance among all nodes; nothing of a run on one machine."""
    return [_node(one) for one in node_baselines(evidence.study, evidence.rows)]


def _node(one: NodeBaseline) -> CheckResult:
    name = node_words(one.node)
    if one.reason:
        return CheckResult(CHECK, "run", "fail", f"{name} is left out: {one.reason}", one.ratio, 1.0, REMEDY)
    if one.low is None or one.high is None:
        text = f"{name}: {one.blocks} blocks are too few to say whether its baseline agrees with itself"
        return CheckResult(CHECK, "run", "unknown", text, one.ratio, 1.0, "run more blocks")
    ratio = "none" if one.ratio is None else f"{one.ratio:.4g}"
    text = f"{name}: baseline against itself {ratio} [{one.low:.4g}, {one.high:.4g}] over {one.blocks} blocks"
    if one.low > 1 or one.high < 1:
        said = f"{text}, which excludes 1, as one node in twenty may by chance"
        return CheckResult(CHECK, "run", "warn", said, one.ratio, 1.0, REMEDY)
    return CheckResult(CHECK, "run", "pass", text, one.ratio, 1.0)
