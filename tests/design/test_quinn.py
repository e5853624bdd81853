"""Which adaptations of the engine's QUIC library a study asks for, and that both halves of Trifecta know the same."""

import pytest

from trifecta.design import plan, quinn
from trifecta.design.errors import CannotError, UserError
from trifecta.design.study_file import parse_study
from trifecta.lab.engine import engine_versions, find_engine

PLAIN = "study: mine\nworkload: {{requests: 10{}}}\n"


def asked(text: str) -> str:
    study = parse_study(PLAIN.format(f", quinn: {text}" if text else ""), "mine.yaml")
    return plan.workload_for(study, plan.treatments(study)[0]).quinn


@pytest.mark.parametrize(
    ("text", "value", "names"),
    [
        ("", "adapted", [*quinn.ADAPTATIONS]),
        ("stock", "stock", []),
        ("settings+padding-cut", "padding-cut+settings", ["padding-cut", "settings"]),
        ("+".join(reversed(quinn.ADAPTATIONS)), "adapted", [*quinn.ADAPTATIONS]),
    ],
)
def test_adaptations_are_all_none_or_named(text, value, names):
    assert asked(text) == value
    assert quinn.names(value) == names


def test_an_unknown_one_is_refused_in_one_line():
    with pytest.raises(UserError, match=r"workload\.quinn: 'padding-cat' is nothing .*; did you mean 'padding-cut'\?"):
        asked("padding-cat")


def test_the_engine_has_these_and_no_others():
    try:
        engine = find_engine()
    except CannotError as error:
        pytest.skip(str(error))
    assert engine_versions(engine).quic_adaptations == [*quinn.ADAPTATIONS], "build it again: make setup"
