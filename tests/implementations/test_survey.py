"""What is found: bad adapters are rows with their reasons, and ``any`` is only what is found."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from tests.implementations.outside import install_client, install_server
from trifecta.design.errors import CannotError
from trifecta.implementations.client import ClientAdapter
from trifecta.implementations.server import ServerAdapter
from trifecta.implementations.survey import Finder, Implementation, as_findings, names_of_kind, survey
from trifecta.implementations.table import BrokenClient, BrokenServer, Table

BUILT_IN = {"caddy": "trifecta.implementations.servers.caddy:Caddy"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def look(kinds=("server",), names=None, timeout_s=60.0) -> dict[str, Implementation]:
    servers = Table("server", BUILT_IN, ServerAdapter, BrokenServer)
    clients = Table("client", {}, ClientAdapter, BrokenClient, reserved=("load",))
    found = survey(kinds, names, servers=servers, clients=clients, timeout_s=timeout_s)
    return {each.name: each for each in found}


@pytest.mark.parametrize(
    ("find", "reason"),
    [
        ('raise Unsupported("not here; make it")', "not here; make it"),
        ("return None", "find() failed (TypeError: find() returned None, no version)"),
        ('raise KeyError("x")', "find() failed (KeyError: 'x')"),
        ("import sys; sys.exit(3)", "find() failed (SystemExit: 3)"),
        ("import os; os.kill(os.getpid(), 9)", "crashed (signal 9)"),
    ],
)
def test_a_bad_one_is_a_row_and_the_others_are_as_before(folder, find, reason):
    install_server(folder, "bad", "bad", find)
    install_server(folder, "good", "good")
    found = look()
    assert (found["bad"].found, found["bad"].reason, found["bad"].package) == (False, reason, "bad 1.5")
    assert (found["good"].found, found["good"].version, found["good"].reason) == (True, "1.0", None)
    assert found["caddy"].package == "trifecta"


def test_one_that_hangs_is_a_row(folder):
    install_server(folder, "bad", "bad", "import time; time.sleep(600)")
    install_server(folder, "good", "good")
    found = look(names=["bad", "good"], timeout_s=3)
    assert found["bad"].reason == "did not answer within 3 s"
    assert found["good"].found


def test_one_whose_import_hangs_or_crashes_is_a_row(folder):
    install_server(folder, "bad", "bad")
    (folder / "bad_module.py").write_text("import os; os._exit(9)")
    install_server(folder, "good", "good")
    found = look()
    assert found["bad"].reason == "crashed (exit code 9)"
    assert found["good"].found
    assert "bad_module" not in sys.modules


def test_a_refused_name_is_a_row_beside_the_real_one(folder):
    install_server(folder, "thief", "caddy")
    servers = Table("server", BUILT_IN, ServerAdapter, BrokenServer)
    rows = [each for each in survey(["server"], servers=servers) if each.name == "caddy"]
    assert [row.package for row in rows] == ["trifecta", "thief 1.5"]
    assert not rows[1].found
    assert "thief_module:Outside of thief 1.5" in (rows[1].reason or "")


def test_the_engines_client_is_in_the_list(folder):
    install_client(folder, "mine", "mine")
    found = look(["client"])
    assert list(found) == ["load", "mine"]
    assert found["load"].declared["tls_library"].startswith("rustls")
    assert found["mine"].kind == "client"


def test_without_an_engine_its_client_is_a_row_with_the_remedy(monkeypatch, tmp_path):
    monkeypatch.setenv("TRIFECTA_ENGINE", str(tmp_path / "none"))
    load = look(["client"])["load"]
    assert not load.found
    assert "name the trifecta-engine binary" in (load.reason or "")
    assert "CannotError" not in (load.reason or "")


def test_only_those_that_are_asked_for_are_looked_at(folder):
    install_server(folder, "bad", "bad", "import time; time.sleep(600)")
    assert list(look(names=["caddy"], timeout_s=30)) == ["caddy"]


def test_known_names_need_no_search():
    assert names_of_kind("client")[0] == "load"
    assert {"origin", "caddy"} <= {*names_of_kind("server")}
    assert names_of_kind("service")[:2] == ["services", "go-services"]


def row(name: str, found: bool, kind="server", reason=None) -> Implementation:
    return Implementation(kind, name, found, "1" if found else None, ("h1",), "", "trifecta", reason)


@pytest.mark.parametrize(
    ("version", "short"),
    [
        ("1.2", "1.2"),
        (
            "8.23.0 (x86_64-pc-linux-gnu) libcurl/8.23.0 OpenSSL/3.6.5 zlib",
            "8.23.0 (x86_64-pc-linux-gnu) libcurl/8.23.0 …",
        ),
        ("a" * 60, "a" * 48 + " …"),
    ],
)
def test_a_long_version_is_cut_between_words(version, short):
    assert replace(row("a", True), version=version).short_version == short


def test_the_doctor_names_them_in_a_line_a_kind():
    seen = [row("a", True), replace(row("b", False), get="trifecta get b"), row("c", False), row("d", False, "client")]
    servers, clients, browsers, _ = as_findings(seen)
    assert (servers.name, servers.status, servers.remedy) == ("servers", "ok", "trifecta get b")
    assert servers.evidence == "1 of 3 found: a 1 (`trifecta implementations`)"
    assert (clients.status, clients.required) == ("missing", False)
    assert (browsers.name, browsers.status, browsers.required) == ("browsers", "missing", False)


def test_a_finder_looks_once_and_remembers_what_is_left_out():
    asked = []

    def see(kinds):
        asked.append(list(kinds))
        return [row("a", True, kinds[0]), row("b", False, kinds[0], "b is not here; get it")]

    finder = Finder(see)
    assert finder.facts() == {}
    assert (finder("server"), finder("server"), finder("client")) == (["a"], ["a"], ["a"])
    assert asked == [["server"], ["client"]]
    assert finder.facts() == {
        "any": {"server": ["a"], "client": ["a"]},
        "not_found": [
            {"factor": "server", "level": "b", "reason": "b is not here; get it"},
            {"factor": "client", "level": "b", "reason": "b is not here; get it"},
        ],
    }


def test_any_of_nothing_is_an_error():
    with pytest.raises(CannotError, match="no server is found here; run: trifecta implementations"):
        Finder(lambda _: [row("a", False)])("server")


def test_what_is_wrong_on_purpose_is_found_and_never_any():
    seen = {each.name for each in survey(["client"])}
    assert "go-client-own-tls" in seen
    there = [row(name, True, "client") for name in ("load", "go-client-own-tls")]
    assert Finder(lambda _: there)("client") == ["load"]
