"""`--cluster`: what it cannot do is said in a line, before anything is made."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from trifecta.cli.main import run

GATE = ["gate", "race", "--baseline", "tcp_nodelay=on", "--candidate", "tcp_nodelay=off", "--set", "server=origin",
        "--set", "protocol=h2"]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "race", "--cluster", "nowhere"], "option --cluster nowhere: write HOST:PORT"),
        (["run", "race", "--cluster", "local:0"], "option --cluster local:0: write local:N"),
        (["run", "race", "--cluster", "local:2", "--capture"], "'race' captures packets"),
        (["race", "--cluster", "local:2", "--host", "client=here", "--host", "server=ssh://b"], "names its hosts"),
        (["run", "bourbon2020", "--cluster", "local:0"], "option --cluster local:0: write local:N"),
        (["race", "https://a.example/", "--cluster", "local:2"], "option --cluster: belongs to servers of a study"),
        (["map", "--cluster", "nowhere"], "option --cluster nowhere: write HOST:PORT"),
        ([*GATE, "--cluster", "nowhere"], "option --cluster nowhere: write HOST:PORT"),
        (
            [*GATE, "--cluster", "local:2", "--references", "refs"],
            "trifecta: option --references: a last good state belongs to one machine, but the nodes of a cluster come "
            "and go; leave out --references or --cluster\n",
        ),
        (["reproduce", "bourbon2020", "--cluster", "local:2"], "threats are measured on one machine; add --no-threats"),
        (["reproduce", "bourbon2020", "--no-threats", "--cluster", "local"], "option --cluster local: write HOST:PORT"),
    ],
)
def test_what_cannot_be_is_one_line(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(words) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_without_the_extra_it_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "ray", None)
    for name in ("race", "bourbon2020"):
        assert run(["run", name, "--cluster", "local:2"]) == 3
        assert "pip install 'trifecta[cluster]'" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
