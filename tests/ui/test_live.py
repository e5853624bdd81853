"""A run that grows is followed, who writes one is found and asked to stop, and what is started runs as it should."""

from __future__ import annotations

import http.client
import json
import os
import queue
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.ui.serving import Served, serving
from trifecta.conclude import results
from trifecta.design.errors import CannotError, UserError
from trifecta.store import intervals, manifest
from trifecta.store.run import RunDirectory
from trifecta.ui import file_polling, reading, writers
from trifecta.ui.live import Follower

LOCKED = """
import signal, sys, time
from pathlib import Path
from trifecta.store.run import RunDirectory
signal.signal(signal.SIGINT, signal.default_int_handler)  # who starts the tests may ignore it (nohup)
run = RunDirectory(Path(sys.argv[1]))
run._acquire()
try:
    print("locked", flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    print("asked to stop", flush=True)
"""


@contextmanager
def written(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock of a run, as one that measures does."""
    with subprocess.Popen([sys.executable, "-c", LOCKED, str(folder)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "locked\n"
        try:
            yield process
        finally:
            process.kill()


def shortened(folder: Path, trials: int) -> list[Path]:
    """Take all trials but the first out of a run, as if they were still to come; in order those that were taken."""
    away = folder.parent.parent / "away"
    away.mkdir(exist_ok=True)
    later = sorted((folder / "trials").iterdir())[trials:]
    for path in later:
        for table in ("samples", "trials"):
            shutil.move(folder / table / path.name, away / f"{table}-{path.name}")
        shutil.move(folder / "link" / f"{path.stem}.json", away / f"link-{path.stem}.json")
    judge(folder)
    return [away / f"trials-{path.name}" for path in later]


def arrive(folder: Path, rows: list[Path]) -> None:
    for row in rows:
        name = row.name.removeprefix("trials-")
        for table, file in (("link", name.replace("parquet", "json")), ("samples", name), ("trials", name)):
            shutil.move(row.with_name(f"{table}-{file}"), folder / table / file)
    judge(folder)


def judge(folder: Path) -> None:
    """The verdicts of the trials that are there, as the runner leaves them after a block."""
    from trifecta.analysis.verdict import verdicts

    (folder / manifest.FILE).write_text("")
    names = [path.relative_to(folder).as_posix() for table in manifest.TABLES for path in (folder / table).glob("*")]
    made = manifest.Manifest(folder)
    present = [*names, "run.json", "planner.jsonl", *manifest.RESULTS]
    made.add(manifest.digests([(folder / name, name) for name in present if (folder / name).exists()]))
    run = RunDirectory.open(folder)
    study, cells, rows = results.evidence(run)
    judged = verdicts(study, rows, cells)
    then = intervals.Written(resumed=True).fresh(judged)
    run.end_block(judged, {"elapsed_ns": len(rows) * 10**9, "block": 1, "reason": "more", "intervals": then})


class Events:
    """What a page that follows a run is sent."""

    def __init__(self, served: Served, name: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
        headers = {"host": f"127.0.0.1:{served.port}", "cookie": served.cookie}
        self._connection.connect()
        self._socket = self._connection.sock
        self._connection.request("GET", f"/api/live?name={name}", headers=headers)
        self._answer = self._connection.getresponse()
        assert self._answer.headers["content-type"].startswith("text/event-stream")
        self._found: queue.Queue[tuple[str, Any]] = queue.Queue()
        self.past: dict[tuple[str, str, str], list[Any]] = {}  # by comparison, as the page has it by now
        self.news: list[list[Any]] = []
        threading.Thread(target=self._read, daemon=True).start()

    def next(self, within_s: float = 120) -> tuple[str, Any]:
        return self._found.get(timeout=within_s)

    def _read(self) -> None:
        kind = ""
        try:
            for line in self._answer:
                if line.startswith(b"event: "):
                    kind = line[7:].decode().strip()
                elif line.startswith(b"data: ") and kind == "past":
                    self.news.append(json.loads(line[6:]))
                    for one in self.news[-1]:
                        key = one["cell"], one["arm"], one["reference"]
                        self.past[key] = self.past.get(key, [])[: one["keep"]] + one["points"]
                elif line.startswith(b"data: "):
                    self._found.put((kind, json.loads(line[6:])))
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            return

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)  # a close alone would wait for who reads
        self._connection.close()


def test_a_run_that_grows_is_followed_block_by_block(growing: Path, tmp_path: Path, fast: None) -> None:
    later = shortened(growing, 24)
    with serving(growing.parent, tmp_path) as served, written(growing):
        events = Events(served, "growing")
        kind, first = events.next()
        assert kind == "state" and first["written"] and first["trials"] == 24 and first["title"] == "The second"
        assert first["decided"] == "0 of 6 verdicts decided" and first["left"].endswith(" left")
        assert {one["blocks"] for cell in first["cells"] for one in cell["verdicts"]} == {3}
        arrive(growing, later[:8])
        while (state := events.next()[1])["trials"] < 32 or state["blocks"] == first["blocks"]:
            pass
        assert {one["blocks"] for cell in state["cells"] for one in cell["verdicts"]} == {4}
        assert state["reason"] == "more" and state["of"] == "32 trials"
        widths = [[one["ratio"] for cell in made["cells"] for one in cell["verdicts"]] for made in (first, state)]
        assert widths[0] != widths[1]
        events.close()


@pytest.mark.parametrize("own", ["gate", "map"])
def test_what_ends_by_a_question_of_its_own_tells_how_that_stands(own: str, growing: Path) -> None:
    asked = {"gate": {"fail_on": ["slower:3 %"], "summary": None, "junit": None, "references": None, "accept": False},
             "map": {"x": "rtt", "y": "loss"}}  # fmt: skip
    facts = json.loads((growing / "run.json").read_text())
    (growing / "run.json").write_text(json.dumps({**facts, own: asked[own]}))
    shortened(growing, 24)
    assert Follower(growing, "growing").document()["decided"] == "more"
    (growing / "planner.jsonl").write_text("")
    assert Follower(growing, "growing").document()["decided"] == "no block yet"


def test_what_fails_its_check_is_said_with_the_reason(folder: Path) -> None:
    follower = Follower(folder / "first", "first")
    state = follower.document()
    assert follower.document()["failed"] == state["failed"]  # each is said once
    rows = RunDirectory.open(folder / "first").rows()
    failed = [row["trial"] for row in rows if not row["valid"]]
    assert [one["trial"] for one in state["failed"]] == sorted(failed, reverse=True) and failed
    assert state["failed_trials"] == len(failed) and state["failed"][0]["check"] == "path"
    checks = json.loads(next(row["checks_json"] for row in rows if row["trial"] == failed[-1]))
    evidence = next(one["evidence"] for one in checks if one["status"] == "fail")
    assert f"{failed[-1]} does not count: {evidence}" in state["failed"][0]["said"]
    assert not state["written"] and state["left"] == "" and state["ended"]


@pytest.mark.parametrize("cost_s", [0.001, 0.02, 0.3])
def test_looks_use_their_share_of_a_processor_and_what_was_saved_once(cost_s: float) -> None:
    now_s, used_s, looks = 5.0, 0.0, [5.0]
    allowance = file_polling.Allowance(0.0)
    while now_s < 3600:
        used_s += cost_s
        now_s += allowance.spend(cost_s, now_s)
        looks.append(now_s)
    assert used_s <= file_polling.SHARE * now_s + file_polling.SAVED_S + cost_s
    pauses_s = [after - before for before, after in pairwise(looks)]
    assert min(pauses_s) >= file_polling.LOOK_S
    assert pauses_s[-1] == pytest.approx(max(file_polling.LOOK_S, cost_s / file_polling.SHARE))
    assert pauses_s[0] < pauses_s[-1] or cost_s == 0.001


def test_a_first_look_that_costs_much_is_followed_by_another_one_soon_and_a_rest_saves() -> None:
    allowance = file_polling.Allowance(0.0)
    assert [allowance.spend(0.13, 0.0), allowance.spend(0.02, 1.0), allowance.spend(0.02, 2.0)] == [1.0] * 3
    assert [allowance.spend(0.05, 3.0 + number) for number in range(3)][-1] > 10
    assert allowance.spend(0.13, 100.0) == 1.0


def test_nothing_is_read_again_while_nothing_changes(growing: Path) -> None:
    follower = Follower(growing, "growing")
    assert follower.changed()
    follower.document()
    assert not follower.changed()
    os.utime(growing / "planner.jsonl")
    assert follower.changed()


def test_a_damaged_run_is_a_line_on_the_page_and_others_go_on(growing: Path, tmp_path: Path, fast: None) -> None:
    shutil.copytree(growing, growing.with_name("whole"))
    (growing / "verdicts.parquet").write_bytes(b"no")
    with serving(growing.parent, tmp_path) as served:
        broken, whole = Events(served, "growing"), Events(served, "whole")
        kind, told = broken.next()
        assert kind == "problem" and "verdicts.parquet" in told["error"]
        assert whole.next()[0] == "state"
        broken.close()
        whole.close()


def test_who_writes_a_run_is_found_and_stopped_as_by_ctrl_c(growing: Path, tmp_path: Path) -> None:
    other = growing.with_name("other")
    shutil.copytree(growing, other)
    with serving(growing.parent, tmp_path) as served, written(growing) as process:
        assert writers.writers([growing, other]) == {growing: process.pid}
        assert [one["written"] for one in served.get("/api/runs").json["runs"] if one["name"] == "growing"] == [True]
        assert "being measured already" in served.post("/api/resume", {"name": "growing"}).json["error"]
        assert "is not being written" in served.post("/api/stop", {"name": "other"}).json["error"]
        assert served.post("/api/stop", {"name": "growing"}).status == 200
        assert process.stdout is not None and process.stdout.read() == "asked to stop\n"
        assert process.wait() == 0
    assert writers.writers([growing]) == {}
    with pytest.raises(UserError, match="nothing to stop"):
        writers.stop(growing)


def test_a_lock_is_not_taken_to_see_whether_there_is_one(growing: Path) -> None:
    writers.writers([growing])
    RunDirectory.open(growing, write=True).close()


def test_a_run_of_another_user_is_left_alone(growing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with written(growing) as process:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
        with pytest.raises(CannotError, match="another user"):
            writers.stop(growing)
        assert process.poll() is None


def ended(served: Served) -> dict[str, Any]:
    for _ in range(1200):
        [job] = served.get("/api/jobs").json["jobs"]
        if job["code"] is not None:
            return dict(job)
        time.sleep(0.05)
    raise AssertionError("it does not end")


def test_resuming_runs_the_command_and_says_what_it_said(folder: Path, tmp_path: Path) -> None:
    with serving(folder, tmp_path) as served:
        assert served.post("/api/resume", {"name": "first", "blocks": 3, "budget": "5 min"}).json == {"run": "first"}
        job = ended(served)
    told = ["resume", str(folder / "first"), "--blocks", "3", "--budget", "5 min"]
    assert job["code"] == 0 and job["said"] == [str(told)] and job["run"] == "first"


def test_a_bundled_study_is_started_into_the_folder(folder: Path, tmp_path: Path) -> None:
    with serving(folder, tmp_path) as served:
        name = served.post("/api/start", {"study": "race", "set": ["path=clean"]}).json["run"]
        job = ended(served)
    assert name.startswith("race-")
    assert job["said"] == [str(["run", "race", "--set", "path=clean", "--out", str(folder / name)])]


@pytest.mark.parametrize(
    "body",
    [
        {"study": "/etc/passwd"}, {"study": "../x.yaml"}, {"study": "--help"}, {"study": ""}, {}, {"study": ["race"]},
        {"study": "race", "set": ["--yes"]}, {"study": "race", "set": "path=clean"}, {"study": "race", "set": [3]},
        {"study": "race", "budget": "--yes"}, {"study": "race", "blocks": "8"}, {"study": "race", "blocks": 0},
        {"study": "race", "blocks": True}, [], "x", {"study": "race", "set": ["a=" + "x" * 20_000]},
    ],
)  # fmt: skip
def test_nothing_else_is_started(served: Served, body: object) -> None:
    answer = served.post("/api/start", body)
    assert answer.status == 400 and answer.json["error"]
    assert served.get("/api/jobs").json == {"jobs": []}


HELD = "import signal, sys, time, os\ntry:\n"
HELD += "    print(os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), flush=True)\n"
HELD += "    time.sleep(600)\nexcept KeyboardInterrupt:\n    open(sys.argv[-1] + '.ended', 'w').close()\n"


def test_what_is_started_keeps_its_priority_and_ends_with_the_server_as_by_ctrl_c(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    script = (
        "import sys; from pathlib import Path; from trifecta.ui import server, jobs; "
        f"made = jobs.Jobs(Path('.'), [sys.executable, '-c', {HELD!r}]); server.step_back(); "
        "import os; print(os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0)); "
        f"made.start(['x', '{folder}/x'], 'x'); import time\n"
        "while not made.shown()[0]['said']: time.sleep(0.05)\n"
        "print(made.shown()[0]['said'][0]); made.__exit__(); sys.stdout.flush(); os._exit(0)"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=240)
    server, child = told.stdout.splitlines()
    own = os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0)
    assert child == f"{own[0]} {own[1]}"
    assert server == f"19 {os.SCHED_IDLE}"
    assert (folder / "x.ended").exists()


AT_ONCE = "from trifecta.ui import server; server.step_back = lambda: None; from trifecta.cli import main; main.main()"
"""The command at our priority: at its own it may wait for minutes beside other tests."""


def test_ctrl_c_ends_the_command_with_what_it_started(tmp_path: Path, folder: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", AT_ONCE, "ui", str(folder), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - which nohup ignores
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        told = json.loads(process.stdout.readline())
        assert told["address"].startswith("http://127.0.0.1:") and "/?token=" in told["address"]
        assert told["folder"] == str(folder)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=120) == 0
        assert process.stderr.read() == ""


def test_the_end_does_not_wait_for_a_page_that_follows(
    growing: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with serving(growing.parent, tmp_path) as served:
        Events(served, "growing").next()
        began = time.monotonic()
    assert time.monotonic() - began < 20
    assert capfd.readouterr().err == ""  # nothing had to be cancelled


def test_an_answer_that_is_cut_by_the_end_is_no_error(
    growing: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ended = threading.Event(), threading.Event()

    def slow(*_: object) -> dict[str, object]:
        begun.set()
        ended.wait(60)
        return {}

    monkeypatch.setattr(reading, "run", slow)
    with serving(growing.parent, tmp_path) as served:
        asking = threading.Thread(target=_asked, args=(served,))
        asking.start()
        assert begun.wait(60)
        threading.Timer(3, ended.set).start()  # later than the second for which answers are waited for
    asking.join(60)
    assert capfd.readouterr().err == ""


def _asked(served: Served) -> None:
    with suppress(OSError, http.client.HTTPException):  # the server has gone
        served.get("/api/run", {"name": "growing"})


def test_no_folder_is_one_line(tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-m", "trifecta", "ui", str(tmp_path / "none")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert told.returncode == 2 and told.stderr.count("\n") == 1 and "is not a folder" in told.stderr
