"""Programs with a share of a core: what the kernel is asked for, and what it gives."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from trifecta.design.errors import CannotError
from trifecta.lab import cgroups, cpu_share
from trifecta.lab.cpu_share import CpuShare, parse_throttled_ns, quota_us

BUSY = "import time\nend = time.monotonic() + 0.6\nwhile time.monotonic() < end: pass\nprint(time.process_time())"


@pytest.mark.parametrize(
    ("share", "quota"), [(1.0, (10_000, 10_000)), (0.25, (2_500, 10_000)), (0.02, (1_000, 50_000))]
)
def test_the_quota_makes_the_share_and_is_never_below_the_kernel_s_least(share, quota):
    assert quota_us(share) == quota


def test_the_time_throttled_is_read_of_both_versions():
    assert parse_throttled_ns("nr_periods 7\nnr_throttled 3\nthrottled_time 18068006\n") == 18_068_006
    assert parse_throttled_ns("usage_usec 5\nnr_throttled 3\nthrottled_usec 18068\n") == 18_068_000
    assert parse_throttled_ns("") == 0


@pytest.mark.parametrize("unified", [False, True])
def test_the_group_is_written_as_its_version_wants_it(tmp_path, monkeypatch, unified):
    monkeypatch.setattr(cgroups, "mount_points", lambda: {"" if unified else "cpu": tmp_path})
    group = CpuShare("server", 0.25)
    written = {file.name: file.read_text() for file in group.folder.iterdir()}
    wanted = {"cpu.max": "2500 10000"}
    assert written == (wanted if unified else {"cpu.cfs_period_us": "10000", "cpu.cfs_quota_us": "2500"})
    handed_down = [folder / "cgroup.subtree_control" for folder in (tmp_path, group.folder.parent)]
    assert [file.exists() and file.read_text() == "+cpu" for file in handed_down] == [unified] * 2


def test_a_machine_that_cannot_says_so_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(cgroups, "mount_points", dict)
    with pytest.raises(CannotError, match=r"no control groups .* are mounted; run as root"):
        CpuShare("server", 0.25)
    monkeypatch.setattr(cgroups, "mount_points", lambda: {"cpu": tmp_path / "gone"})
    said = cpu_share.problem()
    assert said is not None
    assert "the kernel does not limit CPU time here" in said
    assert "\n" not in said


@pytest.mark.lab
def test_a_busy_program_gets_its_share_and_the_group_goes():
    if cpu_share.problem() is not None:
        pytest.skip(f"this machine cannot: {cpu_share.problem()}")
    group = CpuShare("test", 0.25)
    try:
        with subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE, text=True) as process:
            group.add(process.pid)
            used, _ = process.communicate(timeout=20)
        assert 0.05 < float(used) < 0.4, "0.6 s at a quarter of a core, and the start before it was limited"
        assert group.throttled_ns() > 100_000_000
        group.add(process.pid)  # one that has ended is no error
    finally:
        group.close()
    deadline = time.monotonic() + 2
    while Path(group.folder).exists() and time.monotonic() < deadline:
        group.close()
    assert not group.folder.exists()
    assert not group.folder.parent.exists()
