"""When things go wrong around a run: kills at random moments, full and read-only disks, taken ports, silent servers."""

from __future__ import annotations

import json
import os
import random
import shutil
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.lab.ended import command, ended
from tests.workloads import drive
from tests.workloads.test_checks_fail import _engine_missing
from tests.workloads.test_runner import assert_as_planned, rows
from trifecta.store.run import RunDirectory
from trifecta.store.views import connect

pytestmark = [pytest.mark.lab, pytest.mark.skipif(bool(_engine_missing()), reason=_engine_missing() or "built")]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")
SETTINGS = [
    "path=clean,far", "server=origin,caddy", "connection=new", "blocks.at_least=2", "blocks.at_most=2", "budget=5 min",
    "workload.requests=60", "workload.warmup=10 requests",
]  # fmt: skip
MARK = "TRIFECTA_TEST_MARK"


def marked(mark: str) -> list[psutil.Process]:
    """Every process that a run started, whatever namespace it lives in."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def network_namespaces() -> set[str]:
    """The network namespaces that any process lives in."""
    found = set()
    for pid in psutil.pids():
        try:
            found.add(os.readlink(f"/proc/{pid}/ns/net"))  # noqa: PTH115
        except OSError:
            continue
    return found


def wait_until(holds: Callable[[], bool], timeout_s: float = 15) -> bool:
    deadline = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def assert_whole(folder: Path) -> int:
    """Finished trials are whole and readable; how many there are."""
    if not (folder / "run.json").exists():
        return 0
    run = RunDirectory.open(folder)
    committed = run.rows()
    assert len({(row["cell"], row["block"], row["arm"]) for row in committed}) == len(committed)
    views = connect(folder)
    counted = dict(views.execute("SELECT trial, count(*) FROM samples GROUP BY trial").fetchall())
    for row in committed:
        if row["load_json"] is not None:
            assert counted[row["trial"]] == json.loads(row["load_json"])["samples"]
    return len(committed)


class _Killer:
    """Kills random processes of runs in one folder until it has killed enough."""

    def __init__(self, folder: Path, settings: list[str], seed: int, kills: int) -> None:
        self.folder, self.settings, self.left = folder, settings, kills
        self.generator = random.Random(seed)
        self.victims: list[str] = []
        self.namespaces: dict[str, int] = {}

    def run_once(self) -> None:
        """Start or resume the run, kill until a kill ends it, and check that nothing is left of it."""
        resume = (self.folder / "run.json").exists()
        if self.folder.exists() and not resume:
            shutil.rmtree(self.folder)  # killed before there was a run to go on with
        mark = uuid.uuid4().hex
        process = drive.start(self.folder, {MARK: mark}, set=self.settings, resume=resume)
        if self.generator.random() < 0.5:  # else most kills come before there is anything to go on with
            before = self._committed()
            wait_until(lambda: self._committed() > before or process.poll() is not None)
        while process.poll() is None and self.left > 0:
            time.sleep(self.generator.uniform(0.02, 1.0))
            essential = self._kill_one(mark)
            if essential:
                assert wait_until(lambda: process.poll() is not None), (
                    "the run outlived a process it cannot live without"
                )
        process.communicate(timeout=120)
        assert wait_until(lambda: not marked(mark)), [left.cmdline() for left in marked(mark)]
        assert_whole(self.folder)

    def _hold_namespace(self, pid: int) -> None:
        """Remember where a process lives; held open, since the number of one that ended is given to the next."""
        try:
            held = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
        except (FileNotFoundError, ProcessLookupError):
            return  # it has ended
        name = os.readlink(f"/proc/self/fd/{held}")  # noqa: PTH115
        if name in self.namespaces:
            os.close(held)
        else:
            self.namespaces[name] = held

    def _committed(self) -> int:
        return len(list((self.folder / "trials").glob("t*.parquet")))

    def _kill_one(self, mark: str) -> bool:
        """Kill any process of the run; whether it was one of the command's own three."""
        tree = marked(mark)
        if not tree:
            return False
        victim = self.generator.choice(tree)
        try:
            name = " ".join(victim.cmdline()[:2]).rsplit("/", 1)[-1]
            for process in tree:
                self._hold_namespace(process.pid)
            victim.kill()
        except psutil.NoSuchProcess:
            return False
        self.left -= 1
        self.victims.append(name)
        wait_until(lambda: ended(victim), 5)
        return name.endswith("-m")


