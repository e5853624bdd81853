"""``trifecta why``: what is wrong with a command, what it would remove, and what it says of a finished search."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.report.synthetic_why import asked_of, searched, source
from trifecta.cli import main, why
from trifecta.design.errors import CannotError, UserError
from trifecta.design.why.table import CAUSES
from trifecta.store.why import ASKED_FILE
from trifecta.workloads import why as searches


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return source(tmp_path_factory.mktemp("why") / "run")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--budget", "soon"], "option --budget: 'soon'"),
        (["--cell", "path=near"], "option --cell: no cell 'path=near'; choose from path=far,"),
        (["--arm", "h2"], "option --arm: 'h2' is not compared with h2; choose from h1, h3"),
        (["--seed", "-1"], "--seed"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, said, run, capsys):
    assert main.run(["why", str(run), *arguments]) == 2
    out, error = capsys.readouterr()
    assert said in error
    assert (out, error.count("\n")) == ("", 1)
    assert not (run / "why").exists()


def test_a_folder_that_is_no_run_is_refused(tmp_path, capsys):
    assert main.run(["why", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_list_has_every_cause_that_the_cell_may_have(run, capsys):
    assert main.run(["why", str(run), "--list", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {one["cause"] for one in told} <= {*CAUSES}
    assert [one["suspicion"] for one in told] == sorted((one["suspicion"] for one in told), reverse=True)
    (server,) = [one for one in told if one["cause"] == "server-program"]
    assert server["levels"] == {"server": "origin"}
    assert server["cannot"]
    unsuspected = [one["suspected"] for one in told if one["suspicion"] == 0]
    assert "udp-buffers" in [one["cause"] for one in told if one["suspicion"] == 0]
    assert set(unsuspected) == {"nothing points to it"}
    (acks,) = [one for one in told if one["cause"] == "ack-delay"]
    assert acks["levels"] == {"ack_delay": "1 ms"}, "the first that is taken"
    assert main.run(["why", str(run), "--list"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("h3 against h2 in path=far,connection=reused,server=caddy, the most suspected first:\n")
    assert "server-program: the server\n  server=origin; caddy is another program" in out
    assert "header-compression" in out


def test_a_finished_search_is_shown_and_its_exit_code_says_whether_a_cause_is_named(run, tmp_path, monkeypatch, capsys):
    asked = asked_of(run)
    folder = searched(tmp_path / "search", asked, monkeypatch)
    assert why._carry_out(folder, asked, quiet=True, as_json=False) == 0
    out = capsys.readouterr().out
    first, second, *_ = out.splitlines()
    assert first.startswith("Of 1.")
    assert "without the server" in first
    assert (
        second == "p50 latency, HTTP/3 : HTTP/2, path=far,connection=reused,server=caddy" or "HTTP/3 : HTTP/2" in second
    )
    assert why._carry_out(folder, asked, quiet=True, as_json=True) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["causes"][0]["cause"] == "server-program"
    assert json.loads((folder / "why.json").read_text()) == {key: made[key] for key in made if key != "folder"}
    alone = {**asked, "causes": asked["causes"][1:]}
    folder = searched(tmp_path / "alone", alone, monkeypatch)
    assert why._carry_out(folder, alone, quiet=True, as_json=False) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "In separate rounds, 1." in out
    assert "it explains" in out
    assert "is left unexplained" in out
    assert "No more was measured together: no other cause that was measured can be removed with it." in out
    lone = {**asked, "causes": asked["causes"][:1]}
    other = searched(tmp_path / "other", lone, monkeypatch)
    assert why._carry_out(other, lone, quiet=True, as_json=False) == 1
    assert "no cause that was removed is shown" in capsys.readouterr().out.splitlines()[0]


def test_what_cannot_run_together_loses_no_search(run, tmp_path, monkeypatch, capsys):
    asked = asked_of(run)
    folder = searched(tmp_path / "search", asked, monkeypatch)
    shutil.rmtree(folder / "together")

    def refuse(*_, **__):
        raise CannotError("1 of its 4 rungs cannot run here: no BBR")

    monkeypatch.setattr(searches, "run_rounds", refuse)
    assert why._carry_out(folder, asked, quiet=True, as_json=False) == 0
    said = "without server-program and congestion-control: 1 of its 4 rungs cannot run here: no BBR"
    assert said in " ".join(capsys.readouterr().out.split())
    made = json.loads((folder / "why.json").read_text())
    assert (made["together"], made["no_together"]) == (None, said)
    assert made["causes"][0]["state"] == "explains"


def test_another_search_or_a_damaged_one_is_refused(run, tmp_path, monkeypatch, capsys):
    asked = asked_of(run)
    folder = searched(tmp_path / "search", asked, monkeypatch)
    assert main.run(["why", str(run), "--budget", "9 min", "--out", str(folder)]) == 2
    assert "holds another search for causes (of another budget)" in capsys.readouterr().err
    for option, value in (("arm", "h1"), ("seed", "9")):
        assert main.run(["why", str(run), f"--{option}", value, "--out", str(folder)]) == 2
        error = capsys.readouterr().err
        assert f"holds another search for causes (of another {option})" in error
        assert error.count("\n") == 1
    with pytest.raises(UserError, match=r"\(of another cell\)"):
        why._require_same(folder, run, 300 * 10**9, None, "path=near", None)
    assert why._require_same(folder, run, 300 * 10**9, 3, asked["cell"], "h3") == asked
    assert main.run(["resume", str(folder), "--blocks", "3"]) == 2
    assert "is a search for causes, which continues to its own end" in capsys.readouterr().err
    assert main.run(["resume", str(folder / "causes")]) == 2
    assert "is part of a search for causes, whose rounds continue together" in capsys.readouterr().err
    broken = json.loads((folder / ASKED_FILE).read_text())
    del broken["causes"][0]["levels"]
    (folder / ASKED_FILE).write_text(json.dumps(broken))
    assert main.run(["resume", str(folder)]) == 2
    assert "causes[0].levels" in capsys.readouterr().err
