"""A run whose every process is killed at once, at any moment: at most the trial in progress is lost, and it goes on.

TRIFECTA_KILLS says how often (2 without it), TRIFECTA_KILL_SEED which moments. `test_failures.py` kills single
processes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import shutil
import subprocess
import threading
import time
import uuid
from pathlib import Path

import psutil
import pytest

from tests.workloads import drive
from tests.workloads.test_checks_fail import _engine_missing
from tests.workloads.test_failures import MARK, assert_whole, marked, network_namespaces, wait_until
from tests.workloads.test_runner import assert_as_planned
from trifecta.store.run import RunDirectory

pytestmark = [pytest.mark.lab, pytest.mark.skipif(bool(_engine_missing()), reason=_engine_missing() or "built")]
SETTINGS = [
    "path=clean,far", "server=origin", "connection=reused", "blocks.at_least=3", "blocks.at_most=3", "budget=5 min",
    "workload.requests=20", "workload.warmup=2 requests",
]  # fmt: skip
TRIALS = 2 * 4 * 3
_IN_TRIALS = 0.75  # of the kills are timed from the first trial on, the others from the start, which takes seconds
_LONGEST_S = 3.0  # from there to the kill


def kill_all(mark: str) -> set[str]:
    """SIGKILL to every process of the run, without waiting for one to see another die; their network namespaces."""
    tree, namespaces = marked(mark), set()
    for process in tree:
        with contextlib.suppress(OSError):
            namespaces.add(os.readlink(f"/proc/{process.pid}/ns/net"))  # noqa: PTH115
    for process in tree:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    return namespaces - {os.readlink("/proc/self/ns/net")}  # noqa: PTH115


class Victim:
    """One run in one folder that is killed, gone on with, and begun again when it is whole."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.generator = folder, random.Random(seed)
        self.kept: dict[str, str] = {}  # digest of each committed trial
        self.moments = {"before a trial": 0, "in a trial": 0, "between trials": 0, "after the last": 0}
        self.lost = self.whole = 0

    def kill_once(self) -> None:
        """Start or resume it, kill all of it after a random time, and see what is left."""
        resume = (self.folder / "run.json").exists()
        if self.folder.exists() and not resume:
            shutil.rmtree(self.folder)  # killed before there was a run to go on with
        mark = uuid.uuid4().hex
        process = drive.start(self.folder, {MARK: mark}, set=SETTINGS, resume=resume)
        told: list[str] = []
        reader = threading.Thread(target=lambda: told.extend(process.stdout or ()), daemon=True)
        reader.start()
        if self.generator.random() < _IN_TRIALS:
            wait_until(lambda: any("trial_started" in line for line in told) or process.poll() is not None, 60)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(self.generator.uniform(0.0, _LONGEST_S))
        ended = process.poll() is not None
        namespaces = kill_all(mark)
        process.wait(60)
        reader.join(60)
        errors = process.stderr.read() if process.stderr else ""
        assert not ended or process.returncode == 0, errors
        assert wait_until(lambda: not marked(mark)), [left.cmdline() for left in marked(mark)]
        assert wait_until(lambda: not network_namespaces() & namespaces), "a network namespace outlived the run"
        self._look(told)

    def _look(self, told: list[str]) -> None:
        """What was finished is there, as it was, and of what was begun one trial at most is not."""
        events = [json.loads(line) for line in told if line.startswith("[") and line.endswith("]\n")]
        begun = {event[1] for event in events if event[0] == "trial_started"}
        finished = {event[1] for event in events if event[0] == "trial_finished"}
        count = assert_whole(self.folder)
        there = {file.stem: _digest(file) for file in sorted((self.folder / "trials").glob("t*.parquet"))}
        assert count == len(there)
        assert {name: there.get(name) for name in self.kept} == self.kept, "a committed trial changed"
        assert finished <= set(there), "a trial that was told as finished is not there"
        lost = begun - set(there)
        assert len(lost) <= 1, lost
        self.lost += len(lost)
        self.kept = there
        moment = "in a trial" if lost else "between trials" if begun else "before a trial"
        self.moments["after the last" if count == TRIALS else moment] += 1
        if (self.folder / "run.json").exists() and RunDirectory.open(self.folder).facts["state"] != "running":
            self.begin_again()

    def begin_again(self) -> None:
        """The run is whole: look at it once more and begin another."""
        assert_as_planned(self.folder, SETTINGS)
        assert not list(self.folder.rglob(".tmp-*"))
        shutil.rmtree(self.folder)
        self.kept, self.whole = {}, self.whole + 1


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_a_run_killed_whole_at_any_moment_loses_the_trial_in_progress_at_most(tmp_path: Path) -> None:
    kills, seed = int(os.environ.get("TRIFECTA_KILLS", "2")), int(os.environ.get("TRIFECTA_KILL_SEED", "20261124"))
    victim, began = Victim(tmp_path / "run", seed), time.monotonic()
    for _ in range(kills):
        victim.kill_once()
    if victim.folder.exists():
        resume = (victim.folder / "run.json").exists()
        if not resume:
            shutil.rmtree(victim.folder)
        code, _, _, errors = drive.finish(victim.folder, set=SETTINGS, resume=resume)
        assert code == 0, errors
        assert assert_whole(victim.folder) == TRIALS
        victim.begin_again()
    told = ", ".join(f"{number} {moment}" for moment, number in victim.moments.items())
    print(
        f"kills: {kills} in {time.monotonic() - began:.0f} s (seed {seed}): {told}; {victim.lost} trials in progress "
        f"lost, {victim.whole} runs completed"
    )