@pytest.mark.parametrize("kills", [4, pytest.param(20, marks=pytest.mark.long)])
def test_kills_at_random_moments_leave_nothing_and_resume_completes(tmp_path: Path, kills: int) -> None:
    folder = tmp_path / "run"
    devices = set(os.listdir("/sys/class/net"))  # noqa: PTH208
    own = os.readlink("/proc/self/ns/net")  # noqa: PTH115
    blocks = 2 if kills < 10 else 3
    settings = [*SETTINGS, f"blocks.at_least={blocks}", f"blocks.at_most={blocks}"]
    killer = _Killer(folder, settings, seed=int(os.environ.get("TRIFECTA_KILL_SEED", "20261121")), kills=kills)
    while killer.left > 0:
        killer.run_once()
        if killer.left > 0 and (folder / "run.json").exists():
            state = RunDirectory.open(folder).facts["state"]
            if state != "running":  # it completed under fire: begin another one
                shutil.rmtree(folder)
    code, _, _, errors = drive.finish(folder, set=settings, resume=(folder / "run.json").exists())
    assert code == 0, errors
    assert len(killer.victims) == kills
    assert assert_whole(folder) == 16 * blocks
    assert_as_planned(folder, settings)
    assert not list(folder.rglob(".tmp-*"))
    assert set(os.listdir("/sys/class/net")) == devices  # noqa: PTH208
    theirs = killer.namespaces.keys() - {own}
    assert theirs
    assert wait_until(lambda: not network_namespaces() & theirs)
    for held in killer.namespaces.values():
        os.close(held)


def _mounted(folder: Path, options: str) -> tuple[str, ...]:
    """A wrapper that runs a command with a small file system of its own at ``folder``."""
    folder.mkdir()
    script = f'mount -t tmpfs -o {options} tmpfs "{folder}" && exec "$@"'
    return ("unshare", "--mount", "sh", "-c", script, "sh")


@needs_root
def test_a_full_disk_is_one_line_and_keeps_finished_trials(tmp_path: Path) -> None:
    small = tmp_path / "small"
    # the trials are looked at from inside the mount namespace, by a shell that stays in it
    wrapper = _mounted(small, "size=300k")
    count = f'"$@"; code=$?; ls "{small}/run/trials" | grep -vc tmp >&2; exit $code'
    code, _, _, errors = drive.finish(
        small / "run", set=[*SETTINGS, "connection=new", "server=origin"], wrapper=(*wrapper, "sh", "-c", count, "sh")
    )
    assert code == 3, errors
    line, kept = errors.strip().splitlines()
    assert line.startswith("trifecta: ")
    assert "full" in line or "No space left" in line
    assert int(kept) >= 1


@needs_root
@pytest.mark.parametrize("size", ["16k", "64k", "128k"])
def test_a_disk_that_is_full_before_the_start_is_named_with_its_folder(tmp_path: Path, size: str) -> None:
    small = tmp_path / "small"
    wrapper = _mounted(small, f"size={size}")
    code, _, _, errors = drive.finish(small / "run", set=["path=clean", "connection=reused"], wrapper=wrapper)
    assert code == 3, errors
    assert errors.startswith(f"trifecta: cannot write {small / 'run'}")
    assert "the disk is full" in errors
    assert "free some space, or choose another folder with --out" in errors
    assert "adapter" not in errors
    assert errors.count("\n") == 1


@needs_root
def test_a_read_only_folder_is_one_line(tmp_path: Path) -> None:
    code, _, _, errors = drive.finish(tmp_path / "ro" / "run", set=SETTINGS, wrapper=_mounted(tmp_path / "ro", "ro"))
    assert code == 3
    assert errors.count("\n") == 1
    assert "read-only" in errors


