"""Searches for causes in the folder of a run: what they found of its verdicts (docs/why.md)."""

from __future__ import annotations

from collections.abc import Mapping

from trifecta.conclude.comparisons import Comparison
from trifecta.conclude.explain.chain import Explained
from trifecta.report.why import words
from trifecta.store import why

Answers = Mapping[tuple[str, str, str], str]
"""By cell, arm and reference what the search for causes of their difference answers."""


def answers(found: Explained) -> Answers:
    """Those of the finished searches beside the run."""
    return {(one["cell"], one["arm"], one["to"]): words.answer(one) for _, one in why.of_run(found.about.folder)}


def summary(answered: Answers, one: Comparison) -> str:
    """``By experiment: Of 1.37 times, without ... remain.``; empty where nothing was removed from this cell."""
    said = answered.get((one.cell, one.arm, one.reference))
    return f"By experiment: {said}" if said else ""
