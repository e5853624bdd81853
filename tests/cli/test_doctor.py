"""``trifecta doctor``: what it finds on this machine, and what it says of another."""

import json
import re
import subprocess

import pytest

from trifecta.cli import main
from trifecta.design import extras
from trifecta.lab import doctor
from trifecta.lab.containers import DockerState
from trifecta.lab.doctor import Finding


def finding(name, findings):
    return next(each for each in findings if each.name == name)


def test_able_only_when_nothing_required_is_missing():
    assert doctor.able([Finding("a", "ok", "", required=True), Finding("b", "missing", "")])
    assert not doctor.able([Finding("a", "missing", "", required=True)])


def pretend_inside(monkeypatch, problems=None, code=0, error=""):
    """Lets the child that tries everything answer as on another machine."""
    real = subprocess.run
    names = [
        "veth",
        "AF_PACKET with vnet headers",
        "super-packets (TSO)",
        "UDP segmentation offload",
        "UDP receive offload",
        "netem",
        "fq",
        "ifb",
        "SCHED_FIFO",
        "UDP buffers",
        "Docker",
    ]

    def run(command, **more):
        if "trifecta.lab.doctor_sandbox" in command:
            answer = json.dumps(dict.fromkeys(names, "") | (problems or {}))
            return subprocess.CompletedProcess(command, code, answer, error)
        return real(command, **more)

    monkeypatch.setattr(subprocess, "run", run)


def test_without_namespaces_no_study_runs_and_the_remedy_is_said(monkeypatch, tmp_path):
    reason = "the kernel refuses a user namespace (Operation not permitted); run as root, or `sudo sysctl -w a.b=1`"
    pretend_inside(monkeypatch, code=3, error=reason + "\n")
    findings = doctor.examine(tmp_path)
    assert finding("namespaces", findings).status == "missing"
    assert finding("namespaces", findings).remedy == "run as root, or `sudo sysctl -w a.b=1`"
    assert not doctor.able(findings)


def test_what_is_not_needed_is_absent_and_what_makes_numbers_worse_is_a_warning(monkeypatch, tmp_path):
    pretend_inside(monkeypatch, {"netem": "unknown", "SCHED_FIFO": "not permitted", "veth": "unknown"})
    findings = doctor.examine(tmp_path)
    assert (finding("netem", findings).status, finding("netem", findings).required) == ("missing", False)
    assert "not needed" in finding("netem", findings).evidence
    assert finding("SCHED_FIFO", findings).status == "warn"
    assert (finding("veth", findings).status, finding("veth", findings).required) == ("missing", True)


def test_a_problem_may_bring_its_own_remedy(monkeypatch, tmp_path):
    pretend_inside(monkeypatch, {"netem": "not installed: ethtool; sudo apt-get install -y ethtool"})
    netem = finding("netem", doctor.examine(tmp_path))
    assert netem.evidence == "not installed: ethtool; not needed, the engine carries the paths itself"
    assert netem.remedy == "sudo apt-get install -y ethtool"


def test_every_finding_that_is_not_well_has_a_remedy(monkeypatch, tmp_path):
    pretend_inside(monkeypatch, dict.fromkeys(("veth", "netem", "fq", "ifb", "SCHED_FIFO", "UDP buffers"), "broken"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("TRIFECTA_ENGINE", str(tmp_path / "none"))
    findings = doctor.examine(tmp_path)
    for each in findings:
        assert each.status == "ok" or each.remedy, each
    assert finding("engine", findings).remedy == "make setup"
    assert finding("ip", findings).remedy == "sudo apt-get install -y iproute2"


def test_a_tool_that_is_missing_says_what_needs_it(monkeypatch, tmp_path):
    pretend_inside(monkeypatch)
    monkeypatch.setattr(doctor, "_program", lambda _: None)
    findings = doctor.examine(tmp_path)
    for name, what in (
        ("tshark", "`trifecta trace`"),
        ("ffmpeg", "videos"),
        ("nft", "`load_balancer`"),
        ("wrk", "bench"),
    ):
        tool = finding(name, findings)
        assert (tool.status, tool.required) == ("missing", False)
        assert tool.evidence.startswith("not found; needed by ")
        assert what in tool.evidence
    assert doctor.able(findings)


def test_an_extra_that_is_missing_says_what_wants_it_and_how_it_is_installed(monkeypatch, tmp_path):
    pretend_inside(monkeypatch)
    monkeypatch.setattr(extras, "missing", lambda name: ["pyarrow"] if name == "capture" else [])
    findings = doctor.examine(tmp_path)
    absent = finding("extra capture", findings)
    assert (absent.status, absent.required, absent.remedy) == ("missing", False, "pip install 'trifecta[capture]'")
    assert absent.evidence.startswith("without pyarrow; wanted by `trifecta trace`")
    assert finding("extra browser", findings).status == "ok"
    assert doctor.able(findings)


def test_docker_is_not_required_and_its_problem_is_said(monkeypatch, tmp_path):
    pretend_inside(monkeypatch, {"Docker": "it does not start (why)"})
    monkeypatch.setattr(doctor, "docker_state", lambda _: DockerState("1.0"))
    tried = finding("Docker", doctor.examine(tmp_path))
    assert (tried.status, tried.evidence, tried.required) == ("warn", "it does not start (why)", False)
    monkeypatch.setattr(doctor, "docker_state", lambda _: DockerState(None, "dockerd is not installed", "install it"))
    absent = finding("Docker", doctor.examine(tmp_path))
    assert (absent.status, absent.remedy, absent.required) == ("missing", "install it", False)
    pretend_inside(monkeypatch)
    monkeypatch.setattr(doctor, "docker_state", lambda _: DockerState("1.0"))
    assert finding("Docker", doctor.examine(tmp_path)).evidence.startswith("1.0, ")


def test_a_folder_that_cannot_be_written(monkeypatch, tmp_path):
    pretend_inside(monkeypatch)
    monkeypatch.setattr("os.access", lambda *_: False)
    assert finding("disk", doctor.examine(tmp_path)).status == "missing"


def test_a_host_that_is_none_is_refused(capsys):
    assert main.run(["doctor", "--host", "a"]) == 2
    assert "option --host: 'a' is not a host; write ssh://HOST" in capsys.readouterr().err
    assert main.run(["doctor", "--host", "here"]) == 2
    assert "`trifecta doctor` alone is about this machine" in capsys.readouterr().err
    assert main.run(["doctor", "--host", "ssh://me:secret@a"]) == 2
    assert "secret" not in capsys.readouterr().err


@pytest.mark.lab
def test_this_machine(capsys):
    code = main.run(["doctor", "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert code == (0 if answer["able"] else 1)
    found = {each["name"]: each for each in answer["findings"]}
    assert found["namespaces"]["status"] == "ok"
    assert found["veth"]["status"] == "ok"
    assert re.search(r"of \d+ found: origin \S+; .*caddy 2\.", found["servers"]["evidence"])
    assert "load 0.1.0" in found["clients"]["evidence"]


@pytest.mark.lab
def test_nothing_is_left_behind(capsys):
    before = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    main.run(["doctor"])
    after = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    assert after.count("\n") == before.count("\n")
    assert "study can run here" in capsys.readouterr().out.lower()
