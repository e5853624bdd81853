"""The threat of a client that waits before TLS: what it puts into a study, and where it cannot."""

import pytest

from trifecta import studies
from trifecta.design.errors import UserError
from trifecta.design.study_file import parse_study
from trifecta.threats import switches

THREAT = "wait-before-tls"
OF_CURL = "study: mine\nworkload: {requests: 10}\nfactors: {client: [curl, load], tls_wait: [none, 5 ms]}\n"


def read(text=OF_CURL, on=(), off=(), overrides=()):
    return parse_study(text, "mine.yaml", overrides, change=switches(on, off))


def test_switched_on_our_own_client_waits_in_the_place_of_others():
    study = read(on=[THREAT])
    assert study.factors["client"] == ("load",)
    assert study.workload.tls_wait == "222 ms"
    assert "tls_wait" not in study.factors
    plain = read("study: mine\nworkload: {requests: 10}\n", on=[THREAT])
    assert "client" not in plain.factors, "where no client is named it is ours"
    assert plain.workload.tls_wait == "222 ms"


def test_switched_off_whoever_asks_begins_at_once():
    study = read(off=[THREAT])
    assert study.workload.tls_wait is None
    assert "tls_wait" not in study.factors
    assert study.factors["client"] == ("curl", "load")


def test_a_client_that_was_asked_for_is_not_exchanged():
    with pytest.raises(UserError, match="only load can wait before TLS, and --set client=curl asks for others; set"):
        read("study: mine\nworkload: {requests: 10}\n", on=[THREAT], overrides=["client=curl"])
    with pytest.raises(UserError, match="client: any asks for others"):
        read("study: mine\nworkload: {requests: 10}\nfactors: {client: [any]}\n", on=[THREAT])


@pytest.mark.parametrize("way", ["on", "off"])
def test_a_study_of_anything_else_has_nothing_to_switch(way):
    with pytest.raises(
        UserError, match="only clients of single requests can wait before TLS, and this is the workload 'chain'"
    ):
        read("study: mine\nworkload: {kind: chain, requests: 10}\n", **{way: [THREAT]})


def test_the_claim_of_a_fifth_is_put_to_a_client_that_waits_only_as_published():
    today, then = (studies.published(as_published=which)["ding2022"] for which in (False, True))
    where = {one.id: one.where for one in today.statements}["ding2022.fifth-of-the-time"]
    assert where["client"] == "curl"
    assert "tls_wait" not in where
    where = {one.id: one.where for one in then.statements}["ding2022.fifth-of-the-time"]
    assert (where["client"], where["tls_wait"], where["server"]) == ("load", "222 ms", "caddy-2022")
    others = [one.where.get("client") for one in then.claims if one.id != "ding2022.fifth-of-the-time"]
    assert "curl" in others
