"""On a system that is not Linux runs are read, and a command that measures says in a line that it cannot."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.report.synthetic import Shape, write_run

# What Python's library has of Linux alone, and a Mac lacks. `sysconfig` looks for a file of the system's name.
MAC = """
import os, signal, sys, sysconfig
sysconfig.get_config_vars()
for module, names in (
    (os, "sched_getaffinity sched_setaffinity sched_setscheduler sched_param pidfd_open memfd_create eventfd splice "
         "copy_file_range posix_fadvise posix_fallocate fdatasync getxattr setxattr getrandom O_TMPFILE O_PATH"),
    (signal, "pidfd_send_signal sigtimedwait sigwaitinfo"),
):
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
sys.platform = "darwin"
from trifecta.cli import main
main.main()
"""


def called(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", MAC, *words], cwd=folder, capture_output=True, text=True, check=False, timeout=300,
        stdin=subprocess.DEVNULL, env=os.environ | {"COLUMNS": "120"},
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("elsewhere")
    write_run(made / "run", Shape(blocks=4, samples_per_trial=40))
    return made


@pytest.mark.parametrize(
    "words",
    [
        ("report", "run"), ("explain", "run"), ("sql", "run", "SELECT 1"), ("export", "run", "csv"),
        ("export", "run", "--to", "lines"), ("notebook", "run"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_runs_are_read(folder, words):
    done = called(folder, *words)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("race", "--quiet"),
        ("run", "race"),
        ("resume", "run"),
        ("implementations",),
        ("link", "measure", "--rtt", "50 ms"),
    ],
    ids=" ".join,
)
def test_nothing_is_measured_and_a_line_says_so(folder, words):
    there = sorted(folder.iterdir())
    done = called(folder, *words)
    assert done.returncode == 3, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert "not Linux: runs are read here, and measured on Linux" in done.stderr
    assert sorted(folder.iterdir()) == there


def test_doctor_says_so_too(folder):
    done = called(folder, "doctor")
    assert done.returncode == 1, done.stderr
    assert "missing  system" in done.stdout
    assert "extra exports" in done.stdout
