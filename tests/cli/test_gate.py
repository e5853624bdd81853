"""``trifecta gate`` as a user and as a CI call it: exit codes, files, the Action's and GitLab's own commands."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from ruamel.yaml import YAML

from tests import queries
from tests.docs.examples import ROOT, blocks

PAIR = ("--baseline", "tcp_nodelay=on", "--candidate", "tcp_nodelay=off")
NARROW = ("--set", "server=origin", "--set", "protocol=h2", "--set", "path=clean", "--set", "connection=reused")
FAKE = f'#!/bin/bash\nexec env PYTHONPATH={ROOT} {sys.executable} -P -m tests.cli.fake_gate "$@"\n'


def gate(*arguments, command="gate", cwd, worse=1.0, module="tests.cli.fake_gate", **more):
    return subprocess.run(
        [sys.executable, "-P", "-m", module, command, *arguments],
        capture_output=True, text=True, check=False, cwd=cwd, stdin=subprocess.DEVNULL, timeout=250,
        env={**os.environ, "PYTHONPATH": str(ROOT), "FAKE_WORSE": str(worse), "COLUMNS": "120", **more},
    )  # fmt: skip


@pytest.mark.parametrize(("worse", "code", "word"), [(1.0, 0, "PASS"), (1.1, 1, "FAIL"), (1.03, 4, "UNDECIDED")])
def test_the_exit_code_is_the_verdict(tmp_path, worse, code, word):
    done = gate("race", *PAIR, *NARROW, "--quiet", "--seed", "1", cwd=tmp_path, worse=worse)
    assert (done.returncode, done.stderr) == (code, "")
    assert done.stdout.startswith(f"{word} TCP nodelay off against TCP nodelay on: ")
    assert re.search(r"^Run: .*runs/race-\d{8}-\d{6}$", done.stdout, re.MULTILINE)


def test_it_writes_what_is_asked_for_and_keeps_the_last_good_state(tmp_path):
    files = ("--summary", "out/gate.md", "--junit", "out/gate.xml", "--references", "refs", "--json")
    two = ("--fail-on", "slower:3%", "--fail-on", "latency_mean:9%", "--out", "run")
    done = gate("race", *PAIR, *NARROW, *files, *two, cwd=tmp_path)
    assert done.returncode == 4, "no value of the mean, so it is open"
    assert (tmp_path / "out/gate.md").read_text().startswith("### ❔ UNDECIDED: ")
    suite = ElementTree.parse(tmp_path / "out/gate.xml").getroot()[0]
    assert [case.get("name").rpartition(": ")[2] for case in suite] == ["slower:3 %", "latency_mean:9 %"]
    document = json.loads(done.stdout)
    assert (document["state"], document["run"]) == ("undecided", "run")
    assert not (tmp_path / "refs").exists()
    assert gate("race", *PAIR, *NARROW, *files, cwd=tmp_path).returncode == 0
    (kept,) = (tmp_path / "refs").iterdir()
    assert re.fullmatch(r"race-tcp_nodelay-[0-9a-f]{8}-[0-9a-f]{8}\.json", kept.name)
    first = json.loads(kept.read_text())
    assert first["state"] == "pass"
    again = (*files, "--seed", "1")
    assert gate("race", *PAIR, *NARROW, *again, cwd=tmp_path).returncode == 0
    assert json.loads(kept.read_text()) == first, "passing alone does not replace it"
    assert gate("race", *PAIR, *NARROW, *again, "--accept", cwd=tmp_path).returncode == 0
    assert json.loads(kept.read_text())["seed"] == 1
    assert gate("race", *PAIR, *NARROW, *files, "--set", "response=20 kB", cwd=tmp_path).returncode == 0
    assert len(list((tmp_path / "refs").iterdir())) == 2, "another question has a file of its own"


@pytest.mark.parametrize(("worse", "code", "sign"), [(1.0, 0, "✅ PASS"), (1.2, 1, "❌ FAIL")])
def test_a_gate_that_was_interrupted_is_gone_on_with_as_a_gate(tmp_path, worse, code, sign):
    files = ("--summary", "out/gate.md", "--junit", "out/gate.xml", "--references", "refs", "--out", "run")
    asked = ("race", *PAIR, *NARROW, *files, "--fail-on", "slower:9%", "--quiet")
    done = gate(*asked, cwd=tmp_path, worse=worse, FAKE_INTERRUPTED="1")
    assert done.returncode == 130, done.stderr
    assert (tmp_path / "out/gate.md").read_text().startswith("### ❔ UNDECIDED")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    more = ("../run", "--quiet", "--json", "--budget", "2 min")
    done = gate(*more, command="resume", cwd=elsewhere, worse=worse)
    assert done.returncode == code, done.stderr
    document = json.loads(done.stdout)
    assert [one["condition"] for one in document["tests"]] == ["slower:9 %"]
    assert document["budget_ns"] == 300 * 10**9
    assert (tmp_path / "out/gate.md").read_text().startswith(f"### {sign}: ")
    assert (tmp_path / "out/gate.xml").exists()
    assert (tmp_path / "refs").exists() == (code == 0)
    assert not list(elsewhere.iterdir()), "files are where they were asked for"


def test_what_a_gate_was_asked_is_refused_where_it_is_damaged(tmp_path):
    assert gate("race", *PAIR, *NARROW, "--out", "run", cwd=tmp_path).returncode == 0
    facts = json.loads((tmp_path / "run/run.json").read_text())
    (tmp_path / "run/manifest.sha256").unlink()
    (tmp_path / "run/run.json").write_text(json.dumps({**facts, "schema": 1, "gate": {"fail_on": "slower:3%"}}))
    done = gate("run", command="resume", cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "run.json: gate." in done.stderr


def test_the_seed_is_drawn_and_the_budget_is_three_minutes_unless_given(tmp_path):
    def asked(*more):
        done = gate("race", *PAIR, *NARROW, "--json", "--quiet", *more, cwd=tmp_path)
        document = json.loads(done.stdout)
        return document["budget_ns"] // 10**9, document["seed"]

    first, second = asked(), asked("--budget", "5 min", "--seed", "7")
    assert first[0] == 180
    assert second == (300, 7)
    assert asked("--set", "budget=2 min")[0] == 120


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["race", "--baseline", "origin"], "missing option '--candidate'"),
        (["race", "--baseline", "origin", "--candidate", "path=far"], "levels of two factors, server and path"),
        (["race", *PAIR, "--fail-on", "slower:3"], "option --fail-on slower:3: '3' is no limit"),
        (["race", *PAIR, "--set", "tcp_nodelay=on"], "and --set tcp_nodelay=on: both set tcp_nodelay; leave one out"),
        (["race", *PAIR, "--set", "compare=path"], "--set compare=path: both set compare; leave one out"),
        (["race", *PAIR, "--set", "capture=true"], "race: capture: captured trials decide nothing; leave it out"),
        (["race", *PAIR, "--budget", "1 min", "--set", "budget=2 min"], "both set budget; leave one out"),
        (["bourbon2020", *PAIR], "bourbon2020 is a campaign, and a gate is of one study"),
        (["nothing", *PAIR], "no study 'nothing'"),
        (["race", *PAIR, "--accept"], "option --accept: there is no last good state without --references"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(tmp_path, arguments, said):
    done = gate(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.startswith("trifecta: ")
    assert done.stderr.count("\n") == 1


def test_a_damaged_reference_is_refused_before_anything_is_measured(tmp_path):
    assert gate("race", *PAIR, *NARROW, "--references", "refs", cwd=tmp_path).returncode == 0
    (kept,) = (tmp_path / "refs").iterdir()
    kept.write_text("{")
    done = gate("race", *PAIR, *NARROW, "--references", "refs", "--summary", "gate.md", cwd=tmp_path)
    assert done.returncode == 2
    assert f"refs/{kept.name}: " in done.stderr
    assert not (tmp_path / "gate.md").exists()


@pytest.fixture
def ci(tmp_path):
    """A folder in which commands of a CI find installers that only note it, and a trifecta whose lab is invented."""
    note = f'#!/bin/bash\necho "$(basename "$0") $*" >> {tmp_path}/noted\n'
    made = f'cp {tmp_path}/made/trifecta "$3/bin"; cp {tmp_path}/tools/pip "$3/bin/python"'
    venv = f'#!/bin/bash\nmkdir -p "$3/bin"; {made}\n'
    for name, text in {"made/trifecta": FAKE, "tools/pip": note, "tools/sudo": note, "tools/python3": venv}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "my-study.yaml").write_text(
        "study: mine\nworkload: {requests: 20}\nfactors: {protocol: [HTTP/2, HTTP/3], path: [clean]}\n"
    )
    (tmp_path / "work" / "trifecta-1-manylinux.whl").write_text("")
    return tmp_path


def shell(script, ci, *, path, **environment):
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        capture_output=True, text=True, check=False, cwd=ci / "work", stdin=subprocess.DEVNULL, timeout=120,
        env={**os.environ, "PATH": ":".join([*path, f"{ci}/tools", "/usr/bin:/bin"]), **environment},
    )  # fmt: skip


def action():
    return YAML(typ="safe").load(ROOT / "action.yml")


def run_action(ci, worse, **given):
    """What a runner of GitHub does: the steps in turn, inputs and files in the environment; the last step's result."""
    about = action()
    files = {name: ci / name for name in ("GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    inputs = {name: str(given.get(name, one.get("default", ""))) for name, one in about["inputs"].items()}
    known = {f"inputs.{name}": value for name, value in inputs.items()} | {"github.action_path": str(ROOT)}
    done = None
    for step in about["runs"]["steps"]:
        filled = {
            name: re.sub(r"\$\{\{ (\S+) \}\}", lambda found: known[found[1]], str(text))
            for name, text in step.get("env", {}).items()
        }
        added = files["GITHUB_PATH"].read_text().split() if files["GITHUB_PATH"].exists() else []
        done = shell(
            step["run"], ci, path=added, **{**filled, **{name: str(file) for name, file in files.items()}},
            RUNNER_TEMP=str(ci / "temp"), FAKE_WORSE=str(worse),
        )  # fmt: skip
        if done.returncode:
            break
    return done, files


@pytest.mark.parametrize(("worse", "code"), [(1.0, 0), (1.2, 1)])
def test_the_action_installs_gates_and_writes_the_summary(ci, worse, code):
    (example,) = [block for block in blocks(ROOT / "docs/gate.md") if block.marks.get("ci") == "github"]
    uses = YAML(typ="safe").load(example.text)["jobs"]["gate"]["steps"][1]
    assert set(uses["with"]) <= set(action()["inputs"])
    done, files = run_action(ci, worse, **uses["with"], references="refs", wheel="trifecta-1-manylinux.whl")
    assert done.returncode == code, done.stderr
    assert (ci / "noted").read_text().splitlines()[0] == "python -m pip install --quiet trifecta-1-manylinux.whl"
    assert f"exit-code={code}\n" == files["GITHUB_OUTPUT"].read_text()
    summary = files["GITHUB_STEP_SUMMARY"].read_text()
    assert summary == (ci / "work/trifecta-gate/summary.md").read_text()
    assert summary.startswith("### ✅ PASS" if code == 0 else "### ❌ FAIL")
    document = json.loads((ci / "work/trifecta-gate/gate.json").read_text())
    assert {one["condition"] for one in document["tests"]} == {"slower:3 %", "more-cpu:10 %"}
    assert (ci / "work/trifecta-gate/junit.xml").exists()
    assert (ci / "work/refs").exists() == (code == 0)


def test_the_action_without_a_wheel_installs_its_checkout_and_hands_on_bad_input(ci):
    done, files = run_action(ci, 1.0, study="nothing", baseline="origin", candidate="caddy")
    assert (done.returncode, files["GITHUB_OUTPUT"].read_text()) == (2, "exit-code=2\n")
    assert (ci / "noted").read_text().splitlines()[0] == f"python -m pip install --quiet {ROOT}"
    assert not files["GITHUB_STEP_SUMMARY"].exists()


def test_inputs_reach_no_shell_as_text():
    for step in action()["runs"]["steps"]:
        assert "${{" not in step["run"]


@pytest.mark.parametrize(("worse", "code"), [(1.0, 0), (1.2, 1)])
def test_the_line_for_gitlab(ci, worse, code):
    (example,) = [block for block in blocks(ROOT / "docs/gate.md") if block.marks.get("ci") == "gitlab"]
    job = YAML(typ="safe").load(example.text)["gate"]
    done = shell("\n".join(job["script"]), ci, path=[f"{ci}/made"], FAKE_WORSE=str(worse))
    assert done.returncode == code, done.stderr
    assert (ci / "noted").read_text() == "pip install trifecta-1-manylinux.whl\n"
    for name in (*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"]):
        assert (ci / "work" / name).exists()
    assert job["allow_failure"]["exit_codes"] == [4]


@pytest.mark.lab
@pytest.mark.parametrize("candidate", ["off", "on"])
def test_our_origin_with_and_without_nodelay(tmp_path, candidate):
    refs = ("--baseline", "tcp_nodelay=on", "--candidate", f"tcp_nodelay={candidate}")
    lab = (*NARROW, "--budget", "25 s", "--json", "--out", "run", "--junit", "gate.xml", "--set", "requests=60")
    done = gate("race", *refs, *lab, cwd=tmp_path, module="trifecta.cli.main")
    document = json.loads(done.stdout)
    code = {"pass": 0, "fail": 1, "undecided": 4}[document["state"]]  # which of them is a matter of the machine
    assert done.returncode == code, done.stderr
    assert (document["factor"], document["baseline"]) == ("tcp_nodelay", "TCP nodelay on")
    assert document["candidate"] == ("TCP nodelay off" if candidate == "off" else "TCP nodelay on again")
    query = "SELECT arm, count(*) AS n FROM trials GROUP BY arm"
    rows = queries.rows(tmp_path / "run", query)
    arms = {"true", "false", "true#aa"} if candidate == "off" else {"true", "true#aa"}
    assert {row["arm"] for row in rows} == arms
    assert sum(row["n"] for row in rows) == document["trials"]
    (tmp_path / "gate.xml").unlink()
    done = gate("run", "--budget", "5 s", "--json", command="resume", cwd=tmp_path, module="trifecta.cli.main")
    longer = json.loads(done.stdout)
    assert done.returncode == {"pass": 0, "fail": 1, "undecided": 4}[longer["state"]], done.stderr
    assert longer["trials"] >= document["trials"]
    assert longer["seed"] == document["seed"]
    spent_ns = json.loads((tmp_path / "run/run.json").read_text())["extended"][-1]["after_elapsed_ns"]
    assert spent_ns == pytest.approx(document["elapsed_ns"], abs=5e9)
    assert longer["budget_ns"] == spent_ns + 5 * 10**9, "so much longer, though it was decided before its time"
    assert Path(tmp_path / "gate.xml").exists(), "where it was asked for, not where the user is"
