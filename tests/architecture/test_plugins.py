"""Parts that other packages add: installed as an installer would leave them, found and used, or refused in one line."""

import json
import os
import subprocess
import sys

import pytest

from tests.analysis.checks.sound import evidence
from tests.implementations.outside import install
from tests.report.synthetic import Shape, write_run
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
TARGET = '''"""a file that is named by a URL

## Writes
The names of arms.

## For
A test.

## Needs
Nothing.
"""
from pathlib import Path
from trifecta.store.exports.exporter import Target

def send(source, url):
    rows = source.connection.execute("SELECT DISTINCT arm FROM trials ORDER BY arm").fetchall()
    Path(url.partition("://")[2]).write_text(" ".join(arm for (arm,) in rows))
    return [url]

TARGET = Target(send, ("named",))
'''
METRIC = """
from trifecta.design.metric import Metric

METRIC = Metric(
    "latency_p90_ns", "90th percentile of latency", "ns", "less", "p90", 0.9, True, "latency_p90",
    sql="quantile_cont(latency_censored_ns, 0.9)", about="exceeded by one request in ten; needs 10 requests",
)
"""
WORKLOAD = """
from dataclasses import dataclass

from trifecta.design.workloads.kinds import Kind
from trifecta.design.workloads.requests import RequestsWorkload

@dataclass(frozen=True)
class Heads(RequestsWorkload):
    method: str = "HEAD"
    kind: str = "heads"

    @property
    def noun(self):
        return "heads"

HEADS = Kind(Heads, ("response", "in_flight", "request_timeout"))
"""
SECTION = """
from pathlib import Path

from trifecta.report.sections import Section

SECTION = Section(
    "weekdays", "Days of the trials", lambda run: {"trials": run.connection.execute("FROM trials").fetchall()},
    lambda run, derived: f"{len(derived['trials'])} trials in all", rows=lambda derived: {}, page="weekdays.html.j2",
    templates=Path(__file__).parent,
)
"""
ENTRIES = {
    "metric": "[trifecta.metrics]\nlatency_p90_ns = MODULE:METRIC\n",
    "workload": "[trifecta.workloads]\nheads = MODULE:HEADS\n",
    "section": "[trifecta.sections]\nweekdays = MODULE:SECTION\n",
    "exporter": "[trifecta.exporters]\narms = MODULE:EXPORTER\n",
    "target": "[trifecta.exporters]\nelsewhere = MODULE:TARGET\n",
    "check": "[trifecta.checks]\ncounted = MODULE:TRIAL\ncounted_all = MODULE:RUN\n",
    "threat": "[trifecta.threats]\nother-size = MODULE:THREAT\n",
}


def small():
    """A run of one cell, for what is asked of any run."""
    return Shape(blocks=6, samples_per_trial=60, paths=("far",), connections=("new",), servers=("origin",))


def trifecta(site, *arguments):
    return subprocess.run(
        [sys.executable, "-P", "-m", "trifecta.cli.main", *arguments],
        capture_output=True, text=True, check=False, cwd=site, stdin=subprocess.DEVNULL, timeout=200,
        env={**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
    )  # fmt: skip


def refused_before_it_begins(site):
    """The one line with which a race is refused; nothing was written."""
    done = trifecta(site, "race", "--blocks", "1", "--out", "run", "--quiet")
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert not (site / "run").exists()
    return line


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
    run = write_run(tmp_path / "run", small())
    install(tmp_path, "my-exporter", ENTRIES["exporter"], EXPORTER)
    done = trifecta(tmp_path, "export", str(run), "arms", "--json")
    assert json.loads(done.stdout) == [str(tmp_path / "run-arms/arms.txt")], done.stderr
    assert (tmp_path / "run-arms/arms.txt").read_text() == "h1 h2 h2#aa h3"


def test_a_target_is_used_by_its_scheme(tmp_path):
    run = write_run(tmp_path / "run", small())
    install(tmp_path, "my-target", ENTRIES["target"], TARGET)
    url = f"named://{tmp_path}/arms.txt"
    done = trifecta(tmp_path, "export", str(run), "--to", url, "--json")
    assert json.loads(done.stdout) == [url], done.stderr
    assert (tmp_path / "arms.txt").read_text() == "h1 h2 h2#aa h3"
    listed = " ".join(trifecta(tmp_path, "export", "--help").stdout.split())
    assert "named://" in listed
    assert "a file that is named by a URL" in listed


def test_an_exporter_that_fails_is_named_and_leaves_nothing(tmp_path):
    run = write_run(tmp_path / "run", small())
    install(tmp_path, "my-exporter", ENTRIES["exporter"], EXPORTER.replace("return [path]", "raise KeyError('x')"))
    done = trifecta(tmp_path, "export", str(run), "arms")
    assert done.returncode == 2
    said = "exporter 'arms' of my-exporter 1.5 failed (KeyError: 'x'); report it to its author"
    assert done.stderr.strip() == f"trifecta: {said}"
    assert not (tmp_path / "run-arms").exists()


@pytest.mark.lab
def test_a_metric_is_what_a_run_is_judged_by(tmp_path):
    install(tmp_path, "my-metric", ENTRIES["metric"], METRIC)
    asked = ("--set", "path=clean", "--set", "connection=reused", "--set", "requests=100", "--server", "origin")
    judged = ("--set", "metric=latency_p90", "--blocks", "1", "--out", "run", "--quiet")
    done = trifecta(tmp_path, "race", *asked, *judged)
    assert done.returncode in (0, 1), done.stderr
    query = (
        "SELECT t.latency_p90_ns AS kept, quantile_cont(s.latency_censored_ns, 0.9) AS counted, any_value(v.metric) m"
        " FROM trials AS t JOIN samples AS s USING (trial), verdicts AS v WHERE NOT s.warmup GROUP BY t.trial, kept"
    )
    rows = json.loads(trifecta(tmp_path, "sql", "run", query, "--json").stdout)
    assert len(rows) == 4
    for row in rows:
        assert row["m"] == "latency_p90_ns"
        assert row["kept"] == pytest.approx(row["counted"])
    assert "90th percentile of service time" in (tmp_path / "run/report.html").read_text()
    # Who has not the package reads the same run: the value stays, the verdict cannot be worded.
    for left in (*tmp_path.glob("my_metric*.py"), tmp_path / "my_metric-1.5.dist-info/entry_points.txt"):
        left.unlink()
    plain = "SELECT count(latency_p90_ns) AS n FROM trials"
    assert json.loads(trifecta(tmp_path, "sql", "run", plain, "--json").stdout) == [{"n": 4}]
    assert "metric: 'latency_p90' is not a metric" in trifecta(tmp_path, "report", "run").stderr


def test_a_metric_is_null_where_a_run_lacks_it(tmp_path):
    run = write_run(tmp_path / "run", small())
    install(tmp_path, "my-metric", ENTRIES["metric"], METRIC)
    asked = "SELECT count(*) AS trials, count(latency_p90_ns) AS told FROM trials"
    (row,) = json.loads(trifecta(tmp_path, "sql", str(run), asked, "--json").stdout)
    assert row["trials"] > 0
    assert row["told"] == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('"latency_p90_ns", ', '"latency_p50_ns", '), "calls itself 'latency_p50_ns'; name and entry point must be"),
        (('about="', 'short="'), "has no about; report it to its author"),
        (('"latency_p90",', '"latency_p99",'), "is asked for as 'latency_p99', which another metric is"),
    ],
)
def test_a_broken_metric_ends_a_run_before_it_begins(tmp_path, change, said):
    install(tmp_path, "my-metric", ENTRIES["metric"], METRIC.replace(*change))
    line = refused_before_it_begins(tmp_path)
    assert said in line
    assert "my-metric 1.5" in line


