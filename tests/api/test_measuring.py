"""``trifecta.run`` and ``trifecta.race``: a command in a process beside this one, as a function."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import trifecta
from trifecta.api import measuring
from trifecta.cli import main
from trifecta.design.errors import CannotError
from trifecta.design.study import path, requests, study
from trifecta.store.run import RunDirectory

FAKE = """
import json, os, signal, sys, time
from pathlib import Path
folder, code, how = sys.argv[1:4]
apart = os.getsid(0) == os.getpid()
Path(folder, "words.json").write_text(json.dumps([sys.argv[5:], dict(os.environ), apart, sys.argv[4]]))
last = sys.argv[-1]
if last.endswith("study.yaml"):
    Path(folder, "study.yaml").write_text(Path(last).read_text())
print("block 1 of 2", file=sys.stderr, flush=True)
def stop(*_):
    print(json.dumps({"run": "it"}))
    sys.exit(130)
if how == "interrupted":
    signal.signal(signal.SIGINT, stop)
    os.kill(os.getppid(), signal.SIGINT)
    time.sleep(60)
if how == "failing":
    print("trifecta: race.yaml:3: no such thing; mend it", file=sys.stderr)
else:
    print(json.dumps({"run": how}))
sys.exit(int(code))
"""


def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: int, how: str | Path) -> None:
    (tmp_path / "fake.py").write_text(FAKE)
    command = (sys.executable, str(tmp_path / "fake.py"), str(tmp_path), str(code), str(how))
    monkeypatch.setattr(measuring, "_COMMAND", command)


def words(tmp_path: Path) -> list[str]:
    told: list[str] = json.loads((tmp_path / "words.json").read_text())[0]
    return told


def test_what_is_asked_is_a_command_line_and_what_comes_back_is_the_run(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake(monkeypatch, tmp_path, 0, folder)
    monkeypatch.setenv("FORCE_COLOR", "1")
    run = trifecta.race(
        out="runs/x", changes={"path": ["clean", "far"], "paths.rough.loss": "5 %", "verify": True}, blocks=3, seed=7,
        server=["origin", "caddy"], with_threats="jitter-reordering", capture=True, compare="server", budget="1 min",
    )  # fmt: skip
    assert run.path == folder.resolve()
    assert capsys.readouterr().err == "block 1 of 2\n"
    asked = words(tmp_path)
    assert asked[0] == "race" and asked[-1] == "--"
    assert set(asked[1:-1]) == {
        "--set=path=clean,far", "--set=paths.rough.loss=5 %", "--set=verify=true", "--out=runs/x", "--blocks=3",
        "--seed=7", "--server=origin", "--server=caddy", "--with=jitter-reordering", "--capture", "--compare=server",
        "--budget=1 min", "--json",
    }  # fmt: skip
    _, environment, apart, told = json.loads((tmp_path / "words.json").read_text())
    assert told == ""
    assert "FORCE_COLOR" not in environment
    assert apart, "an interrupt of the terminal reaches it once"


def test_urls_and_quiet(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake(monkeypatch, tmp_path, 0, folder)
    trifecta.race("https://a.example/", ca="ca.pem", address="IPv4", i_own_this=True, page=True, browser="firefox",
                  yes=True, quiet=True)  # fmt: skip
    assert capsys.readouterr().err == ""
    assert words(tmp_path) == [
        "race", "--yes", "--quiet", "--json", "--ca=ca.pem", "--address=IPv4", "--i-own-this", "--page",
        "--browser=firefox", "--", "https://a.example/",
    ]  # fmt: skip


def test_every_option_of_the_commands_is_an_argument() -> None:
    import inspect

    import click

    named = {"set": "changes", "with": "with_threats", "without": "without_threats", "i-own-this": "i_own_this"}
    ours = {"json", "quick", "full", "only"}  # of the answer that is read here, and of campaigns
    for name, function in (("race", trifecta.race), ("run", trifecta.run)):
        command = main.cli.get_command(click.Context(main.cli), name)
        assert command is not None
        options = {
            option.removeprefix("--")
            for one in command.params
            for option in one.opts
            if isinstance(one, click.Option) and option.startswith("--")
        }
        wanted = {named.get(option, option) for option in options - ours}
        assert wanted <= set(inspect.signature(function).parameters), name


def test_a_study_made_in_python_is_run(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, tmp_path, 0, folder)
    mine = study("mine", workload=requests(response="1 kB", requests=10), paths=[path("near", rtt="1 ms")],
                 factors={"path": ["near"]})  # fmt: skip
    trifecta.run(mine, quiet=True)
    assert (tmp_path / "study.yaml").read_text() == mine.source
    assert not Path(words(tmp_path)[-1]).exists(), "the file is gone afterwards"
    told = json.loads((tmp_path / "words.json").read_text())[-1]
    assert told == "study.yaml", "as it is in the run's folder"
    drawn = [word for word in words(tmp_path) if word.startswith("--seed=")]
    assert len(drawn) == 1, "one is drawn: runs of one seed lose the same packets"
    seeded = study("mine", workload=requests(response="1 kB", requests=10), paths=[path("near", rtt="1 ms")],
                   factors={"path": ["near"]}, seed=5)  # fmt: skip
    trifecta.run(seeded, quiet=True)
    assert not [word for word in words(tmp_path) if word.startswith("--seed=")]


@pytest.mark.parametrize(("code", "kind"), [(2, trifecta.UserError), (3, CannotError), (70, trifecta.TrifectaError)])
def test_what_a_command_refuses_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, kind: type[Exception]
) -> None:
    fake(monkeypatch, tmp_path, code, "failing")
    with pytest.raises(kind, match=r"^race\.yaml:3: no such thing; mend it$") as raised:
        trifecta.run("race", quiet=True)
    assert type(raised.value) is kind


def test_a_run_without_a_trial_that_counts_is_opened_with_a_warning(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(monkeypatch, tmp_path, 1, folder)
    with pytest.warns(UserWarning, match="no trial is fit for a verdict") as warned:
        assert trifecta.run("race", quiet=True).path == folder.resolve()
    assert warned[0].filename == __file__


def test_an_interrupt_ends_the_run_cleanly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, tmp_path, 0, "interrupted")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever the tests' runner made of it
    began = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt, match="keeps what was finished"):
            trifecta.race(quiet=True)
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - began < 30


def test_what_a_run_keeps_of_its_command_can_be_given_again() -> None:
    code = (
        "import sys; from trifecta.cli import child_process, main; "
        "main.run = lambda words: print(words, sys.argv) or 3; child_process.main()"
    )
    for told, last in (("", "some.yaml"), ("study.yaml", "study.yaml")):
        command = [sys.executable, "-c", code, told, "run", "--", "some.yaml"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 3, done.stderr
        assert done.stdout == f"['run', '--', 'some.yaml'] ['trifecta', 'run', '--', '{last}']\n"


def test_a_campaign_is_no_run() -> None:
    with pytest.raises(
        trifecta.UserError, match=r"bourbon2020 is a campaign, .*; run it by `trifecta run bourbon2020`"
    ):
        trifecta.run("bourbon2020")


def test_bad_input_of_the_real_command_is_a_user_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(trifecta.UserError, match=r"^option --set path=cleen: .*did you mean 'clean'") as raised:
        trifecta.race(changes={"path": "cleen"}, quiet=True)
    assert "\n" not in str(raised.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.lab
@pytest.mark.filterwarnings("ignore:.*no trial is fit for a verdict")
def test_a_race_is_run_and_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run = trifecta.race(changes={"path": "clean", "connection": "reused"}, server="origin", blocks=1)
    assert re.search(r"/runs/race-\d{8}-\d{6}$", str(run.path))
    assert {arm for (arm,) in run.sql("SELECT arm FROM trials").fetchall()} == {"h1", "h2", "h3", "h2#aa"}
    assert (run.path / "report.html").is_file()
    assert run.facts["argv"][:2] == ["trifecta", "race"]
    assert "trials" in capsys.readouterr().err


@pytest.mark.lab
def test_a_run_ends_with_the_program_that_asked_for_it(tmp_path: Path) -> None:
    code = (
        "import trifecta; trifecta.race(changes={'path': 'clean', 'connection': 'reused'}, server='origin', "
        "budget='2 min', out='it')"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stderr=subprocess.DEVNULL) as program:
        trials = tmp_path / "it/trials"
        deadline = time.monotonic() + 120
        while not (trials.is_dir() and list(trials.glob("t*.parquet"))):
            assert time.monotonic() < deadline and program.poll() is None
            time.sleep(0.1)
        os.kill(program.pid, signal.SIGKILL)
    deadline = time.monotonic() + 120
    while True:  # the lock is held for as long as the run is there
        try:
            RunDirectory.open(tmp_path / "it", write=True).close()
            break
        except CannotError:
            assert time.monotonic() < deadline
            time.sleep(0.2)
