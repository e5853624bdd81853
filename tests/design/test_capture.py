"""``capture`` and ``captured_trials_count`` in a study."""

from __future__ import annotations

import pytest

from trifecta import studies
from trifecta.design.errors import UserError
from trifecta.design.study_file import parse_study


def test_a_study_is_not_captured_unless_it_says_so() -> None:
    plain = studies.load("race")
    assert (plain.capture, plain.captured_trials_count, plain.gives_verdicts) == (False, False, True)
    assert "capture" not in plain.source  # the identity of studies from before there were captures stays
    assert studies.load("race", ["capture=false"]).source == plain.source


@pytest.mark.parametrize("count", [False, True])
def test_a_captured_study_reads_back_to_an_equal_one(count: bool) -> None:
    captured = studies.load("race", ["capture=true", f"captured_trials_count={str(count).lower()}"])
    assert (captured.capture, captured.gives_verdicts) == (True, count)
    assert parse_study(captured.source, "again") == captured


def test_a_study_gives_up_what_cannot_be_measured_unless_it_says_otherwise() -> None:
    assert studies.load("race").give_up
    assert "give_up" not in studies.load("race").source
    kept = studies.load("race", ["give_up=false"])
    assert not kept.give_up
    assert parse_study(kept.source, "again") == kept


def test_of_trials_that_are_not_captured_it_says_nothing() -> None:
    with pytest.raises(UserError, match="no trial is captured; add --capture"):
        studies.load("race", ["captured_trials_count=true"])
    plain = studies.load("transfer", ["capture=false"])
    assert (plain.capture, plain.captured_trials_count, plain.gives_verdicts) == (False, False, True)


def test_what_is_no_flag_is_refused() -> None:
    with pytest.raises(UserError, match="neither true nor false"):
        studies.load("race", ["capture=maybe"])
