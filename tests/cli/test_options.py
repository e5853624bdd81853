"""Options that narrow a study are overrides like any other, in an order that lets the explicit ones win."""

from trifecta import studies
from trifecta.cli.options import as_overrides


def test_blocks_are_exact_and_need_no_budget():
    study = studies.load("race", as_overrides((), 3, None, None, ()))
    assert (study.min_blocks, study.max_blocks, study.budget_ns) == (3, 3, None)


def test_a_budget_beside_blocks_holds():
    study = studies.load("race", as_overrides((), 3, "10 min", None, ()))
    assert (study.max_blocks, study.budget_ns) == (3, 600_000_000_000)


def test_seed_servers_and_sets():
    study = studies.load("race", as_overrides(("path=far", "seed=4"), None, None, "5", ("caddy",)))
    assert (study.seed, study.factors["server"], study.factors["path"]) == (5, ("caddy",), ("far",))


def test_nothing_asked_changes_nothing():
    assert studies.load("race", as_overrides((), None, None, None, ())) == studies.load("race")
