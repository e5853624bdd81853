"""What becomes of a statement: nothing is contradicted that was not tried as published."""

from __future__ import annotations

import itertools

import pytest

from trifecta.analysis.answers import ANSWERS, answered, combine
from trifecta.analysis.judging import CONFIRMED, CONTRADICTED, NOT_COMPARED, OPEN, OTHER_SIZE, State

STATES: tuple[State, ...] = (CONFIRMED, OTHER_SIZE, CONTRADICTED, OPEN, NOT_COMPARED)


@pytest.mark.parametrize(
    ("now", "then", "answer"),
    [
        (CONFIRMED, None, "confirmed"),
        (OTHER_SIZE, None, "same direction, other size"),
        (CONTRADICTED, None, "not today"),
        (CONTRADICTED, OPEN, "not today"),
        (CONTRADICTED, CONTRADICTED, "contradicted"),
        (CONTRADICTED, CONFIRMED, "held then"),
        (CONTRADICTED, OTHER_SIZE, "held then"),
        (OTHER_SIZE, CONFIRMED, "held then"),
        (OTHER_SIZE, OTHER_SIZE, "same direction, other size"),
        (CONFIRMED, CONFIRMED, "confirmed"),
        (CONFIRMED, OTHER_SIZE, "same direction, other size"),
        (CONFIRMED, OPEN, "confirmed"),
        (CONFIRMED, CONTRADICTED, "open"),
        (OPEN, CONFIRMED, "open"),
        (OPEN, CONTRADICTED, "open"),
        (NOT_COMPARED, CONFIRMED, "not compared"),
        (CONFIRMED, NOT_COMPARED, "confirmed"),
    ],
)
def test_the_answer_takes_both_conditions_together(now: State, then: State | None, answer: str) -> None:
    assert answered(now, then)[0] == answer


def test_nothing_is_contradicted_that_was_not_tried_as_published() -> None:
    for now, then in itertools.product(STATES, (*STATES, None)):
        answer, why = answered(now, then)
        assert answer in ANSWERS
        assert answer != "contradicted" or (now, then) == (CONTRADICTED, CONTRADICTED)
        assert answer == now or why  # what is more than the state has a reason


def test_what_stayed_open_as_published_is_said() -> None:
    assert answered(CONTRADICTED, OPEN, tried="no block counts")[1] == "as published it is open: no block counts"
    assert answered(CONTRADICTED, None)[1] == "not tried as published"


def test_two_ends_that_may_be_one_are_open() -> None:
    assert combine(CONFIRMED, CONTRADICTED, changed=False)[0] == "open"
    assert combine(CONFIRMED, CONTRADICTED)[0] == "held then"
