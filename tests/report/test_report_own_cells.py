"""Which trials the studies' own figures are drawn from."""

from __future__ import annotations

from trifecta import studies
from trifecta.analysis.places import Place
from trifecta.conclude.reproduction.own_bourbon2020 import ELAPSED
from trifecta.conclude.reproduction.own_cells import counted, of_trials, own_cells
from trifecta.conclude.reproduction.result import StudyResult


def place(run: str, *trials: str, **levels: str) -> Place:
    """A cell with trials that count."""
    return Place(run, "cell", levels, [{"trial": trial, "arm": "h2", "block": 0} for trial in trials])


def test_the_query_is_over_the_trials_that_count_and_no_others() -> None:
    sql = of_trials(ELAPSED, counted([place("r", "t2", "t'1"), place("r", "t2")])).text()
    assert "t.trial IN ('t''1', 't2')" in sql
    assert "t.valid" not in sql
    assert "t.trial IN (NULL)" in of_trials(ELAPSED, []).text()


def test_the_study_s_programs_are_those_of_its_year_as_published() -> None:
    cells = (
        place("a", "t1", kind="requests", client="python-client", server="hypercorn"),
        place("b", "t2", kind="requests", client="python-client-2023", server="hypercorn-2023"),
    )
    for as_published, run in ((False, "a"), (True, "b")):
        study = studies.published(as_published=as_published)["milicevic2023"]
        found = own_cells(StudyResult(study, (), places=cells))
        assert [one.run for one in found] == [run]
