"""The run directory: whole trials or none, one writer, clear words when the disk refuses."""

from __future__ import annotations

import errno
import multiprocessing
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trifecta.design.errors import CannotError, UserError
from trifecta.design.model import CheckResult, Verdict
from trifecta.store import files, manifest, schema
from trifecta.store.run import RunDirectory, TrialFiles


def sample(trial: str, request: int, *, error: str | None = None, **changes: object) -> dict[str, object]:
    row: dict[str, object] = dict.fromkeys(schema.SAMPLES.names)
    row |= {
        "trial": trial, "worker": 0, "connection": 0, "request": request, "warmup": False, "started_ns": 1000,
        "connect_start_ns": 1000, "tcp_connected_ns": 1300, "secured_ns": 1900, "request_sent_ns": 2000,
        "first_byte_ns": 2500, "done_ns": 3000 + request, "protocol": "h2", "resumed": False, "zero_rtt": False,
        "bytes_out": 0, "bytes_in": 10, "header_bytes_in": 50, "error": error,
    }  # fmt: skip
    return row | changes


def commit(run: RunDirectory, trial: str, samples: list[dict[str, object]], **columns: object) -> None:
    draft = run.draft("samples", trial, ".parquet")
    pq.write_table(pa.Table.from_pylist(samples, schema=schema.SAMPLES.arrow()), draft)
    row = dict.fromkeys(schema.TRIALS.names) | {"trial": trial, "arm": "h2", "block": 0, "valid": True} | columns
    run.commit_trial(row, TrialFiles(samples=draft, link_summary={"realtime": True}))


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory.create(tmp_path / "a run [1]*'", {"seed": 1}, "name: x\n")


def test_create_refuses_a_folder_that_holds_something(tmp_path: Path) -> None:
    (tmp_path / "note").write_text("mine")
    with pytest.raises(UserError, match="not empty"):
        RunDirectory.create(tmp_path, {}, "")
    assert (tmp_path / "note").read_text() == "mine"


def test_create_refuses_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="not a folder"):
        RunDirectory.create(tmp_path / "file", {}, "")


def test_create_where_nothing_can_be_made_is_one_line() -> None:
    with pytest.raises(CannotError, match=r"/proc/x cannot be made .*choose another with --out"):
        RunDirectory.create(Path("/proc/x"), {}, "")


def test_open_refuses_what_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no run"):
        RunDirectory.open(tmp_path)


def test_a_folder_of_several_runs_says_where_they_are(tmp_path: Path) -> None:
    for name in ("bourbon2020/single-A", "threats/conntrack"):
        RunDirectory.create(tmp_path / name, {}, "").close()
    with pytest.raises(UserError, match=f"give one of the 2 below it, such as {tmp_path}/bourbon2020/single-A$"):
        RunDirectory.open(tmp_path)
    with pytest.raises(UserError, match=f"give one of the 1 below it, such as {tmp_path}/threats/conntrack$"):
        RunDirectory.open(tmp_path / "threats")


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("campaign.json", "it is a campaign: give one of the 1 below it, such as"),
        ("reproduce.json", "it is a reproduction: "),
        ("ladders.json", "it is a folder of ladders: "),
        ("ladder.json", "it is a ladder: "),
        ("why-asked.json", "it is a search for causes: "),
        ("threats.json", "it is a measurement of threats: "),
        ("map.json", "it is a map that was kept without its run: "),
    ],
)
def test_a_folder_that_is_no_run_says_what_it_is(tmp_path: Path, file: str, said: str) -> None:
    RunDirectory.create(tmp_path / "single-A", {}, "").close()
    (tmp_path / file).write_text("{}")
    with pytest.raises(UserError, match=f"holds no run .no run.json.; {said}") as raised:
        RunDirectory.open(tmp_path)
    assert "\n" not in str(raised.value)
    assert str(tmp_path / "single-A") in str(raised.value)


@pytest.mark.parametrize(
    ("damage", "read", "said"),
    [
        (lambda run: (run / "run.json").write_text("[]"), lambda run: run.facts, "run.json: is not a JSON object"),
        (lambda run: (run / "run.json").write_text("{"), lambda run: run.facts, "run.json: is not valid JSON"),
        (lambda run: (run / "study.yaml").unlink(), lambda run: run.study_text, "study.yaml is missing"),
        (lambda run: (run / "trials").rmdir(), lambda run: run.rows(), "trials is missing"),
    ],
)
def test_what_a_damaged_folder_lacks_is_named(run: RunDirectory, damage: Any, read: Any, said: str) -> None:
    damage(run.path)
    with pytest.raises(UserError, match=said):
        read(RunDirectory.open(run.path))


def test_a_file_that_could_not_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "report.html"
    files.write_text(kept, "before")

    def refuse(_: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "sync", refuse)
    with pytest.raises(CannotError, match=r"cannot write .*report\.html: the disk is full"):
        files.write_text(kept, "after")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert kept.read_text() == "before"


