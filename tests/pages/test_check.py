"""`trifecta page check` and its siblings at the command line: names, exit codes, what is said."""

import json

import pytest

from tests.pages import small
from trifecta.cli import main
from trifecta.lab import sandbox
from trifecta.workloads import replaying
from trifecta.workloads.replay_diff import Difference, ProtocolReplay

ODD = Difference("GET", "https://www.small.lab/", "another status: 500")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    small.write(tmp_path / "page")
    monkeypatch.setattr(sandbox, "enter", lambda: None)
    return tmp_path / "page"


def answer(monkeypatch, **differences):
    """Each server named replays with these differences; None: it cannot."""

    def check(folder, adapters, work, stop, ipv6):
        assert not ipv6
        for name in adapters:
            found = differences[name]
            asked = () if found is None else (ProtocolReplay("h1", 7, 99, found, ("date",), 0),)
            yield replaying.Replayed(name, "1", 7, 99, asked, "cannot" if found is None else "")

    monkeypatch.setattr(replaying, "check", check)


@pytest.mark.parametrize(
    ("origin", "nginx", "code"),
    [((), (), 0), ((), (ODD,), 1), ((), None, 0), (None, None, 1), ((ODD,), None, 1)],
)
def test_the_exit_code_says_whether_all_came_as_recorded(folder, monkeypatch, capsys, origin, nginx, code):
    answer(monkeypatch, origin=origin, nginx=nginx)
    assert main.run(["page", "check", str(folder), "--server", "origin,nginx"]) == code
    said = capsys.readouterr().out
    assert ("another status: 500" in said) == (ODD in (origin or ()) + (nginx or ()))
    assert main.run(["page", "check", str(folder), "--server", "origin,nginx", "--json"]) == code
    told = json.loads(capsys.readouterr().out)
    assert [(each["server"], each["same"]) for each in told] == [("origin", origin == ()), ("nginx", nginx == ())]


def test_bad_input_is_one_line(folder, capsys):
    assert main.run(["page", "check", str(folder), "--server", "ngin"]) == 2
    assert "did you mean 'nginx'" in capsys.readouterr().err
    (folder / "page.json").write_text("{}")
    assert main.run(["page", "check", str(folder)]) == 2
    assert "page.json: lacks the field 'format'" in capsys.readouterr().err
    assert main.run(["page", "show", "lihgt"]) == 2
    assert "did you mean 'light'" in capsys.readouterr().err


def test_pages_with_names_are_listed_without_making_them(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TRIFECTA_CACHE", str(tmp_path / "cache"))
    assert main.run(["page", "list"]) == 0
    said = capsys.readouterr().out
    assert "light: Light: a page of 3.5 MB in 30 requests" in said and "trifecta get page-blocks" in said
    assert not (tmp_path / "cache").exists()


def test_a_page_is_made_from_a_seed(tmp_path, capsys):
    assert main.run(["page", "make", "many", "--requests", "20", "--seed", "5", "--out", str(tmp_path / "many")]) == 0
    assert main.run(["page", "show", str(tmp_path / "many"), "--json", "--responses"]) == 0
    out = capsys.readouterr().out
    told = json.loads(out[out.index("{") :])
    assert (told["requests"], len(told["responses"]), told["source"]["seed"]) == (20, 20, 5)
