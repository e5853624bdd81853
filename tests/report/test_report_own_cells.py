"""Which trials the studies' own figures are drawn from."""

from __future__ import annotations

from trifecta import studies
from trifecta.analysis.places import Place
from trifecta.conclude.reproduction.own_bourbon2020 import ELAPSED, payload_of
from trifecta.conclude.reproduction.own_cells import counted_trials, of_trials, own_cells
from trifecta.conclude.reproduction.result import StudyResult
from trifecta.design import plan
from trifecta.design.campaign import parse_campaign


def place(run: str, *trials: str, **levels: str) -> Place:
    """A cell with trials that count."""
    return Place(run, "cell", levels, [{"trial": trial, "arm": "h2", "block": 0} for trial in trials])


def test_the_query_is_over_the_trials_that_count_and_no_others() -> None:
    sql = of_trials(ELAPSED, counted_trials([place("r", "t2", "t'1"), place("r", "t2")])).text()
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


def test_a_payload_by_protocol_is_that_of_each_test() -> None:
    text = studies.read_text(studies.campaigns()["bourbon2020"])
    for as_published, sizes in ((True, [128, 1_000, 10_000]), (False, [128, 128, 128])):
        campaign = parse_campaign(text, "bourbon2020", "quick", as_published=as_published)
        study = campaign.studies["single-B"]
        cell = next(iter(plan.cells(study)))
        assert [payload_of(study, cell, arm, "B") for arm in ("h1", "h2", "h3")] == sizes
