"""``trifecta get``: says what it did, with the exit codes of the other commands; nothing half stays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from trifecta.cli import main
from trifecta.design.errors import CannotError, UserError
from trifecta.implementations import installation, registry
from trifecta.implementations.installation import chosen, get
from trifecta.implementations.recipe import Recipe
from trifecta.implementations.survey import Implementation


class Fake(Recipe):
    """Brings a file."""

    def __init__(self, name, error=None, silent=False):
        self.name = name
        self.origin = "a test"
        self.error = error
        self.silent = silent
        self.installs = 0

    def installed(self):
        return (self.folder() / "there").exists()

    def install(self, say):
        self.installs += 1
        say(f"{self.name}: fetching")
        if self.error:
            raise self.error
        if not self.silent:
            self.folder().mkdir(parents=True, exist_ok=True)
            (self.folder() / "there").write_text("x" * 10_000)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TRIFECTA_CACHE", str(tmp_path / "cache"))


def seen(name, found=True, reason=None):
    version = "1.2" if found else None
    return lambda _: [Implementation("server", name, found, version, ("h1",), "a place", "trifecta", reason)]


@pytest.fixture
def recipes(monkeypatch):
    """What there is to get, instead of the real table; whatever is looked for is found."""
    there = {"nginx": Fake("nginx"), "bad": Fake("bad", CannotError("no network; connect"))}
    monkeypatch.setattr(registry, "RECIPES", there)
    monkeypatch.setattr(chosen, "__defaults__", (there,))
    monkeypatch.setitem(get.__kwdefaults__, "recipes", there)
    monkeypatch.setitem(get.__kwdefaults__, "look", lambda name: seen(name)(name))
    return there


def test_it_is_brought_once_and_anew_by_force():
    recipe, lines = Fake("x"), []
    first = get("x", lines.append, recipes={"x": recipe}, look=seen("x"))
    assert (first.status, first.version, first.origin, lines) == ("installed", "1.2", "a test", ["x: fetching"])
    assert first.steps == lines
    assert first.size_bytes >= 10_000
    assert first.seconds is not None
    again = get("x", lines.append, recipes={"x": recipe}, look=seen("x"))
    assert (again.status, again.seconds, recipe.installs) == ("present", None, 1)
    assert get("x", lines.append, force=True, recipes={"x": recipe}, look=seen("x")).status == "installed"
    assert recipe.installs == 2


@pytest.mark.parametrize(
    ("recipe", "reason"),
    [
        (Fake("x", CannotError("no network; connect")), "no network; connect"),
        (Fake("x", RuntimeError("oops")), "its recipe failed (RuntimeError: oops); report it"),
        (Fake("x", silent=True), "ended without an error, but it is not in the cache"),
    ],
)
def test_a_recipe_that_fails_says_why(recipe, reason):
    got = get("x", lambda _: None, recipes={"x": recipe}, look=seen("x"))
    assert got.status == "failed"
    assert reason in got.reason
    assert got.steps == ["x: fetching"]


def test_what_is_there_but_does_not_run_is_a_failure():
    got = get("x", lambda _: None, recipes={"x": Fake("x")}, look=seen("x", False, "libx is missing; get it"))
    assert got.status == "failed"
    assert "cannot be used: libx is missing; get it; fetch it again: trifecta get --force x" in got.reason


def test_without_a_recipe_it_is_here_or_says_how():
    here = get("x", lambda _: None, recipes={}, look=seen("x"))
    assert (here.status, here.version) == ("found", "1.2")
    missing = get("x", lambda _: None, recipes={}, look=seen("x", False, "x is not installed; apt-get install x"))
    assert (missing.status, missing.reason) == ("failed", "x is not installed; apt-get install x")


def test_names_are_known_or_nearly(recipes):
    assert chosen(["caddy", "nginx", "caddy"]) == ["caddy", "nginx"]
    with pytest.raises(UserError, match="no implementation 'ngnix'; did you mean 'nginx'"):
        chosen(["nginx", "ngnix"])


def test_the_words_of_the_command(recipes, capsys, tmp_path):
    assert main.run(["get", "nginx"]) == 0
    out = capsys.readouterr()
    assert out.err == "nginx: fetching\n"
    assert out.out.startswith("nginx: 1.2 from a test (")
    assert str(tmp_path / "cache/nginx") in out.out
    assert main.run(["get", "nginx"]) == 0
    assert capsys.readouterr().out == f"nginx: 1.2 is in the cache already ({tmp_path}/cache/nginx)\n"
    assert main.run(["get", "caddy"]) == 0
    assert "caddy: 1.2 is here; it needs no recipe" in capsys.readouterr().out


def test_one_that_fails_does_not_keep_the_next_from_coming(recipes, capsys):
    assert main.run(["get", "bad,nginx"]) == 3
    out = capsys.readouterr()
    assert "trifecta: bad: no network; connect\n" in out.err
    assert out.out.startswith("nginx: 1.2 from a test")
    assert main.run(["get", "--all", "--json"]) == 3
    answers = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    assert (answers["nginx"]["status"], answers["bad"]["status"]) == ("present", "failed")
    assert answers["bad"]["reason"] == "no network; connect"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "trifecta: name the implementations, or use --all; see 'trifecta get --help'\n"),
        (["--all", "nginx"], "trifecta: name the implementations, or use --all; see 'trifecta get --help'\n"),
        (["nginx", "ngnix"], "trifecta: no implementation 'ngnix'; did you mean 'nginx'?\n"),
    ],
)
def test_bad_input_installs_nothing(arguments, message, recipes, capsys):
    assert main.run(["get", *arguments]) == 2
    assert capsys.readouterr().err == message
    assert recipes["nginx"].installs == 0


SLOW = """
import signal, sys, time
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored, and so inherited, where a shell started all this
from trifecta.cli import main
from trifecta.implementations import installation, registry
from trifecta.implementations.recipe import Recipe
from trifecta.store.cache import is_whole, make_whole

class Slow(Recipe):
    name, origin = "slow", "a test"
    def installed(self):
        return is_whole(self.folder(), "digest")
    def install(self, say):
        def fill(folder):
            (folder / "half").write_text("half")
            say("slow: half")
            if "--hang" in sys.argv:
                time.sleep(600)
        make_whole(self.folder(), "digest", fill, say)

there = {"slow": Slow()}
installation.chosen.__defaults__ = (there,)
installation.get.__kwdefaults__.update(recipes=there, look=lambda name: [])
sys.exit(main.run(["get", "slow"]))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_leaves_nothing_half_and_the_same_command_goes_on(number, tmp_path):
    command = [sys.executable, "-c", SLOW]
    cache = tmp_path / "cache"
    process = subprocess.Popen(
        [*command, "--hang"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
    )
    assert process.stderr.readline() == "slow: half\n"
    time.sleep(0.1)
    process.send_signal(number)
    out, errors = process.communicate(timeout=60)
    assert (process.returncode, out, errors) == (130, "", "trifecta: interrupted\n")
    assert [path.name for path in cache.rglob("*") if path.name in ("half", "slow")] == []
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "from a test" in done.stdout
    assert (cache / "slow/half").exists()


def test_signals_are_as_before_after_an_installation():
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)]
    get("x", lambda _: None, recipes={"x": Fake("x")}, look=seen("x"))
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)] == before


def test_a_folders_size_counts_what_is_in_it(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner/file").write_bytes(b"x" * 100_000)
    (tmp_path / "link").symlink_to("/nowhere")
    assert 100_000 <= installation.folder_bytes(tmp_path) < 200_000
