"""What is left of several runs, from what lies in their folders."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trifecta.design import duration
from trifecta.design.study import chain, requests, study
from trifecta.workloads.remaining_time import remaining

STUDY = study(
    "s", workload=requests(requests=100), blocks={"at_least": 6, "at_most": 6}, budget="none",
    factors={"path": ["clean"], "connection": ["new"], "protocol": ["HTTP/2", "HTTP/3"]},
)  # fmt: skip
TRIALS = 18


def run(folder: Path, state: str, trials: int, seconds: float = 0.0) -> Path:
    (folder / "trials").mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"schema": 1, "state": state, "elapsed_ns": int(seconds * 1e9)}))
    for number in range(trials):
        (folder / "trials" / f"t{number:05d}.parquet").touch()
    (folder / "trials" / ".tmp-t00099.parquet").touch()  # what a killed run leaves is no trial
    return folder


def test_what_is_over_is_not_left_and_what_is_begun_is_left_in_part(tmp_path: Path) -> None:
    over, begun = run(tmp_path / "over", "blocks", TRIALS, 1), run(tmp_path / "begun", "running", 6)
    ahead = remaining({over: STUDY, begun: STUDY, tmp_path / "new": STUDY})
    assert (ahead.runs, ahead.of, ahead.done, ahead.trials) == (2, 3, TRIALS + 6, 12 + TRIALS)
    expected = duration.study_ns(STUDY)
    pace = (1e9 + 30e9) / (expected + 30e9)  # what was over took one second
    assert ahead.left_ns == pytest.approx(expected * (1 + 12 / 18) * pace, rel=1e-6)


def test_what_earlier_runs_took_corrects_the_forecast(tmp_path: Path) -> None:
    expected = duration.study_ns(STUDY) / 1e9
    many = 1 + int(5_000 / expected)  # beside them the forecast's own 30 s weigh less than 1 %
    slow = {run(tmp_path / f"{n}", "blocks", 0, 3 * expected): STUDY for n in range(many)}
    ahead = remaining({**slow, tmp_path / "new": STUDY})
    assert ahead.left_ns == pytest.approx(3 * expected * 1e9, rel=0.01)


def test_a_short_run_hardly_changes_the_forecast_and_another_workload_not_at_all(tmp_path: Path) -> None:
    expected = duration.study_ns(STUDY)
    quick = {run(tmp_path / "quick", "blocks", TRIALS, expected / 4e9): STUDY}
    ahead = remaining({**quick, tmp_path / "new": STUDY})
    assert 0.6 * expected < ahead.left_ns < expected
    others = study("c", workload=chain(requests=10), factors={"path": ["clean"], "protocol": ["HTTP/2", "HTTP/3"]})
    quick |= {run(tmp_path / f"{n}", "blocks", TRIALS, expected / 4e9): STUDY for n in range(40)}
    assert remaining({**quick, tmp_path / "chain": others}).left_ns == pytest.approx(
        duration.study_ns(others), rel=1e-6
    )


def test_nothing_is_left_in_the_end(tmp_path: Path) -> None:
    ahead = remaining({run(tmp_path / "over", "budget", 3, 5): STUDY})
    assert (ahead.runs, ahead.trials, ahead.left_ns) == (0, 0, 0)
