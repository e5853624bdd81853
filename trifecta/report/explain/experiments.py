"""Searches for causes in the folder of a run: what they found of its verdicts (docs/why.md)."""

from __future__ import annotations

from collections.abc import Mapping

from trifecta.conclude.comparisons import Comparison
from trifecta.conclude.explain.chain import Explained
from trifecta.report.why import words
from trifecta.store import why

Answers = Mapping[tuple[str, str, str], str]
"""By cell, arm and reference what the search for causes of their difference answers."""


def answers(explanation: Explained) -> Answers:
    """Those of the finished searches beside the run."""
    return {(one["cell"], one["arm"], one["to"]): words.answer(one) for _, one in why.of_run(explanation.about.folder)}


def summary(answered: Answers, comparison: Comparison) -> str:
    """``By experiment: Of 1.37 times, without ... remain.``; empty where nothing was removed from this cell."""
    answer_words = answered.get((comparison.cell, comparison.arm, comparison.reference))
    return f"By experiment: {answer_words}" if answer_words else ""
