"""The experiment of a threat, through the whole lab: alone, as a trial with late packets does not count."""

import json

import pytest

from tests.cli.test_run import trifecta
from trifecta.threats import THREATS
from trifecta.workloads.experiments import threat_document

BLOCKS = 4
"""Two would do, but each of them has to count; a busy machine makes packets late."""


@pytest.mark.lab
def test_an_experiment_runs_and_is_detected(tmp_path):
    """Also: a server for each transport, so that parity has something to warn of."""
    blocks = f"blocks={{at_least: {BLOCKS}, at_most: {BLOCKS}}}"
    tiny = ["--set", blocks, "--set", "response=50 kB", "--set", "requests=1", "--set", "give_up=false"]
    done = trifecta(
        "threats", "measure", "congestion-control", *tiny, "--quiet", "--json", "--out", "here", cwd=tmp_path
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    (one,) = json.loads(done.stdout)
    left_out = [effect["left_out"]["checks"] for effect in one["effects"]]
    # Where this machine is busy with something else all the time, no trial counts, and that is what is said.
    assert done.returncode == (one["outcome"] == "not measured"), done.stdout
    assert done.returncode == 0 or all("machine" in checks for checks in left_out), done.stdout
    told = one["effects"][0]["detected"]
    assert (told["off"], told["on"], told["on_trials"]) == (0, 3 * BLOCKS, 3 * BLOCKS)
    again = threat_document(THREATS["congestion-control"], tmp_path / "here")
    assert json.loads(json.dumps(again)) == one
    assert json.loads((tmp_path / "here/threats.json").read_text()) == [one]
