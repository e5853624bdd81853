"""Parts that other packages add: installed as an installer would leave them, found and used, or refused in one line."""

import json
import os
import subprocess
import sys

import pytest

from tests.analysis.checks.sound import evidence
from tests.implementations.outside import install
from tests.report.synthetic import write_run
from trifecta.analysis.checks.check import TrialCheck
from trifecta.design.errors import UserError
from trifecta.entries import Registry

CHECK = '''"""Were the samples counted?

## Fails when
There are none.

## Warns when
Never.

## Why
A test.
"""
from trifecta.analysis.checks.check import RunCheck, TrialCheck
from trifecta.design.model import CheckResult

def of_trial(evidence):
    return evidence.result("counted", "pass", f"{evidence.samples.samples} samples")

def of_run(evidence):
    return [CheckResult("counted_all", "run", "pass", f"{len(evidence.rows)} trials")]

TRIAL, RUN = TrialCheck(of_trial), RunCheck(of_run)
'''
THREAT = '''"""responses of another size

## Why
A test.

## Switch
`response=2kB`, `1kB`.

## Experiment
None.
"""
from trifecta.threats.threat import Threat

THREAT = Threat(id="other-size", docstring=__doc__, studies=(), on=("response=2kB",), off=("response=1kB",),
                check="counted", elsewhere="it is a test")
'''
EXPORTER = '''"""names of arms

## Writes
`arms.txt`.

## For
A test.
"""
from trifecta.store.exports.exporter import Exporter

def write(connection, folder):
    path = folder / "arms.txt"
    rows = connection.execute("SELECT DISTINCT arm FROM trials ORDER BY arm").fetchall()
    path.write_text(" ".join(arm for (arm,) in rows))
    return [path]

EXPORTER = Exporter(write)
'''
ENTRIES = {
    "exporter": "[trifecta.exporters]\narms = MODULE:EXPORTER\n",
    "check": "[trifecta.checks]\ncounted = MODULE:TRIAL\ncounted_all = MODULE:RUN\n",
    "threat": "[trifecta.threats]\nother-size = MODULE:THREAT\n",
}


