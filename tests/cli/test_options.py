"""Options that narrow a study are overrides like any other, in an order that lets the explicit ones win."""

import pytest

from trifecta import studies
from trifecta.cli.options import as_overrides
from trifecta.design.errors import UserError


def test_blocks_are_exact_and_need_no_budget():
    study = studies.load("race", as_overrides((), 3, None, None, ()))
    assert (study.min_blocks, study.max_blocks, study.budget_ns) == (3, 3, None)


def test_a_budget_beside_blocks_holds():
    study = studies.load("race", as_overrides((), 3, "10 min", None, ()))
    assert (study.max_blocks, study.budget_ns) == (3, 600_000_000_000)


def test_seed_servers_and_sets():
    study = studies.load("race", as_overrides(("path=far", "seed=4"), None, None, "5", ("caddy",)))
    assert (study.seed, study.factors["server"], study.factors["path"]) == (5, ("caddy",), ("far",))


@pytest.mark.parametrize("servers", [("caddy,origin",), ("caddy", "origin"), (" caddy , origin,",)])
def test_several_servers_by_commas_or_again(servers):
    study = studies.load("race", as_overrides((), None, None, None, servers), studies.known_servers())
    assert study.factors["server"] == ("caddy", "origin")


def test_any_server_and_client_are_those_found():
    found = {"server": ["origin", "caddy"], "client": ["load", "curl"]}
    changes = as_overrides((), None, "1 h", None, ("any",), clients=("any",))
    study = studies.load("race", changes, found=found.__getitem__)
    assert (study.factors["server"], study.factors["client"]) == (("origin", "caddy"), ("load", "curl"))


def test_clients_are_checked_by_name():
    changes = as_overrides((), None, None, None, (), clients=("crul",))
    with pytest.raises(UserError, match="no client 'crul'; did you mean 'curl'"):
        studies.load("race", changes, studies.known_servers(), clients=["load", "curl"])


def test_nothing_asked_changes_nothing():
    assert studies.load("race", as_overrides((), None, None, None, ())) == studies.load("race")
