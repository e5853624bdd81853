"""What a report says of the checks when most trials do not count."""

from __future__ import annotations

import pytest

from trifecta.report import catalogue
from trifecta.report.queries import Answer
from trifecta.report.words import _checks, command_line

FAILED = {"check_name": "machine", "passed": 0, "warned": 0, "failed": 9, "unknown": 0}
MENDS = "To fix most of them: end other programs."


@pytest.mark.parametrize(("excluded", "said"), [(10, True), (5, True), (4, False), (0, False)])
def test_where_most_trials_do_not_count_it_says_what_would_mend_them(excluded: int, said: bool) -> None:
    rows = [FAILED | {"remedy": "end other programs"}, FAILED | {"failed": 2, "remedy": "wait"}]
    words = _checks({"excluded_trials": excluded, "trials": 10}, Answer(catalogue.CHECK_MATRIX, rows))
    assert (MENDS in words) == said


def test_without_a_remedy_it_says_nothing_of_one() -> None:
    words = _checks({"excluded_trials": 9, "trials": 10}, Answer(catalogue.CHECK_MATRIX, [FAILED | {"remedy": None}]))
    assert "left out of every verdict" in words
    assert "mend" not in words


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["/here/.venv/bin/trifecta", "race", "--set", "response=1 kB"], "trifecta race --set 'response=1 kB'"),
        (["/here/trifecta/__main__.py", "race"], "trifecta race"),
        (["/here/my-study.py", "race"], "/here/my-study.py race"),
        ([], ""),
    ],
)
def test_a_command_is_told_without_where_the_program_lies(argv: list[str], said: str) -> None:
    assert command_line(argv) == said
