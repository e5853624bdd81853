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


def _node(baseline: NodeBaseline) -> CheckResult:
    name = node_words(baseline.node)
    if baseline.reason:
        return CheckResult(CHECK, "run", "fail", f"{name} is left out: {baseline.reason}", baseline.ratio, 1.0, REMEDY)
    if baseline.low is None or baseline.high is None:
        text = f"{name}: {baseline.blocks} blocks are too few to say whether its baseline agrees with itself"
        return CheckResult(CHECK, "run", "unknown", text, baseline.ratio, 1.0, "run more blocks")
    ratio = "none" if baseline.ratio is None else f"{baseline.ratio:.4g}"
    text = (
        f"{name}: baseline against itself {ratio} [{baseline.low:.4g}, {baseline.high:.4g}] over {baseline.blocks} "
        "blocks"
    )
    if baseline.low > 1 or baseline.high < 1:
        sentence = f"{text}, which excludes 1, as one node in twenty may by chance"
        return CheckResult(CHECK, "run", "warn", sentence, baseline.ratio, 1.0, REMEDY)
    return CheckResult(CHECK, "run", "pass", text, baseline.ratio, 1.0)
