"""Which cells run here: what is missing, hangs, crashes or cannot do the work is left out, and named."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from trifecta.design.errors import CannotError, UserError
from trifecta.design.model import Protocol, RequestsWorkload, Study
from trifecta.design.study import path, requests, study
from trifecta.implementations.client import ClientAdapter, Job, Output, Row
from trifecta.implementations.server import Command, ServerAdapter, ServerOptions, Site, Unsupported
from trifecta.workloads import supported as module
from trifecta.workloads.requests.supported import requests_supported


class Server(ServerAdapter):
    source = "a test"

    def __init__(self, name: str) -> None:
        self.name = name

    def find(self) -> str:
        return "1.0"

    def command(self, site: Site, options: ServerOptions) -> Command:
        raise NotImplementedError


class Client(ClientAdapter):
    source = "a test"

    def __init__(self, name: str, **how: Any) -> None:
        self.name = name
        self.how = how
        self.protocols = frozenset(how.get("protocols", ("h1", "h2", "h3")))

    def find(self) -> str:
        if "find" in self.how:
            self.how["find"]()
        return "2.0"

    def declared(self) -> dict[str, Any]:
        return {"tls_library": "none"}

    def command(self, job: Job) -> Command:
        raise NotImplementedError

    def rows(self, job: Job, output: Output) -> Iterator[Row]:
        raise NotImplementedError

    def check_workload(self, workload: RequestsWorkload, protocol: Protocol, connection: str) -> None:
        if connection in self.how.get("not", ()):
            raise Unsupported(f"{self.name} has no {connection} connections")
        if workload.response_bytes > self.how.get("most", 10**9):
            raise Unsupported(f"{self.name} cannot take {workload.response_bytes} B")


SERVERS = {"one": Server("one"), "two": Server("two")}


def race(clients: list[str] | None, **workload: Any) -> Study:
    factors: dict[str, Any] = {"server": ["one", "two"], "connection": ["new", "reused"], "path": ["near", "far"]}
    if clients is not None:
        factors["client"] = clients
    length = {"requests": 20} | workload
    factors |= length.pop("factors", {})
    return study("s", workload=requests(**length), factors=factors, paths=[path("near"), path("far", rtt="10 ms")])


def here(clients: Mapping[str, Client], given: Study) -> module.Supported:
    return requests_supported(given, SERVERS, clients)


def keys(found: module.Supported) -> set[str]:
    return {cell.key for cell in found.cells}


def test_a_study_that_names_no_client_has_the_engines_own_and_the_keys_of_old() -> None:
    found = here({"ext": Client("ext")}, race(None))
    assert "path=near,connection=new,server=one" in keys(found)
    assert len(found.cells) == 8
    assert (found.clients, found.left_out) == ({}, [])
    assert set(found.servers) == {"one", "two"}


def test_clients_that_are_found_are_recorded() -> None:
    found = here({"ext": Client("ext")}, race(["load", "ext"]))
    assert len(found.cells) == 16
    assert found.clients == {"ext": {"version": "2.0", "source": "a test", "declared": {"tls_library": "none"}}}
    assert "path=near,connection=new,server=one,client=ext" in keys(found)


def missing() -> None:
    raise Unsupported("ext is not here; run: trifecta get ext")


def crash() -> None:
    os._exit(7)


def hang() -> None:
    time.sleep(60)


@pytest.mark.parametrize(
    ("find", "words"),
    [
        (missing, "ext is not here; run: trifecta get ext"),
        (crash, "ext cannot be looked for: crashed (exit code 7)"),
        (hang, "ext cannot be looked for: did not answer within 0.5 s"),
        (lambda: 1 / 0, "ext cannot be looked for: ZeroDivisionError"),
    ],
)
def test_what_is_not_found_is_left_out_and_touches_nothing_else(
    monkeypatch: pytest.MonkeyPatch, find: Any, words: str
) -> None:
    monkeypatch.setattr(module, "FIND_TIMEOUT_S", 0.5)
    found = here({"ext": Client("ext", find=find)}, race(["load", "ext"]))
    assert {cell.levels["client"] for cell in found.cells} == {"load"}
    assert len(found.cells) == 8
    (item,) = found.left_out
    assert (item["factor"], item["level"]) == ("client", "ext")
    assert item["reason"].startswith(words)


def test_a_client_stays_in_the_cells_that_it_can_do() -> None:
    found = here({"ext": Client("ext", **{"not": ["new"]})}, race(["load", "ext"]))
    assert len(found.cells) == 12
    assert {cell.levels["connection"] for cell in found.cells if cell.levels["client"] == "ext"} == {"reused"}
    assert found.left_out == [
        {"factor": "client", "level": "ext with connection new", "reason": "ext has no new connections"}
    ]


def test_each_reason_stands_with_its_cells() -> None:
    given = race(["ext"], factors={"response": ["1 kB", "10 kB"]})
    found = here({"ext": Client("ext", most=1000, **{"not": ["new"]})}, given)
    assert {(cell.levels["connection"], cell.levels["response"]) for cell in found.cells} == {("reused", "1 kB")}
    first, second = found.left_out
    assert first["level"] == "ext with connection new"
    assert second["reason"] == "ext cannot take 10000 B"
    assert "response=10 kB" in second["level"]


def test_a_protocol_that_a_client_does_not_speak_leaves_it_out() -> None:
    found = here({"ext": Client("ext", protocols=("h1", "h2"))}, race(["load", "ext"]))
    assert found.left_out == [{"factor": "client", "level": "ext", "reason": "ext does not speak h3"}]
    assert found.clients == {}


def test_what_no_foreign_client_can_do_leaves_it_out() -> None:
    found = here({"ext": Client("ext")}, race(["load", "ext"], loop="open", rate="50/s"))
    assert {cell.levels["client"] for cell in found.cells} == {"load"}
    assert "open loop" in found.left_out[0]["reason"]


def test_nothing_left_is_an_error_with_the_reasons() -> None:
    with pytest.raises(CannotError, match=r"no server or client of the study .*: ext is not here; run: trifecta get"):
        here({"ext": Client("ext", find=missing)}, race(["ext"]))


def test_an_unknown_name_is_bad_input() -> None:
    with pytest.raises(UserError, match="unknown client 'none'; known: ext, load"):
        here({"ext": Client("ext")}, race(["none"]))


def test_a_server_without_timeouts_is_left_out_where_a_study_asks_for_them():
    patient, limited = Server("patient"), Server("limited")
    limited.has_timeouts = True
    given = study(
        "timeouts", workload=requests(requests=10, write_timeout="1 s"), factors={"server": ["patient", "limited"]}
    )
    found = requests_supported(given, {"patient": patient, "limited": limited}, {})
    assert [cell.levels["server"] for cell in found.cells] == ["limited"]
    assert (
        found.left_out[0]["reason"] == "patient supports no read or write timeout; use server: caddy, nginx or haproxy"
    )


def test_a_server_is_left_out_only_where_it_refuses_the_key_exchange():
    choosy, able = Server("choosy"), Server("able")
    choosy.refused_key_exchanges = frozenset({"secp384r1"})
    factors = {"server": ["choosy", "able"], "key_exchange": ["X25519", "secp384r1"]}
    given = study("groups", workload=requests(requests=10), factors=factors)
    found = requests_supported(given, {"choosy": choosy, "able": able}, {})
    kept = {(cell.levels["server"], cell.levels["key_exchange"]) for cell in found.cells}
    assert kept == {("choosy", "X25519"), ("able", "X25519"), ("able", "secp384r1")}
    (left,) = found.left_out
    assert left["level"] == "choosy with key_exchange secp384r1"
    assert left["reason"] == "choosy does not accept the key exchange secp384r1; use X25519"


def test_a_load_balancer_needs_nft(monkeypatch: pytest.MonkeyPatch) -> None:
    given = study("s", workload=requests(requests=10), factors={"server": ["one"], "load_balancer": [False, True]})
    assert len(here({}, given).cells) == 2
    monkeypatch.setattr("trifecta.lab.conntrack.shutil.which", lambda *_, **__: None)
    found = here({}, given)
    assert [cell.levels["load_balancer"] for cell in found.cells] == [False]
    reason = "`nft` is missing; install nftables (apt-get install nftables)"
    assert found.left_out == [{"factor": "load_balancer", "level": "true", "reason": reason}]
    with pytest.raises(CannotError, match=f"^no server of the study can be used here: {re.escape(reason)}$"):
        here({}, study("s", workload=requests(requests=10, load_balancer=True), factors={"server": ["one"]}))


def test_switches_of_the_transports_need_programs_that_can_be_told() -> None:
    servers = {**SERVERS, "origin": Server("origin")}
    factors = {"server": ["origin", "one"], "client": ["load", "ext"], "protocol": ["h2", "h3"]}
    given = study("s", workload=requests(requests=10, initial_window="2"), factors=factors)
    found = requests_supported(given, servers, {"ext": Client("ext")})
    assert keys(found) == {"path=clean,connection=reused,server=origin,client=load"}
    by_kernel = study("s", workload=requests(requests=10, initial_window="2"), factors={**factors, "protocol": ["h2"]})
    assert len(requests_supported(by_kernel, servers, {"ext": Client("ext")}).cells) == 4
    reason = "one does not support 'initial_window' over HTTP/3; use server: origin"
    level = "2 in path=clean,connection=reused,server=one,client=load"
    assert {"factor": "initial_window", "level": level, "reason": reason} in found.left_out
    assert "ext does not support 'initial_window' over HTTP/3; use client: load" in str(found.left_out)


def test_no_server_need_be_told_what_is_of_the_client_alone() -> None:
    factors = {"server": ["one"], "client": ["load", "ext"], "protocol": ["h2", "h3"]}
    given = study("s", workload=requests(requests=10, tls_wait="222 ms"), factors=factors)
    found = requests_supported(given, {**SERVERS, "origin": Server("origin")}, {"ext": Client("ext")})
    assert keys(found) == {"path=clean,connection=reused,server=one,client=load"}
    assert "ext does not support 'tls_wait' over HTTP/2; use client: load" in str(found.left_out)
    assert "one cannot be told" not in str(found.left_out)


def compared(factor: str, **factors: Any) -> Study:
    return study("s", workload=requests(requests=20), factors=factors, compare=factor)


def test_a_cell_needs_all_its_arms() -> None:
    given = compared("server", server=["one", "two"], protocol=["h2", "h3"])
    assert keys(here({}, given)) == {
        "protocol=h2,path=clean,connection=reused",
        "protocol=h3,path=clean,connection=reused",
    }
    two = Server("two")
    two.protocols = frozenset({"h1", "h2"})
    found = requests_supported(given, {"one": SERVERS["one"], "two": two}, {})
    assert keys(found) == {"protocol=h2,path=clean,connection=reused"}
    (item,) = found.left_out
    assert item == {"factor": "server", "level": "two with protocol h3", "reason": "two does not speak h3"}


def test_a_compared_client_that_is_not_there_leaves_nothing_to_compare() -> None:
    given = compared("client", server=["one"], client=["load", "ext"])
    with pytest.raises(CannotError, match="ext is not here; run: trifecta get ext"):
        here({"ext": Client("ext", find=missing)}, given)


def test_a_compared_client_that_cannot_do_a_cell_leaves_it_out_for_all() -> None:
    given = compared("client", server=["one"], client=["load", "ext"], connection=["new", "reused"])
    found = here({"ext": Client("ext", **{"not": ["new"]})}, given)
    assert {cell.levels["connection"] for cell in found.cells} == {"reused"}
    assert {item["level"] for item in found.left_out} == {"ext with connection new"}
