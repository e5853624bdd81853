"""Files of a run that are in its object store: brought whole or not at all, and never given up too early."""

from __future__ import annotations

import hashlib
import http.server
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.test_node_blocks import block, on_a_node
from trifecta.cli import object_stores
from trifecta.design import extras
from trifecta.design.errors import CannotError, UserError
from trifecta.store import manifest, node_blocks, remote_files, views
from trifecta.store.exports import object_store
from trifecta.store.run import RunDirectory

pytestmark = pytest.mark.skipif(bool(extras.missing("exports")), reason="the extra exports is not installed")


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return tmp_path / "lake"


@pytest.fixture
def staged(tmp_path: Path, lake: Path) -> Path:
    """A run with one block that is staged and not committed, its samples in the store."""
    content = on_a_node(tmp_path / "node", block(0))
    run = RunDirectory.create(tmp_path / "head", {"stored": f"file://{lake}"}, "name: race\n")
    remote_files.prepare(f"file://{lake}", "name: race\n")
    stored = {name: hashlib.sha256(octets).hexdigest() for name, octets in content.items() if manifest.belongs(name)}
    for name, digest in stored.items():
        path = lake / remote_files.object_name(name, digest)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content[name])
    rows = {name: octets for name, octets in content.items() if name not in stored}
    node_blocks.stage(run.path, block(0), rows, "n1", stored)
    run.close()
    return run.path


@pytest.fixture
def run(staged: Path) -> Path:
    """The same, committed."""
    RunDirectory.open(staged, write=True).close()
    assert len(manifest.absent(staged)) == 4
    return staged


def test_rows_are_read_and_the_rest_says_where_it_is(run: Path) -> None:
    assert len(RunDirectory.open(run).rows()) == 4
    with pytest.raises(UserError, match=r"4 files are still in file://.*lake; `trifecta resume .*head` brings"):
        views.connect(run)


@pytest.mark.parametrize("which", ["staged", "run"])
def test_resume_brings_all_and_completes_the_store(
    which: str, lake: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    folder: Path = request.getfixturevalue(which)
    late = lake / remote_files.object_name("samples/t00001.parquet", "0" * 64)
    late.write_bytes(b"put late")
    theirs = lake / "samples" / "study=s" / "run=r" / "part-00000-0123456789abcdef.parquet"
    theirs.parent.mkdir(parents=True)
    theirs.write_bytes(b"an export of another run")
    object_stores.bring(folder, quiet=False)
    assert manifest.absent(folder) == {}
    assert manifest.Manifest(folder).faults() == []
    assert not late.exists()
    assert theirs.exists()
    assert remote_files.is_complete(folder)
    assert "still in file://" in capsys.readouterr().err
    (lake / manifest.FILE).unlink()  # a command that was killed before it was put
    assert not remote_files.is_complete(folder)
    object_stores.bring(folder, quiet=True)
    assert remote_files.is_complete(folder)


def test_a_store_that_is_away_is_not_taken_for_lost_files(run: Path, lake: Path) -> None:
    elsewhere = lake.rename(lake.with_name("unmounted"))
    with pytest.raises(CannotError, match="there is no folder; mount it"):
        remote_files.bring(run)
    assert not lake.exists(), "nothing is made where something is to be found"
    lake.mkdir()
    with pytest.raises(CannotError, match="the run's files are not found there; see that it is the same store"):
        object_stores.bring(run, quiet=True)
    lake.rmdir()
    elsewhere.rename(lake)
    object_stores.bring(run, quiet=True)
    lake.rename(elsewhere)
    object_stores.bring(run, quiet=True)  # all is here: it needs no store


def test_a_run_whose_files_are_away_takes_back_nothing_when_it_is_opened_for_writing(run: Path) -> None:
    before = manifest.absent(run)
    RunDirectory.open(run, write=True).close()
    assert manifest.absent(run) == before


@pytest.fixture
def busy() -> Iterator[str]:
    """A server of S3's protocol that is busy for 6 s, and then takes what it is given; its address."""
    began = time.monotonic()

    class Busy(http.server.BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(200 if time.monotonic() - began > 6 else 503)
            self.send_header("ETag", '"1"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Busy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


def test_a_store_that_is_busy_is_waited_for(busy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("AWS_ENDPOINT", busy), ("AWS_ALLOW_HTTP", "true"), ("AWS_REGION", "us-east-1"),
                        ("AWS_ACCESS_KEY_ID", "user"), ("AWS_SECRET_ACCESS_KEY", "secret-key")):  # fmt: skip
        monkeypatch.setenv(name, value)
    with pytest.raises(CannotError, match="s3://bucket"), object_store.clear("s3://bucket", "wait"):
        object_store.opened("s3://bucket").put("name", b"1")
    object_store.opened("s3://bucket", patient=True).put("name", b"1")