def test_a_run_that_could_not_be_begun_leaves_its_folder_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = files.sync

    def refuse(path: Path) -> None:
        if path.name.endswith("run.json"):
            raise OSError(errno.ENOSPC, "No space left on device")
        real(path)

    monkeypatch.setattr(files, "sync", refuse)
    with pytest.raises(CannotError, match="the disk is full"):
        RunDirectory.create(tmp_path / "new", {}, "")
    assert list((tmp_path / "new").iterdir()) == []
    monkeypatch.undo()
    RunDirectory.create(tmp_path / "new", {}, "").close()


def test_committed_trials_come_back_in_order(run: RunDirectory) -> None:
    for trial in ("t00010", "t00002", "t100000"):
        commit(run, trial, [sample(trial, 0)])
    assert [row["trial"] for row in run.rows()] == ["t00002", "t00010", "t100000"]
    assert not list(run.path.rglob(".tmp-*"))


def test_a_trial_is_never_committed_twice(run: RunDirectory) -> None:
    commit(run, "t00000", [sample("t00000", 0)])
    with pytest.raises(RuntimeError, match="already"):
        commit(run, "t00000", [sample("t00000", 0)])
    with pytest.raises(RuntimeError, match="cannot be discarded"):
        run.discard_trial("t00000")


def test_leftovers_are_removed_when_a_run_is_taken_up_again(run: RunDirectory) -> None:
    commit(run, "t00000", [sample("t00000", 0)])
    run.draft("samples", "t00001", ".parquet").write_text("half")
    (run.path / "samples" / "t00001.parquet").write_text("renamed, but its row was not")
    (run.path / "link" / "t00001.json").write_text("{}")
    (run.path / ".tmp-run.json").write_text("half")
    (run.path / ".tmp-conformance-x").mkdir()
    (run.path / ".tmp-conformance-x" / "half.parquet").write_text("half")
    (run.path / "logs" / "origin.log").write_text("kept")
    run.close()
    again = RunDirectory.open(run.path, write=True)
    left = sorted(str(path.relative_to(run.path)) for path in run.path.rglob("*") if path.is_file())
    assert left == [
        ".lock", "link/t00000.json", "logs/origin.log", "manifest.sha256", "run.json", "samples/t00000.parquet",
        "study.yaml", "trials/t00000.parquet",
    ]  # fmt: skip
    assert not list(run.path.glob(".tmp-*"))
    assert again.trial_names() == ["t00000"]


def test_captures_come_and_go_with_their_trial(run: RunDirectory) -> None:
    def draft(trial: str) -> TrialFiles:
        files = TrialFiles()
        files.captures = {wire: run.draft("captures", trial, f"-{wire}.pcapng") for wire in ("a-b", "b-c")}
        files.link_logs = {"": run.draft("link", trial, ".parquet")}
        for path in (*files.captures.values(), *files.link_logs.values()):
            path.write_bytes(b"packets")
        run.draft("captures", trial, "-client.keys").write_text("secret")
        (run.path / "qlog" / trial).mkdir(parents=True)
        return files

    kept = draft("t00000")
    run.draft("captures", "t00000", "-client.keys").unlink()
    row = dict.fromkeys(schema.TRIALS.names) | {"trial": "t00000", "arm": "h2", "block": 0, "valid": True}
    run.commit_trial(row, kept)
    draft("t00001")
    run.discard_trial("t00001")  # the user stopped it
    draft("t00002")  # it was cut off
    run.close()
    RunDirectory.open(run.path, write=True)
    assert sorted(entry.name for entry in (run.path / "captures").iterdir()) == [
        "t00000-a-b.pcapng", "t00000-b-c.pcapng",
    ]  # fmt: skip
    assert [entry.name for entry in (run.path / "qlog").iterdir()] == ["t00000"]
    assert [entry.name for entry in (run.path / "link").iterdir()] == ["t00000.parquet"]
    assert (run.path / "captures").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("name", ["../t00000", "t1", "t00000/../../x", ""])
def test_a_trial_name_never_leaves_the_folder(run: RunDirectory, name: str) -> None:
    with pytest.raises(ValueError, match="not a trial name"):
        run.draft("samples", name, ".parquet")


def _try_to_write(path: Path, answers: multiprocessing.Queue[str]) -> None:
    try:
        RunDirectory.open(path, write=True)
    except CannotError as error:
        answers.put(str(error))
    else:
        answers.put("locked twice")


def test_one_writer_at_a_time(run: RunDirectory) -> None:
    context = multiprocessing.get_context("fork")
    answers: multiprocessing.Queue[str] = context.Queue()
    process = context.Process(target=_try_to_write, args=(run.path, answers))
    process.start()
    assert "being written by another run" in answers.get(timeout=20)
    process.join()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_clear_line(tmp_path: Path) -> None:
    with (
        pytest.raises(CannotError, match="the disk is full"),
        files.disk_errors(tmp_path),
        Path("/dev/full").open("w") as full,
    ):
        full.write("x")
        full.flush()


def test_other_errors_are_not_swallowed(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), files.disk_errors(tmp_path):
        (tmp_path / "missing").read_text()


