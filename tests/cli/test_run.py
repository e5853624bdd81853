"""``trifecta race``, ``run`` and ``resume`` end to end, as a user calls them."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from tests import queries
from tests.implementations.outside import install, install_server

pytestmark = pytest.mark.lab

TINY = ["--set", "path=clean", "--set", "connection=reused", "--server", "origin"]


def trifecta(*arguments, cwd, program=("-m", "trifecta.cli.main"), **more):
    return subprocess.run(
        [sys.executable, *program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        timeout=280,
        **more,
    )


def count(folder, table, cwd):
    return queries.rows(cwd / folder, f"SELECT count(*) AS n FROM {table}")[0]["n"]


def expected_code(folder, cwd):
    """1 where the machine is so busy with something else that no verdict can be had, else 0."""
    query = "SELECT count(*) FILTER (valid) AS n FROM trials"
    valid = queries.rows(cwd / folder, query)[0]["n"]
    gave_up = json.loads((cwd / folder / "run.json").read_text())["state"] == "unmeasurable"
    return 1 if gave_up or not valid else 0


def test_a_race_ends_with_verdicts_and_a_report(tmp_path):
    done = trifecta("race", *TINY, "--blocks", "2", "--out", "here", cwd=tmp_path)
    assert done.returncode == expected_code("here", tmp_path), done.stderr
    assert "HTTP/3" in done.stdout
    assert f"Report: {tmp_path / 'here' / 'report.html'}" in done.stdout
    assert (tmp_path / "here/report.html").stat().st_size > 10_000
    assert count("here", "trials", tmp_path) == 8


def test_the_default_folder_is_named_after_study_and_time_and_json_says_it(tmp_path):
    done = trifecta("race", *TINY, "--blocks", "1", "--quiet", "--json", cwd=tmp_path)
    assert done.stderr == ""
    document = json.loads(done.stdout)
    assert done.returncode == expected_code(document["run"], tmp_path)
    assert re.search(r"runs/race-\d{8}-\d{6}$", document["run"])
    assert document["trials"] == 4


def test_a_folder_that_is_taken_is_refused(tmp_path):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").write_text("mine")
    done = trifecta("race", *TINY, "--out", "taken", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("trifecta: ")
    assert "is not empty; choose another with --out" in done.stderr
    assert done.stderr.count("\n") == 1
    assert [entry.name for entry in (tmp_path / "taken").iterdir()] == ["file"]


def test_a_missing_engine_is_one_line_and_exit_code_3(tmp_path):
    environment = {**os.environ, "TRIFECTA_ENGINE": "/nowhere/engine"}
    done = trifecta("race", *TINY, "--blocks", "1", cwd=tmp_path, env=environment)
    assert done.returncode == 3
    assert re.fullmatch(r"trifecta: .*TRIFECTA_ENGINE.*\n", done.stderr)


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_an_interrupt_keeps_what_is_finished_and_resume_completes_it(tmp_path, number):
    process = subprocess.Popen(
        [sys.executable, "-m", "trifecta.cli.main", "race", *TINY, "--blocks", "3", "--out", "here"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 120
        while len(list((tmp_path / "here").glob("trials/t*.parquet"))) < 5:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(number)
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert "Report: " in out
    finished = count("here", "trials", tmp_path)
    assert 5 <= finished < 12

    done = trifecta("resume", "here", "--quiet", cwd=tmp_path)
    assert done.returncode == expected_code("here", tmp_path), done.stderr
    rows = queries.rows(tmp_path / "here", "SELECT block, arm FROM trials")
    assert len({(row["block"], row["arm"]) for row in rows}) == len(rows)
    assert len(rows) >= finished
    # On a machine that is busy with something else no trial counts, and the planner gives up early, and says so.
    if json.loads((tmp_path / "here/run.json").read_text())["state"] != "unmeasurable":
        assert len(rows) == 12


def test_link_measure_finds_what_was_asked(tmp_path):
    done = trifecta("link", "measure", "--rtt", "20 ms", "--packets", "100", "--json", cwd=tmp_path)
    document = json.loads(done.stdout)
    wrong = [one["text"] for one in document["findings"] if one["status"] == "fail"]
    # A machine whose hypervisor takes its CPUs sends some packets late, and the command says so.
    assert all("of packets left within" in text for text in wrong), wrong
    assert (done.returncode, document["as_asked"]) == ((1, False) if wrong else (0, True))
    line = next(each for each in document["comparison"] if each["name"] == "round trip, median")
    assert line["asked"] == 20
    assert 20 <= line["given"] < 25


def test_link_measure_counts_what_is_lost(tmp_path):
    done = trifecta("link", "measure", "--loss", "30 %", "--packets", "300", "--interval", "200 us", cwd=tmp_path)
    wrong = re.findall(r"not as requested: (.*)", done.stdout)
    assert all("of packets left within" in text for text in wrong), wrong
    assert done.returncode == bool(wrong), done.stderr
    assert re.search(r"forward loss +\d", done.stdout)


def test_any_server_is_every_server_found_and_stays_that(tmp_path):
    adapters = tmp_path / "adapters"
    adapters.mkdir()
    install_server(adapters, "crashing", "crashing", "import os; os._exit(3)")
    install_server(adapters, "missing", "missing", 'raise Unsupported("missing is not here; make it")')
    environment = {**os.environ, "TRIFECTA_CACHE": str(tmp_path / "cache")}
    with_them = environment | {"PYTHONPATH": str(adapters)}
    asked = ("race", "--set", "path=clean", "--set", "connection=reused", "--server", "any", "--blocks", "1")
    done = trifecta(*asked, "--out", "here", cwd=tmp_path, env=with_them)
    assert done.returncode == expected_code("here", tmp_path), done.stderr
    assert "Left out: server missing: missing is not here; make it" in " ".join(done.stdout.split())
    facts = json.loads((tmp_path / "here/run.json").read_text())
    found = facts["any"]["server"]
    assert {"origin", "caddy"} <= {*found}
    left_out = {each["level"]: each["reason"] for each in facts["not_found"]}
    assert left_out["crashing"] == "crashed (exit code 3)"
    assert left_out["missing"] == "missing is not here; make it"
    measured = queries.rows(tmp_path / "here", "SELECT DISTINCT server FROM trials")
    assert {row["server"] for row in measured} == {*found}
    again = trifecta("resume", "here", "--quiet", cwd=tmp_path, env=environment)  # the packages are gone: same study
    assert again.returncode == expected_code("here", tmp_path), again.stderr
    assert json.loads((tmp_path / "here/run.json").read_text())["any"] == facts["any"]


def test_a_named_server_whose_import_hangs_is_a_row_and_the_other_is_measured(tmp_path):
    adapters = tmp_path / "adapters"
    adapters.mkdir()
    install(adapters, "hanging", "[trifecta.servers]\nhanging = MODULE:Outside\n", "import time; time.sleep(600)")
    path = os.pathsep.join((str(adapters), os.environ.get("PYTHONPATH", "")))
    asked = ("race", "--set", "path=clean", "--set", "connection=reused", "--server", "origin,hanging", "--blocks", "1")
    impatient = (
        "from trifecta.implementations import table; table.LOAD_TIMEOUT_S = 3.0; from trifecta.cli import main; "
    )
    program = ("-c", f"{impatient}main.main()")
    done = trifecta(*asked, "--out", "here", cwd=tmp_path, program=program, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == expected_code("here", tmp_path), done.stderr
    reason = "hanging_module:Outside of hanging 1.5 cannot be loaded (did not answer within 3 s)"
    assert f"Left out: server hanging: {reason}" in " ".join(done.stdout.split())
    (left_out,) = json.loads((tmp_path / "here/run.json").read_text())["unsupported"]
    assert (left_out["level"], left_out["reason"]) == ("hanging", f"{reason}; report it to its author")
    rows = queries.rows(tmp_path / "here", "SELECT DISTINCT server FROM trials")
    assert [row["server"] for row in rows] == ["origin"]


def test_a_run_that_has_ended_goes_on_by_so_many_blocks(tmp_path):
    done = trifecta("race", *TINY, "--blocks", "1", "--out", "here", "--quiet", cwd=tmp_path)
    assert done.returncode == expected_code("here", tmp_path), done.stderr
    seed = json.loads((tmp_path / "here/run.json").read_text())["seed"]
    done = trifecta("resume", "here", "--blocks", "1", "--quiet", cwd=tmp_path)
    assert done.returncode == expected_code("here", tmp_path), done.stderr
    facts = json.loads((tmp_path / "here/run.json").read_text())
    assert (facts["seed"], len(facts["extended"])) == (seed, 1)
    assert count("here", "trials", tmp_path) == 8
    assert "at_most: 2" in (tmp_path / "here/study.yaml").read_text()


def test_a_campaign_is_not_extended(tmp_path):
    (tmp_path / "many" / "one").mkdir(parents=True)
    (tmp_path / "many" / "campaign.json").write_text("{}")
    (tmp_path / "many" / "one" / "run.json").write_text("{}")
    done = trifecta("resume", "many", "--blocks", "3", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == (
        "trifecta: many is a campaign, which continues to its own end; give one of its runs, such as many/one\n"
    )
