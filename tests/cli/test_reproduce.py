"""``trifecta reproduce``: bad input is said before anything runs."""

from __future__ import annotations

import pytest

from trifecta.cli import main


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nope"], "no published study 'nope'; choose from bourbon2020, baccichet2021, ding2022, milicevic2023, all"),
        (["ding2022", "--only", "nope"], "option --only nope: no such study, scenario or suite; choose from captured-"),
        (
            ["bourbon2020", "ding2022", "--only", "nope"],
            "option --only nope: no study, scenario or suite of these studies; `trifecta studies bourbon2020`, "
            "`trifecta studies ding2022` say which",
        ),
        (["ding2022", "--with", "conntrack"], "option --with conntrack: connections are tracked for services only"),
        (["ding2022", "--with", "nope"], "option --with: no threat 'nope'; choose from round-trips"),
        (["ding2022", "--set", "blocks=3"], "option --set blocks=3: blocks: '3' is not a mapping; write {name: value}"),
        (["ding2022", "--set", "seed=1", "--set", "seed=2"], "options --set seed=1 and --set seed=2: both set seed"),
        (["all", "--budget", "2"], "option --budget: '2' has no unit; write a time in one of ns, us, ms, s, min, h"),
        (["all", "--full", "--budget", "0 s"], "option --budget: '0 s' is zero; give more than 0"),
        (["--compare", ".", ".", "--budget", "2 h"], "--compare runs nothing; leave --budget out"),
        (["--compare", ".", "."], "reproduction.json does not exist; give two folders"),
        ([], "missing argument"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, said, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main.run(["reproduce", *arguments]) == 2
    out, error = capsys.readouterr()
    assert said in error
    assert (out, error.count("\n"), list(tmp_path.iterdir())) == ("", 1, [])