@needs_root
def test_without_privileges_the_lab_is_raised_in_a_user_namespace(tmp_path: Path) -> None:
    # CAP_SETFCAP is what user_namespaces(7) asks of uid 0 to map itself; an ordinary user needs nothing.
    wrapper = ("setpriv", "--bounding-set=-all,+setfcap", "--inh-caps=-all")
    code, _, outcome, errors = drive.finish(
        tmp_path / "run", set=[*SETTINGS, "path=clean", "server=origin", "blocks.at_least=1"], wrapper=wrapper
    )
    assert code == 0, errors
    assert outcome["trials"] >= 4


def test_a_taken_port_is_one_line(tmp_path: Path) -> None:
    # the only server of the study is told to take an address that is not there
    settings = [*SETTINGS, "server=origin"]
    code, _, _, errors = drive.finish(
        tmp_path / "run", set=settings, origin={"address": "10.99.0.1"}, ready_timeout_s=10
    )
    assert code == 3
    assert errors.count("\n") == 1
    assert "10.99.0.1" in errors
    assert "ended before it was ready" in errors


def test_a_taken_port_leaves_out_only_the_server_that_cannot_have_it(tmp_path: Path) -> None:
    # Caddy has the first port; the origin is told to take it too.
    settings = [*SETTINGS, "path=clean", "server=caddy,origin", "blocks.at_least=1", "blocks.at_most=1"]
    code, events, _, errors = drive.finish(tmp_path / "run", set=settings, origin={"port": 8443}, ready_timeout_s=10)
    assert code == 0, errors
    (left_out,) = [event for event in events if event[0] == "level_unsupported"]
    assert left_out[1:3] == ["server", "origin"]
    assert "8443" in left_out[3]
    assert "ended before it was ready" in left_out[3]
    assert {row["server"] for row in rows(tmp_path / "run")} == {"caddy"}
    assert RunDirectory.open(tmp_path / "run").facts["failed"][0]["level"] == "origin"


def test_a_server_that_never_answers_is_one_line_and_ends_in_time(tmp_path: Path) -> None:
    began = time.monotonic()
    code, _, _, errors = drive.finish(
        tmp_path / "run", set=[*SETTINGS, "server=origin"], origin={"faults": {"stall": True}}, ready_timeout_s=3
    )
    assert code == 3
    assert errors.count("\n") == 1
    assert "does not answer within 3 s" in errors
    assert "timeout" in errors
    assert time.monotonic() - began < 40


def _kill_server(folder: Path, mark: str) -> None:
    for process in marked(mark):
        words = command(process)
        if "origin" in words and words[-1].startswith(str(folder)):
            process.kill()
            return
    raise AssertionError("the server does not run")


def test_a_server_that_dies_mid_trial_gives_its_samples_error_classes(tmp_path: Path) -> None:
    folder, mark = tmp_path / "run", uuid.uuid4().hex
    settings = [
        "path=far", "server=origin", "connection=new", "blocks.at_least=1", "blocks.at_most=1", "budget=5 min",
        "paths.far.trial.new.requests=40", "workload.request_timeout=1 s", "workload.connect_timeout=1 s",
    ]  # fmt: skip
    process = drive.start(folder, {MARK: mark}, set=settings)
    assert process.stdout is not None
    started = 0
    for line in process.stdout:
        started += json.loads(line)[0] == "trial_started"
        if started == 2:
            break
    time.sleep(0.3)
    _kill_server(folder, mark)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    hit = rows(folder)[1]
    assert hit["error"] == "server origin was killed by signal 9"
    assert hit["valid"] is False
    classes: dict[str, Any] = json.loads(hit["error_classes_json"])
    known = {
        "connect_refused",
        "connect_timeout",
        "connect_reset",
        "reset",
        "closed",
        "timeout",
        "quic:timeout",
        "goaway",
    }
    assert classes
    assert set(classes) <= known, classes
    assert [row["error"] for row in rows(folder)[2:]] == [None, None]
    assert_as_planned(folder, settings)
