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
    with damage.named(first), damage.named(second):
        made = compare(first, second, metric=metric)
    with naming.arms_of(made.first.study.compare, made.arms):
        asked = sorted(made.questions, key=lambda one: two_runs.ORDER.index(two_runs.outcome_of(one)))
        rows = [
            [
                _question(one),
                two_runs.verdict_of(one.first, made.metrics[0]),
                two_runs.verdict_of(one.second, made.metrics[1]),
                two_runs.apart_words(one),
                two_runs.became_words(one),
            ]
            for one in asked
        ]
        points = [_point(one, row[3], row[4]) for one, row in zip(asked, rows, strict=True) if one.apart is not None]
        return {
            "first": two_runs.about_words(made.first),
            "second": two_runs.about_words(made.second),
            "answer": list(two_runs.answer_lines(made)),
            "warnings": two_runs.warnings(made),
            "closing": two_runs.closing_words(made) if made.comparable else "",
            "below": list(two_runs.below_lines(made)),
            "differences": [f"not the same: {two_runs.difference_words(one)}" for one in made.differences],
            "how": two_runs.how_words(made) if made.comparable else "",
            "points": points,
            "table": tables.table(
                "Questions", ["question", "first", "second", "second ÷ first", "became"], rows, numeric=[1, 2, 3]
            ),
        }


def _question(one: Question) -> str:
    return f"{place_words(one.cell, '')}: {reading.pair_words(one.arm, one.reference)}"


def _point(one: Question, apart: str, became: str) -> JsonObject:
    assert one.apart is not None
    alone = one.apart.alone
    low, high = (tables.plain(ratio(end)) for end in (alone.low, alone.high))
    return {
        "ratio": tables.plain(ratio(alone.value)),
        "low": low,
        "high": high,
        "decided": one.became != OPEN_IN_BOTH,
        "differs": one.became == OTHERWISE,
        "label": f"{_question(one)}: {became}",
        "said": f"{_question(one)}: {apart.replace(chr(10), ' ')}, {became}",
    }