def trifecta(site, *arguments):
    return subprocess.run(
        [sys.executable, "-P", "-m", "trifecta.cli.main", *arguments],
        capture_output=True, text=True, check=False, cwd=site, stdin=subprocess.DEVNULL, timeout=200,
        env={**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
    )  # fmt: skip


def test_a_threat_is_listed(tmp_path):
    install(tmp_path, "my-threat", ENTRIES["threat"], THREAT)
    listed = {one["id"]: one for one in json.loads(trifecta(tmp_path, "threats", "--json").stdout)}
    assert listed["other-size"]["title"] == "responses of another size"
    assert listed["other-size"]["on"] == ["response=2kB"]
    assert list(listed)[-1] == "other-size", "Trifecta's own come first"


@pytest.mark.lab
def test_a_check_and_a_threat_are_used_in_a_run(tmp_path):
    install(tmp_path, "my-check", ENTRIES["check"], CHECK)
    install(tmp_path, "my-threat", ENTRIES["threat"], THREAT)
    asked = ("--set", "path=clean", "--set", "connection=reused", "--set", "requests=100", "--server", "origin")
    done = trifecta(tmp_path, "race", *asked, "--with", "other-size", "--blocks", "1", "--out", "run", "--quiet")
    assert done.returncode in (0, 1), done.stderr  # 1: this machine is busy, so no trial may be fit for a verdict
    query = 'SELECT "check", evidence FROM checks WHERE "check" LIKE \'counted%\' ORDER BY ALL'
    rows = json.loads(trifecta(tmp_path, "sql", "run", query, "--json").stdout)
    assert [row["evidence"] for row in rows] == ["100 samples"] * 4 + ["4 trials"]
    sizes = json.loads(trifecta(tmp_path, "sql", "run", "SELECT DISTINCT bytes_in AS n FROM samples", "--json").stdout)
    assert [row["n"] for row in sizes] == [2000]


def test_an_exporter_is_used(tmp_path):
    run = write_run(tmp_path / "run")
    install(tmp_path, "my-exporter", ENTRIES["exporter"], EXPORTER)
    done = trifecta(tmp_path, "export", str(run), "arms", "--json")
    assert json.loads(done.stdout) == [str(tmp_path / "run-arms/arms.txt")], done.stderr
    assert (tmp_path / "run-arms/arms.txt").read_text() == "h1 h2 h2#aa h3"


def test_an_exporter_that_fails_is_named_and_leaves_nothing(tmp_path):
    run = write_run(tmp_path / "run")
    install(tmp_path, "my-exporter", ENTRIES["exporter"], EXPORTER.replace("return [path]", "raise KeyError('x')"))
    done = trifecta(tmp_path, "export", str(run), "arms")
    assert done.returncode == 2
    said = "exporter 'arms' of my-exporter 1.5 failed (KeyError: 'x'); report it to its author"
    assert done.stderr.strip() == f"trifecta: {said}"
    assert list((tmp_path / "run-arms").iterdir()) == []


@pytest.mark.parametrize(
    ("entries", "code", "said"),
    [
        (ENTRIES["check"], "import nothing_of_this_name", "'counted' (my_part_module:TRIAL of my-part 1.5) cannot"),
        ("[trifecta.checks]\npath = MODULE:TRIAL\n", CHECK, "has the name of that of trifecta; rename one"),
        ("[trifecta.checks]\nblocks = MODULE:TRIAL\n", CHECK, "has the name of that of trifecta; rename one"),
        ("[trifecta.checks]\ncounted = MODULE:of_run\n", CHECK, "is a function, no TrialCheck; report it to"),
        (ENTRIES["check"], CHECK.replace("## Why", "## Wherefore"), "has the heading 'Wherefore': its docstring needs"),
    ],
)  # fmt: skip
def test_a_broken_check_ends_a_run_before_it_begins(tmp_path, entries, code, said):
    install(tmp_path, "my-part", entries, code)
    done = trifecta(tmp_path, "race", "--blocks", "1", "--out", "run", "--quiet")
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert said in line
    assert "my-part" in line
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (THREAT.replace('"other-size"', '"another"'), "calls itself 'another'; its id and the entry point's"),
        (THREAT.replace("## Experiment\nNone.", ""), "lacks the heading 'Experiment'"),
        ("raise SystemExit(7)", "cannot be loaded (SystemExit: 7); report it to its author, or run: pip uni"),
    ],
)  # fmt: skip
def test_a_broken_threat_is_named(tmp_path, code, said):
    install(tmp_path, "my-part", ENTRIES["threat"], code)
    done = trifecta(tmp_path, "threats")
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert said in line
    assert "my-part 1.5" in line


def _raises(_evidence):
    raise KeyError("load")


def _answers_for_another(given):
    return given.result("path", "pass", "all is well")


@pytest.mark.parametrize(
    ("function", "said"),
    [(_raises, "(KeyError: 'load')"), (_answers_for_another, "(it answered for the check 'path')")],
)
def test_a_check_that_fails_itself_is_unknown_and_named(function, said):
    given = evidence()
    (result,) = TrialCheck(function, "my-part 1.5").results("counted", given.trial.trial, given)
    assert (result.check, result.scope, result.status) == ("counted", given.trial.trial, "unknown")
    assert result.evidence == f"the check of my-part 1.5 failed {said}"
    assert result.remedy == "report it to the author of the package"


def test_a_package_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    install(tmp_path, "my-part", "[trifecta.checks\nbroken", CHECK)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("importlib.metadata.PathDistribution.read_text", _unreadable)
    registry = Registry("check", {}, TrialCheck, lambda name, item, package: item)
    with pytest.raises(UserError, match=r"package .*: its entry_points\.txt cannot be read"):
        len(registry)


def _unreadable(self, name):
    raise OSError("gone")
