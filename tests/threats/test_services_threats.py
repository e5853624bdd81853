"""Threats that services on Go have: each is switched in any study of services, and puts their program there itself."""

import pytest

from trifecta import studies
from trifecta.conclude.explain.switched import Switchboard
from trifecta.design import plan
from trifecta.design.campaign import parse_campaign
from trifecta.design.errors import UserError
from trifecta.design.study_file import parse_study
from trifecta.threats import switches

CHAIN = "study: mine\nworkload: {kind: chain, requests: 10}\nfactors: {connection: [new]}\n"
# Threat -> the field of the workload, and its values on and off.
FIELDS = {
    "alpn-mismatch": ("alpn_mismatch", True, None),
    "connection-leak": ("connection_leak", True, None),
    "unverified": ("unverified", True, None),
    "retries-hidden": ("retries", True, None),
    "think-time": ("think_time_ns", (10_000_000, 10_000_000, 20_000_000), None),
    "tls-version": ("tls_version", "1.2/1.3", "1.3"),
    "server-timeouts": ("write_timeout_ns", 10**9, None),
}
each = pytest.mark.parametrize(("threat", "field", "on", "off"), [(name, *rest) for name, rest in FIELDS.items()])


def read(text=CHAIN, on=(), off=(), overrides=()):
    return parse_study(text, "mine.yaml", overrides, change=switches(on, off))


@each
def test_switched_on_it_puts_the_program_there_that_has_it(threat, field, on, off):
    study = read(on=[threat])
    assert (study.factors["server"], getattr(study.workload, field)) == (("go-services",), on)
    own = CHAIN.replace("[new]", "[new], server: [go-services-2019]")
    assert read(own, on=[threat]).factors["server"] == ("go-services-2019",), "which has it as well"
    both = CHAIN.replace("[new]", "[new], server: [services, go-services]")
    assert read(both, on=[threat]).factors["server"] == ("go-services",)


@each
def test_switched_off_it_is_left_out_whoever_serves(threat, field, on, off):
    assert getattr(read(off=[threat]).workload, field) == off
    name = field.removesuffix("_ns")
    written = "10 ms/10 ms/20 ms" if name == "think_time" else "1 s" if name == "write_timeout" else str(on).lower()
    switched = CHAIN.replace("requests: 10", f"requests: 10, {name}: {written}")
    switched = switched.replace("[new]", "[new], server: [go-services]")
    assert getattr(read(switched).workload, field) == on
    study = read(switched, off=[threat])
    assert (study.factors["server"], getattr(study.workload, field)) == (("go-services",), off)


@pytest.mark.parametrize("threat", FIELDS)
def test_what_contradicts_it_is_said_in_one_line(threat):
    with pytest.raises(UserError) as error:
        read(on=[threat], overrides=["server=services"])
    said = "the engine's own services cannot do that, and --set server=services asks for them; set server=go-services"
    assert str(error.value) == f"option --with {threat}: {said}"
    with pytest.raises(UserError, match="server: any asks for them"):
        read(CHAIN.replace("[new]", "[new], server: [any]"), on=[threat])


@pytest.mark.parametrize("threat", ["connection-leak", "unverified", "retries-hidden", "think-time", "era"])
@pytest.mark.parametrize("way", ["on", "off"])
def test_a_study_without_services_has_nothing_to_switch(threat, way):
    with pytest.raises(UserError, match="only services can do that, and this is the workload 'requests'"):
        read("study: mine\nworkload: {requests: 10}\n", **{way: [threat]})


def test_a_connection_that_leaks_is_new():
    assert read(CHAIN.replace("new", "new, reused"), on=["connection-leak"]).factors["connection"] == ("new",)
    with pytest.raises(UserError, match=r"changes factors\.connection, and so does --set connection=reused"):
        read(on=["connection-leak"], overrides=["connection=reused"])


def test_http_3_of_2019_takes_the_place_of_todays_and_back():
    for before, way, after in (
        ("services", "on", ("go-services-2019",)),
        ("go-services", "on", ("go-services-2019",)),
        ("go-services-2019", "off", ("go-services",)),
        ("services", "off", ("services",)),
    ):
        listed = CHAIN.replace("[new]", f"[new], server: [{before}]")
        assert read(listed, **{way: ["era"]}).factors["server"] == after
    assert read(on=["alpn-mismatch", "era"]).factors["server"] == ("go-services-2019",)
    with pytest.raises(UserError, match=r"changes factors\.server, and so does --set server=go-services"):
        read(on=["era"], overrides=["server=go-services"])


def test_tls_of_a_request_is_another_over_tcp_whatever_the_server():
    study = read("study: mine\nworkload: {requests: 10}\n", on=["tls-version"])
    assert (study.factors["server"], study.workload.tls_version) == (("origin",), "1.2/1.3")
    with pytest.raises(UserError, match="only requests and services have a TLS version, and this is 'page'"):
        read("study: mine\nworkload: {kind: page, page: light}\n", on=["tls-version"])


@pytest.mark.parametrize("threat", [*FIELDS, "era"])
@pytest.mark.parametrize("depth", ["quick", "full"])
def test_bourbon2020_runs_with_each_of_them(threat, depth):
    """In all of its studies: each is of services."""
    text = studies.read_text(studies.find("bourbon2020"))
    change = switches(on=[threat], many=True)
    campaign = parse_campaign(text, "bourbon2020.yaml", depth, change=change)
    change.refuse_unused()
    wanted = "go-services-2019" if threat == "era" else "go-services"
    assert {study.factors["server"] for study in campaign.studies.values()} == {(wanted,)}
    if threat in FIELDS:
        field, on, _ = FIELDS[threat]
        assert {getattr(study.workload, field) for study in campaign.studies.values()} == {on}


@pytest.mark.parametrize("threat", ["connection-leak", "unverified", "retries-hidden", "think-time", "era"])
def test_whether_it_is_on_is_asked_of_the_study_where_parity_warns_of_something_else(threat):
    warned = {"parity": ("warn", "the server's congestion control is reno, requested: cubic")}
    for study, wanted in ((read(on=[threat]), "on"), (read(off=[threat]), "off")):
        states = {one.id: one for one in Switchboard(study).states(plan.cells(study)[0], warned)}
        assert states[threat].state == wanted, states[threat]
        assert states["congestion-control"].state == "on"
        assert states["stock-quinn"].state == "off"
