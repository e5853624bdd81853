"""The tables: lazy, open to other packages, and none of them can harm another."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from tests.implementations.outside import SERVER, install, install_client, install_server
from trifecta.design.errors import CannotError
from trifecta.implementations import table as module
from trifecta.implementations.client import ClientAdapter
from trifecta.implementations.recipe import Recipe
from trifecta.implementations.registry import CLIENTS, RECIPES, SERVERS, SERVICES
from trifecta.implementations.server import ServerAdapter, Unsupported
from trifecta.implementations.servers.caddy import Caddy
from trifecta.implementations.table import BrokenRecipe, BrokenServer, Table

BUILT_IN = {"caddy": "trifecta.implementations.servers.caddy:Caddy"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A folder on the path of modules, forgotten again."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def servers() -> Table[ServerAdapter]:
    return Table("server", BUILT_IN, ServerAdapter, BrokenServer)


def reason(table, name: str) -> str:
    with pytest.raises(Unsupported) as error:
        table[name].find()
    return str(error.value)


@pytest.mark.parametrize("table", [SERVERS, CLIENTS, RECIPES], ids=lambda table: table.kind)
def test_every_built_in_line_leads_to_an_adapter_of_its_name(table):
    for name in table:
        if table.package(name) == "trifecta":
            adapter = table[name]
            assert adapter.name == name
            assert not type(adapter).__name__.startswith("Broken"), getattr(adapter, "source", "")


@pytest.mark.parametrize("table", [SERVERS, CLIENTS, SERVICES], ids=lambda table: table.kind)
def test_an_adapter_has_at_most_80_lines(table):
    for name in table:
        if table.package(name) == "trifecta":
            text = inspect.getsource(sys.modules[type(table[name]).__module__])
            assert sum(bool(line.strip()) for line in text.splitlines()) <= 80, name


NEEDED_BY_WORKLOADS = {"clip-bbb", "hlsjs", "nginx-rtmp", "page-blocks", "recorder"}


def test_every_recipe_brings_an_adapter_or_what_a_workload_needs():
    assert {*RECIPES} - NEEDED_BY_WORKLOADS <= {*SERVERS, *CLIENTS, *SERVICES}


def test_nothing_is_imported_before_it_is_used():
    code = (
        "import sys; from trifecta.implementations.registry import SERVERS; list(SERVERS); 'caddy' in SERVERS;"
        "print('trifecta.implementations.servers.caddy' in sys.modules); SERVERS['caddy'];"
        "print('trifecta.implementations.servers.caddy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_another_package_adds_a_server(folder):
    install_server(folder, "my-servers", "mine")
    table = servers()
    assert list(table) == ["caddy", "mine"]
    assert table["mine"].find() == "1.0"
    assert table["mine"] is table["mine"]
    assert table.package("mine") == "my-servers 1.5"
    assert table.package("caddy") == "trifecta"
    assert table.refused() == []


def test_another_package_adds_a_client_and_a_recipe(folder):
    install_client(folder, "my-clients", "mine")
    recipe = (
        "from trifecta.implementations.recipe import Recipe\n"
        "class Mine(Recipe):\n"
        "    def __init__(self, name): self.name, self.origin = name, 'here'\n"
        "    def installed(self): return True\n"
        "    def install(self, say): say('done')\n"
        "MINE = Mine('mine')\n"
    )
    install(folder, "my-recipes", "[trifecta.recipes]\nmine = MODULE:MINE\n", recipe)
    clients = Table("client", {}, ClientAdapter, CLIENTS._broken, reserved=("load",))
    recipes = Table("recipe", {}, Recipe, BrokenRecipe)
    assert clients["mine"].find() == "1.0"
    assert recipes["mine"].installed()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import nothing_of_this_name", "cannot be loaded (ModuleNotFoundError: No module named"),
        ("raise SystemExit('no')", "cannot be loaded (SystemExit: no)"),
        ("raise ZeroDivisionError", "cannot be loaded (ZeroDivisionError"),
        ("Other = 1", "cannot be loaded (AttributeError"),
        ("Outside = 1", "cannot be loaded (TypeError"),
        ("class Outside: name = 'mine'", "is no ServerAdapter"),
        (SERVER.format(name="other", find="pass"), "calls itself 'other'"),
        (SERVER.format(name="mine", find="pass").replace("source =", "where ="), "has no text 'source'"),
        (SERVER.format(name="mine", find="pass").replace("def command", "def commando"), "abstract"),
        (
            SERVER.format(name="mine", find="pass").replace("source", "protocols = {'h4'}\n    source"),
            "has protocols {'h4'}",
        ),
    ],
)
def test_a_broken_one_is_never_found_and_says_why(folder, code, words):
    install(folder, "my-servers", "[trifecta.servers]\nmine = MODULE:Outside\n", code)
    table = servers()
    said = reason(table, "mine")
    assert words in said
    assert "my_servers_module:Outside of my-servers 1.5" in said
    assert isinstance(table["caddy"], Caddy)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import time; time.sleep(60)", "did not answer within 0.5 s"),
        ("class Outside:\n    def __new__(cls):\n        import time; time.sleep(60)", "did not answer within 0.5 s"),
        ("import os; os._exit(3)", "crashed (exit code 3)"),
        ("import os; os.kill(os.getpid(), 9)", "crashed (signal 9)"),
    ],
)
def test_one_that_hangs_or_crashes_at_import_does_not_take_the_caller_along(folder, monkeypatch, code, words):
    monkeypatch.setattr(module, "LOAD_TIMEOUT_S", 0.5)
    install(folder, "bad-one", "[trifecta.servers]\nbad = MODULE:Outside\n", code)
    install_server(folder, "my-servers", "mine")
    table = servers()
    expected = f"bad_one_module:Outside of bad-one 1.5 cannot be loaded ({words}); report it to its author"
    assert reason(table, "bad") == expected
    assert table["mine"].find() == "1.0"


def test_a_name_of_two_packages_is_neither(folder):
    install_server(folder, "first", "mine")
    install_server(folder, "second", "mine")
    table = servers()
    said = reason(table, "mine")
    assert "first_module:Outside of first 1.5" in said
    assert "second_module:Outside of second 1.5" in said
    assert table.package("mine") == "first 1.5 and second 1.5"


@pytest.mark.parametrize(("name", "words"), [("caddy", "servers.caddy:Caddy of trifecta"), ("any", "Trifecta itself")])
def test_a_name_of_trifecta_cannot_be_taken(folder, name, words):
    install_server(folder, "my-servers", name)
    table = servers()
    assert list(table) == ["caddy"]
    assert isinstance(table["caddy"], Caddy)
    (refused,) = table.refused()
    assert (refused.name, refused.package) == (name, "my-servers 1.5")
    assert words in refused.reason
    assert "my_servers_module:Outside of my-servers 1.5" in refused.reason


def test_the_name_of_the_engines_client_cannot_be_taken(folder):
    install_client(folder, "my-clients", "load")
    table = Table("client", {}, ClientAdapter, CLIENTS._broken, reserved=("load",))
    assert list(table) == []
    assert [each.name for each in table.refused()] == ["load"]


def test_a_name_that_is_no_word_is_refused(folder):
    install_server(folder, "my-servers", "a,b")
    assert "is not a name" in servers().refused()[0].reason
    assert list(servers()) == ["caddy"]


def test_metadata_that_cannot_be_read_harms_only_its_package(folder):
    install(folder, "spoilt", "[trifecta.servers]\nno equals sign\n", "")
    install_server(folder, "my-servers", "mine")
    table = servers()
    assert list(table) == ["caddy", "mine"]
    (refused,) = table.refused()
    assert refused.package == "spoilt"
    assert "entry_points.txt" in refused.reason


def test_metadata_that_is_no_text_harms_only_its_package(folder):
    install_server(folder, "spoilt", "spoilt")
    (folder / "spoilt-1.5.dist-info/entry_points.txt").write_bytes(b"[trifecta.servers]\n\xff = x:y\n")
    install_server(folder, "my-servers", "mine")
    table = servers()
    assert list(table) == ["caddy", "mine"]
    assert [each.name for each in table.refused()] == ["spoilt"]


def test_a_package_that_is_on_the_path_twice_counts_once(folder, monkeypatch):
    install_server(folder, "my-servers", "mine")
    second = folder / "second"
    second.mkdir()
    install_server(second, "my-servers", "mine")
    monkeypatch.syspath_prepend(str(second))
    assert servers()["mine"].find() == "1.0"


def test_a_broken_recipe_says_why_and_touches_no_folder():
    recipe = BrokenRecipe("mine", "it is broken; report it")
    assert not recipe.installed()
    for act in (lambda: recipe.install(print), recipe.folder):
        with pytest.raises(CannotError, match="it is broken; report it"):
            act()
