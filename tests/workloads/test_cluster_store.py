"""Nodes that put what trials leave into an object store: the head gets rows at first, and all of it in the end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from tests.store import servers
from tests.workloads import drive
from tests.workloads.local_launcher import LocalLauncher
from tests.workloads.test_cluster_lab import (
    SETTINGS,
    TRIALS,
    assert_whole,
    engine,
    head,
    nodes_of,
    rows,
    wait_for,
)
from trifecta.design import extras
from trifecta.design.errors import CannotError, UserError
from trifecta.store import manifest, remote_files, views
from trifecta.store.exports import object_store
from trifecta.store.run import RunDirectory
from trifecta.studies import known_servers, load
from trifecta.workloads.cluster import loop
from trifecta.workloads.cluster.head import run_on_cluster
from trifecta.workloads.cluster.uploader import Uploader
from trifecta.workloads.extending import RunExtension
from trifecta.workloads.progress import NoProgress

__all__ = ["engine"]  # a fixture of each test here, too
pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(bool(extras.missing("exports")), reason="the extra exports is not installed"),
]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A folder that all machines have."""
    return tmp_path / "lake"


def objects(store: Path) -> set[str]:
    """What lies in the store, but for temporary files of the library's."""
    return {path.relative_to(store).as_posix() for path in store.rglob("*") if path.is_file() and "#" not in path.name}


def assert_stored(folder: Path, place: Path) -> None:
    """The store has the whole run, and nothing else."""
    entries = manifest.Manifest(folder).entries()
    named = {remote_files.object_name(name, known[-1]) if manifest.belongs(name) else name: name
             for name, known in entries.items()}  # fmt: skip
    assert objects(place) == {*named, "run.json", "study.yaml", "manifest.sha256"}
    for stored, name in named.items():
        assert (place / stored).read_bytes() == (folder / name).read_bytes()
    assert (place / "run.json").read_bytes() == (folder / "run.json").read_bytes()


def of_run(store: Path) -> Path:
    (place,) = store.iterdir()
    return place


def kill_after_two_blocks(folder: Path, store: Path) -> None:
    process = head(folder, nodes=2, store=f"file://{store}")
    wait_for(process, "block_finished", 2)
    process.kill()
    process.communicate()


def test_only_rows_come_to_the_head_before_the_end(tmp_path: Path, store: Path) -> None:
    folder = tmp_path / "run"
    process = head(folder, nodes=2, store=f"file://{store}")
    wait_for(process, "block_finished", 2)
    assert len(list((folder / "trials").glob("t*.parquet"))) >= 6
    assert not list((folder / "samples").iterdir()), "samples are in the store"
    assert len(list(of_run(store).glob("samples/*.parquet"))) >= 6
    assert len(rows(folder)) >= 6
    with pytest.raises(
        UserError, match=r"files are still in file://.*; `trifecta resume .*run` brings what is missing"
    ):
        views.connect(folder)
    _, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors
    assert_whole(folder)
    assert RunDirectory.open(folder).facts["stored"] == f"file://{of_run(store)}"
    assert_stored(folder, of_run(store))
    with views.connect(folder) as opened:
        expected = opened.execute("SELECT count(*), sum(started_ns) FROM samples").fetchone()
    asked = f"SELECT count(*), sum(started_ns) FROM '{of_run(store)}/samples/*.parquet'"
    assert duckdb.execute(asked).fetchone() == expected


@pytest.mark.long
def test_what_a_lost_node_put_there_is_removed_in_the_end(tmp_path: Path, store: Path) -> None:
    folder = tmp_path / "run"
    process = head(folder, nodes=2, store=f"file://{store}")
    wait_for(process, "trial_finished", 9)
    nodes_of(process.pid)[0].kill()
    late = of_run(store) / remote_files.object_name("samples/t00001.parquet", "0" * 64)
    late.write_bytes(b"put by a node that was given up for lost")
    theirs = of_run(store) / "samples" / "notes.txt"
    theirs.write_text("not ours")
    out, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors
    assert any("is lost: it was killed by signal 9" in line for line in out.splitlines())
    assert_whole(folder)
    assert theirs.exists()
    theirs.unlink()
    assert_stored(folder, of_run(store))


def test_a_head_that_is_killed_gets_the_files_when_it_is_resumed(tmp_path: Path, store: Path) -> None:
    folder = tmp_path / "run"
    kill_after_two_blocks(folder, store)
    before = rows(folder)
    assert not list((folder / "samples").iterdir())
    asked = [sys.executable, "-m", "trifecta", "resume", str(folder), "--blocks", "1", "--quiet", "--json"]
    ended = subprocess.run(asked, capture_output=True, text=True, timeout=240, check=False, cwd=drive.REPOSITORY)
    assert ended.returncode in (0, 1), ended.stderr  # on a busy machine few trials count
    known = {row["trial"]: row for row in rows(folder)}
    assert all(known[row["trial"]]["started_ns"] == row["started_ns"] for row in before)
    assert {f"{name}.parquet" for name in known} == {path.name for path in (folder / "samples").iterdir()}
    assert manifest.Manifest(folder).faults() == []


