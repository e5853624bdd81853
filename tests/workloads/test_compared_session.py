"""Which server, options and path a trial has follows from its cell and its arm."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from trifecta.design import plan
from trifecta.design.model import Study
from trifecta.design.study import path, requests, study
from trifecta.workloads.requests.session import RequestsSession
from trifecta.workloads.session import SessionContext


def session(given: Study) -> Any:
    nowhere: Any = None
    return RequestsSession(SessionContext(Path("engine"), nowhere, given, lambda: False))


def keys(given: Study) -> dict[str, Any]:
    (cell,) = plan.cells(given)
    made = session(given)
    return {one.arm: made._key(one) for one in plan.block_trials(given, cell, 0, 0)}


def test_compared_servers_are_each_asked_in_their_trials() -> None:
    found = keys(
        study("s", workload=requests(requests=9), compare="server", factors={"server": ["a", "b"], "protocol": ["h3"]})
    )
    assert {arm: name for arm, (name, _) in found.items()} == {"a": "a", "b": "b", "a#aa": "a"}


def test_a_compared_setting_is_one_of_the_server_too() -> None:
    factors = {"congestion_control": ["cubic", "bbr"], "protocol": ["h3"]}
    found = keys(study("s", workload=requests(requests=9), compare="congestion_control", factors=factors))
    assert {arm: options.congestion_control for arm, (_, options) in found.items()} == {
        "cubic": "cubic",
        "bbr": "bbr",
        "cubic#aa": "cubic",
    }
    assert found["cubic"] == found["cubic#aa"]


def test_a_server_that_failed_ends_the_cells_of_all_that_are_compared_with_it() -> None:
    given = study(
        "s", workload=requests(requests=9), compare="server", factors={"server": ["a", "b"], "protocol": ["h3"]}
    )
    made = session(given)
    (cell,) = plan.cells(given)
    assert made.has_failed(cell) is None
    made.failed[made._key(plan.treatment(given, cell, "b"))] = "b did not come up"
    assert made.has_failed(cell) == "b did not come up"


def test_a_load_balancer_and_ipv6_have_addresses_and_probes_of_their_own() -> None:
    factors = {"load_balancer": [False, True], "ip": ["IPv4", "IPv6"], "protocol": ["h2", "h3"]}
    given = study("s", workload=requests(requests=9), factors=factors)
    made = session(given)
    routes = {
        (
            bool(made.workload(one).load_balancer),
            made.route(one).wire.name,
            made.route(one).towards,
            made.probe_key(one),
        )
        for one in plan.treatments(given)
    }
    assert routes == {
        (False, "client-server", "10.77.0.2", "clean"),
        (False, "client-server", "fd77::2", ("clean", "IPv6")),
        (True, "client-balancer", "10.77.1.2", ("clean", "balancer")),
        (True, "client-balancer", "fd77:1::2", ("clean", "balancer", "IPv6")),
    }


def test_each_of_compared_paths_is_probed() -> None:
    given = study(
        "s", workload=requests(requests=9), compare="path", factors={"protocol": ["h3"]},
        paths=[path("near"), path("far", rtt="10 ms")],
    )  # fmt: skip
    made = session(given)
    (cell,) = plan.cells(given)
    near, far = plan.treatments_of(given, cell)
    assert (made.probe_key(near), made.probe_key(far)) == ("near", "far")
    made.probed_at["near"] = SimpleNamespace()
    assert made.probe_due(far, 60.0)
