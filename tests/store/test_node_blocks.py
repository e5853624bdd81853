"""A block from a node is in the run as a whole or not at all, wherever the head is killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.analysis.worlds import one_cell_study
from trifecta.design import plan
from trifecta.design.errors import CannotError
from trifecta.design.model import Trial
from trifecta.store import files, manifest, node_blocks, schema
from trifecta.store.run import RunDirectory, TrialFiles
from trifecta.store.views import connect

STUDY = one_cell_study()
(CELL,) = plan.cells(STUDY)


def block(number: int) -> list[Trial]:
    return plan.block_trials(STUDY, CELL, number, 4 * number)


def on_a_node(folder: Path, trials: list[Trial], **changes: Any) -> dict[str, bytes]:
    """What a block leaves in the folder of a node's own run."""
    run = RunDirectory.create(folder, {}, "")
    for trial in trials:
        draft = run.draft("samples", trial.trial, ".parquet")
        pq.write_table(pa.Table.from_pylist([], schema=schema.SAMPLES.arrow()), draft)
        row: Any = dict.fromkeys(schema.TRIALS.names) | {
            "trial": trial.trial,
            "cell": CELL.key,
            "block": trial.block,
            "arm": trial.arm,
            "position": trial.position,
            "seed": trial.seed,
            "node": "n1",
            "valid": True,
        }
        run.commit_trial(row | changes, TrialFiles(samples=draft))
    run.close()
    return {name: path.read_bytes() for name, path in node_blocks.of_trials(folder, [one.trial for one in trials])}


@pytest.fixture
def content(tmp_path: Path) -> dict[str, bytes]:
    return on_a_node(tmp_path / "node", block(0))


@pytest.fixture
def head(tmp_path: Path) -> Path:
    RunDirectory.create(tmp_path / "head", {}, "").close()
    return tmp_path / "head"


def take(head: Path, content: dict[str, bytes], trials: list[Trial]) -> None:
    run = RunDirectory.open(head, write=True)
    try:
        node_blocks.stage(head, trials, content, "n1")
        node_blocks.finish(head, run.is_committed, run.take_trial)
    finally:
        run.close()


def assert_whole(head: Path, many: int = 4) -> None:
    run = RunDirectory.open(head)
    rows = run.rows()  # compares every file with the manifest
    assert [row["trial"] for row in rows] == [f"t{number:05d}" for number in range(many)]
    assert {row["node"] for row in rows} == {"n1"}
    assert {path.name for path in (head / "samples").iterdir()} == {f"t{number:05d}.parquet" for number in range(many)}
    assert not (head / node_blocks.FOLDER).exists()
    assert not list(head.rglob(".tmp-*"))
    assert manifest.Manifest(head).faults() == []
    assert "removed" not in run.facts


def test_a_block_is_kept_with_the_name_of_its_node(head: Path, content: dict[str, bytes], tmp_path: Path) -> None:
    assert set(content) == {f"{table}/t{n:05d}.parquet" for table in ("trials", "samples") for n in range(4)}
    take(head, content, block(0))
    assert_whole(head)
    take(head, on_a_node(tmp_path / "other", block(1)), block(1))
    assert_whole(head, 8)


def test_a_run_on_one_machine_has_no_node(tmp_path: Path) -> None:
    on_a_node(tmp_path / "run", block(0), node=None)
    assert {row["node"] for row in RunDirectory.open(tmp_path / "run").rows()} == {None}


@pytest.mark.parametrize("after", range(4))
def test_a_head_that_is_killed_between_two_trials_goes_on_when_the_run_is_opened(
    head: Path, content: dict[str, bytes], after: int
) -> None:
    class Killed(BaseException):
        pass

    run = RunDirectory.open(head, write=True)
    node_blocks.stage(head, block(0), content, "n1")

    def take_some(trial: str, drafts: Any, _stored: Any) -> None:
        if trial == f"t{after:05d}":
            raise Killed
        run.take_trial(trial, drafts)

    with pytest.raises(Killed):
        node_blocks.finish(head, run.is_committed, take_some)
    assert len(list((head / "trials").glob("t*"))) == after
    run.close()
    assert len(RunDirectory.open(head).rows()) == after, "a reader sees what is committed, and no fault"
    RunDirectory.open(head, write=True).close()
    assert_whole(head)


def test_a_head_that_is_killed_within_a_trial_goes_on(
    head: Path, content: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    run = RunDirectory.open(head, write=True)
    node_blocks.stage(head, block(0), content, "n1")

    def killed(*_: object) -> None:
        raise Killed

    monkeypatch.setattr(files, "replace_synced", killed)  # samples have their name, the row has not
    with pytest.raises(Killed):
        node_blocks.finish(head, run.is_committed, run.take_trial)
    monkeypatch.undo()
    run.close()
    assert RunDirectory.open(head).rows() == []
    RunDirectory.open(head, write=True).close()
    assert_whole(head)


def test_what_was_not_staged_as_a_whole_is_cleared(head: Path, content: dict[str, bytes]) -> None:
    node_blocks.stage(head, block(0), content, "n1")
    staged = head / node_blocks.FOLDER / "t00000"
    staged.rename(files.temporary(staged))
    RunDirectory.open(head, write=True).close()
    assert RunDirectory.open(head).rows() == []
    assert not (head / node_blocks.FOLDER).exists()


@pytest.mark.parametrize("name", ["../t0.parquet", "/etc/t0", "run.json", "pki/t0.pem", "trials/../run.json"])
def test_a_file_that_is_none_of_a_trial_is_refused(head: Path, content: dict[str, bytes], name: str) -> None:
    with pytest.raises(CannotError, match="none of a trial"):
        node_blocks.stage(head, block(0), content | {name: b"x"}, "n1")
    assert not (head / node_blocks.FOLDER / "t00000").exists()


@pytest.mark.parametrize("change", [{"block": 1}, {"cell": "other"}, {"seed": 1}, {"arm": "h9"}, {"node": "n2"}])
def test_trials_that_were_not_asked_for_are_refused(head: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    other = on_a_node(tmp_path / "other", block(0), **change)
    with pytest.raises(CannotError, match="otherwise than it was asked"):
        node_blocks.stage(head, block(0), other, "n1")
    short = on_a_node(tmp_path / "short", block(0)[:3])
    with pytest.raises(CannotError, match="otherwise than it was asked"):
        node_blocks.stage(head, block(0), short, "n1")
    assert not (head / node_blocks.FOLDER / "t00000").exists()


def test_a_run_of_an_earlier_version_has_trials_without_a_node(tmp_path: Path) -> None:
    run = tmp_path / "run"
    on_a_node(run, block(0))
    for path in (run / "trials").iterdir():
        pq.write_table(pq.ParquetFile(path).read().drop_columns(["node"]), path)
    (run / manifest.FILE).unlink()
    facts = (run / "run.json").read_text().replace('"schema": 3', '"schema": 1')
    (run / "run.json").write_text(facts)
    assert {row["node"] for row in RunDirectory.open(run).rows()} == {None}


def test_the_view_has_the_node(head: Path, content: dict[str, bytes]) -> None:
    take(head, content, block(0))
    found = connect(head).execute("SELECT DISTINCT node FROM trials").fetchall()
    assert found == [("n1",)]