def test_checks_and_verdicts_come_back(run: RunDirectory) -> None:
    check = CheckResult("path", "t00000", "fail", "asked 50 ms, got 56 ms", 0.12, 0.02, "give the link a core")
    verdict = Verdict("c", "latency_p50_ns", "h3", "h2", "faster", 0.5, 0.4, 0.6, 6, 0.05, 0.02, 33.0)
    run.write_checks([check])
    run.write_verdicts([verdict])
    assert run.checks() == [check]
    assert run.verdicts() == [verdict]
    run.write_verdicts([])
    assert run.verdicts() == []


def test_a_cut_off_decision_is_left_out(run: RunDirectory) -> None:
    run.log_decision({"block": 0, "elapsed_ns": 1})
    with (run.path / "planner.jsonl").open("a") as file:
        file.write('{"block": 1, "rea')
    assert run.decisions() == [{"block": 0, "elapsed_ns": 1}]
    run.log_decision({"block": 1, "elapsed_ns": 2})
    assert [made["block"] for made in run.decisions()] == [0, 1]


def test_a_block_ends_with_its_verdicts_and_why_it_was_made(run: RunDirectory) -> None:
    verdict = Verdict("c", "latency_p50_ns", "h3", "h2", "faster", 0.5, 0.4, 0.6, 6, 0.05, 0.02, 33.0)
    run.end_block([], {"block": 0, "elapsed_ns": 1})
    run.end_block([verdict], {"block": 1, "elapsed_ns": 2})
    assert run.verdicts() == [verdict]
    assert run.decisions() == [{"block": 0, "elapsed_ns": 1}, {"block": 1, "elapsed_ns": 2}]
    manifest.check(run.path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_forbidden_folder_is_one_clear_line(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(CannotError, match="permission denied"):
        RunDirectory.create(tmp_path / "run", {}, "")


@pytest.mark.parametrize("survives", range(4))
def test_the_row_is_the_last_to_get_its_name(run: RunDirectory, monkeypatch: pytest.MonkeyPatch, survives: int) -> None:
    """A crash after any number of renames leaves no trial, or a whole one."""
    real, done = Path.replace, 0

    def crash_later(self: Path, target: Path) -> Path:
        nonlocal done
        if done == survives:
            raise KeyboardInterrupt
        done += 1
        return real(self, target)

    monkeypatch.setattr(Path, "replace", crash_later)
    try:
        commit(run, "t00000", [sample("t00000", 0)])
    except KeyboardInterrupt:
        assert run.trial_names() == []
    else:
        assert (run.path / "samples" / "t00000.parquet").exists()
        assert (run.path / "link" / "t00000.json").exists()
    monkeypatch.undo()
    run.close()
    again = RunDirectory.open(run.path, write=True)
    left = [path for folder in ("trials", "samples", "link") for path in (run.path / folder).iterdir()]
    assert len(left) == (3 if again.trial_names() else 0)


def test_everything_is_on_the_disk_before_the_row_has_its_name(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[tuple[str, str]] = []
    real_replace = Path.replace
    monkeypatch.setattr(files, "sync", lambda path: events.append(("sync", path.name)))
    monkeypatch.setattr(
        Path, "replace", lambda self, target: (events.append(("name", target.name)), real_replace(self, target))[1]
    )
    commit(run, "t00000", [sample("t00000", 0)])
    row = max(i for i, event in enumerate(events) if event == ("name", "t00000.parquet"))
    before = events[:row]
    for needed in (".tmp-t00000.parquet", ".tmp-t00000.json", "samples", "link"):
        assert ("sync", needed) in before
    assert events[row + 1] == ("sync", "trials")


def test_what_a_killed_create_left_is_cleared_and_nothing_else(tmp_path):
    from trifecta.store.run import clear_unmade

    left = tmp_path / "left"
    made = RunDirectory.create(left, {}, "study: s\n")
    made.close()
    (left / "run.json").unlink()  # as if it was killed just before
    (left / ".tmp-run.json").touch()
    clear_unmade(left)
    assert not list(left.iterdir())
    RunDirectory.create(left, {}, "study: s\n").close()
    clear_unmade(left)
    assert (left / "run.json").exists()  # a run is never touched
    mine = tmp_path / "mine"
    (mine / "trials").mkdir(parents=True)
    (mine / "trials" / "t00000.parquet").touch()
    clear_unmade(mine)
    (mine / "trials" / "t00000.parquet").unlink()
    (mine / "notes.txt").touch()
    clear_unmade(mine)
    assert (mine / "notes.txt").exists()
    clear_unmade(tmp_path / "nowhere")


def test_a_file_whose_pages_are_damaged_is_named_though_its_end_is_whole(run: RunDirectory) -> None:
    """Found by fuzzing run folders: only the end of each file was looked at, and the error stayed an internal one."""
    commit(run, "t00000", [sample("t00000", 0)], link_json=None)
    file = run.path / "trials" / "t00000.parquet"
    data = bytearray(file.read_bytes())
    data[4:60] = b"\xff" * 56
    file.write_bytes(bytes(data))
    with pytest.raises(UserError, match=r"t00000\.parquet: is damaged"):
        RunDirectory.open(run.path).rows()
