"""Two runs beside each other, as `trifecta compare` puts them."""

from __future__ import annotations

from pathlib import Path

from trifecta.analysis.two_runs import OPEN_IN_BOTH, OTHERWISE
from trifecta.conclude.two_runs.questions import Question, compare, ratio
from trifecta.contract.values import JsonObject
from trifecta.design import naming
from trifecta.report import two_runs
from trifecta.report.verdict_words import place_words
from trifecta.store import damage
from trifecta.ui import reading, tables


def side_by_side(first: Path, second: Path, metric: str | None) -> JsonObject:
    """What became of each question that both runs ask, and by how much; UserError where a folder is no run."""
    with damage.naming_damaged_file(first), damage.naming_damaged_file(second):
        comparison = compare(first, second, metric=metric)
    with naming.arms_of(comparison.first.study.compare, comparison.arms):
        questions = sorted(comparison.questions, key=lambda one: two_runs.ORDER.index(two_runs.outcome_of(one)))
        rows = [
            [
                _question(one),
                two_runs.verdict_of(one.first, comparison.metrics[0]),
                two_runs.verdict_of(one.second, comparison.metrics[1]),
                two_runs.apart_words(one),
                two_runs.became_words(one),
            ]
            for one in questions
        ]
        points = [
            _point(one, row[3], row[4]) for one, row in zip(questions, rows, strict=True) if one.apart is not None
        ]
        return {
            "first": two_runs.about_words(comparison.first),
            "second": two_runs.about_words(comparison.second),
            "answer": list(two_runs.answer_lines(comparison)),
            "warnings": two_runs.warnings(comparison),
            "closing": two_runs.closing_words(comparison) if comparison.comparable else "",
            "below": list(two_runs.below_lines(comparison)),
            "differences": [f"not the same: {two_runs.difference_words(one)}" for one in comparison.differences],
            "how": two_runs.reading_words(comparison) if comparison.comparable else "",
            "points": points,
            "table": tables.table(
                "Questions", ["question", "first", "second", "second ÷ first", "became"], rows, numeric=[1, 2, 3]
            ),
        }


def _question(question: Question) -> str:
    return f"{place_words(question.cell, '')}: {reading.pair_words(question.arm, question.reference)}"


def _point(question: Question, apart: str, became: str) -> JsonObject:
    assert question.apart is not None
    alone = question.apart.alone
    low, high = (tables.json_value(ratio(end)) for end in (alone.low, alone.high))
    return {
        "ratio": tables.json_value(ratio(alone.value)),
        "low": low,
        "high": high,
        "decided": question.became != OPEN_IN_BOTH,
        "differs": question.became == OTHERWISE,
        "label": f"{_question(question)}: {became}",
        "said": f"{_question(question)}: {apart.replace(chr(10), ' ')}, {became}",
    }