def test_nodes_that_cannot_put_it_there_are_left_out_with_the_reason(
    tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Breaking(NoProgress):
        def block_finished(self, *_: object) -> None:
            if not store.is_file():
                of_run(store).rename(tmp_path / "elsewhere")
                store.rmdir()
                store.write_text("no folder any more")

    monkeypatch.setattr(loop, "ALONE_S", 3.0)
    study = load("race", SETTINGS, known_servers())
    said = r"no node of the cluster can run a block \(n1: file:///.*: there is no folder"
    with pytest.raises(CannotError, match=said):
        run_on_cluster(study, tmp_path / "run", Breaking(), launch=lambda: LocalLauncher(1), store=f"file://{store}")
    assert len(rows(tmp_path / "run")) % 3 == 0


def test_a_store_that_holds_something_else_is_not_believed(tmp_path: Path, store: Path) -> None:
    folder = tmp_path / "run"
    kill_after_two_blocks(folder, store)
    first = sorted(of_run(store).glob("samples/t00000-*.parquet"))[0]
    whole = first.read_bytes()
    first.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    run = RunDirectory.open(folder, write=True)
    with pytest.raises(
        CannotError, match=r"samples/t00000-\w+\.parquet: is not what the node measured; remove .*t00000"
    ):
        remote_files.bring(folder)
    assert not (folder / "samples" / "t00000.parquet").exists()
    first.unlink()
    with pytest.raises(CannotError, match=r"samples/t00000-\w+\.parquet: is gone; remove .*t00000"):
        remote_files.bring(folder)
    first.write_bytes(whole)
    assert remote_files.bring(folder) > 0
    assert manifest.absent(folder) == {}
    run.close()


@pytest.mark.long
def test_a_run_that_is_given_more_blocks_puts_them_beside_the_others(tmp_path: Path, store: Path) -> None:
    folder, study = tmp_path / "run", load("race", SETTINGS, known_servers())
    run_on_cluster(study, folder, launch=lambda: LocalLauncher(2), store=f"file://{store}")
    before = objects(of_run(store))
    run_on_cluster(study, folder, launch=lambda: LocalLauncher(2), resume=True, more=RunExtension(blocks=1))
    assert len(rows(folder)) > TRIALS
    assert_stored(folder, of_run(store))
    assert before <= objects(of_run(store))
    with pytest.raises(UserError, match="has begun to put its files into file://"):
        run_on_cluster(study, folder, launch=lambda: LocalLauncher(1), store=f"file://{tmp_path}/other", resume=True)


def test_a_node_that_sees_another_store_says_so(tmp_path: Path, store: Path) -> None:
    store.mkdir()
    (store / "study.yaml").write_text("name: other\n")
    putter = Uploader(f"file://{store}")
    try:
        with pytest.raises(CannotError, match="what the head has put there is not found from here"):
            putter.expect("name: race\n")
        (store / "study.yaml").unlink()
        with pytest.raises(CannotError, match="what the head has put there is not found from here"):
            putter.expect("name: race\n")
        (store / "study.yaml").write_text("name: race\n")
        putter.expect("name: race\n")
        (tmp_path / "one").write_bytes(b"1")
        putter.put({"samples/one.parquet": tmp_path / "one"})
        assert (store / "samples" / "one.parquet").read_bytes() == b"1"
    finally:
        putter.close()


def test_where_nothing_can_be_put_it_is_said_before_anything_begins(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotError, match=r"file:///.*/file/lake: there can be no folder"):
        object_store.reach(f"file://{tmp_path}/file/lake")
    object_store.reach(f"file://{tmp_path}/lake")
    assert list((tmp_path / "lake").iterdir()) == []


@pytest.mark.long  # for the server, which takes minutes to build
def test_a_real_server_of_s3_gets_the_files_of_two_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with servers.versitygw(tmp_path) as port:
        for name, value in servers.s3_environment(port).items():
            monkeypatch.setenv(name, value)
        folder = tmp_path / "run"
        process = head(folder, nodes=2, store="s3://measured/by/nodes")
        out, errors = process.communicate(timeout=240)
        assert process.returncode == 0, errors
        assert json.loads(out.splitlines()[-1])["trials"] == TRIALS
        assert_whole(folder)
        assert_stored(folder, of_run(tmp_path / "buckets" / "measured" / "by" / "nodes"))
        assert "secret-key" not in "".join(
            path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file()
        )