def test_a_metric_that_cannot_be_worked_out_ends_a_run_before_it_begins(tmp_path):
    install(tmp_path, "my-metric", ENTRIES["metric"], METRIC.replace("latency_censored_ns, 0.9", "no_such_column, 0.9"))
    done = trifecta(tmp_path, "race", "--blocks", "1", "--out", "run", "--quiet")
    assert done.returncode == 2
    assert "metric 'latency_p90_ns' cannot be computed (" in done.stderr
    assert not (tmp_path / "run").exists()


HEADS = """study: heads
workload: {kind: heads, response: 2 kB, in_flight: 4, requests: 40}
factors: {server: [origin], connection: [reused]}
blocks: {at_least: 1, at_most: 1}
"""


@pytest.mark.lab
def test_a_workload_is_run(tmp_path):
    install(tmp_path, "my-workload", ENTRIES["workload"], WORKLOAD)
    (tmp_path / "heads.yaml").write_text(HEADS)
    done = trifecta(tmp_path, "run", "heads.yaml", "--out", "run", "--quiet")
    assert done.returncode in (0, 1), done.stderr
    query = "SELECT count(*) AS n, max(bytes_in) AS octets FROM samples WHERE error IS NULL"
    assert json.loads(trifecta(tmp_path, "sql", "run", query, "--json").stdout) == [{"n": 160, "octets": 0}]
    checked = "SELECT DISTINCT status FROM checks WHERE \"check\" = 'same_work'"
    assert json.loads(trifecta(tmp_path, "sql", "run", checked, "--json").stdout) == [{"status": "pass"}]
    assert "kind: heads" in (tmp_path / "run/study.yaml").read_text()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('kind: str = "heads"', 'kind: str = "tails"'), "calls itself 'tails'; the class's kind and the entry point"),
        (('"request_timeout")', '"colour")'), "has the fields colour, which study files have not"),
    ],
)
def test_a_broken_workload_is_named(tmp_path, change, said):
    install(tmp_path, "my-workload", ENTRIES["workload"], WORKLOAD.replace(*change))
    (tmp_path / "heads.yaml").write_text(HEADS)
    done = trifecta(tmp_path, "run", "heads.yaml", "--out", "run", "--quiet")
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert said in line
    assert "my-workload 1.5" in line


def test_a_section_is_in_the_report(tmp_path):
    run = write_run(tmp_path / "run", small())
    install(tmp_path, "my-section", ENTRIES["section"], SECTION)
    folded = '{% call fold("weekdays", "Days of the trials") %}<p>{{ weekdays }}</p>{% endcall %}'
    (tmp_path / "weekdays.html.j2").write_text('{% from "tables.html.j2" import fold %}' + folded)
    done = trifecta(tmp_path, "report", str(run))
    assert done.returncode == 0, done.stderr
    page = (run / "report.html").read_text()
    assert 'id="weekdays"' in page
    assert "Days of the trials" in page
    assert " trials in all</p>" in page


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
    line = refused_before_it_begins(tmp_path)
    assert said in line
    assert "my-part" in line


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
    [(_raises, "(KeyError: 'load')"), (_answers_for_another, "(it returned a result of the check 'path')")],
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
    registry = Registry("check", {}, TrialCheck, lambda name, item, package: item, error=UserError)
    with pytest.raises(UserError, match=r"package .*: its entry_points\.txt cannot be read"):
        len(registry)


def _unreadable(self, name):
    raise OSError("gone")
