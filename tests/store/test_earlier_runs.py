"""Runs of versions before the columns ``client``: they can be read, and gone on with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trifecta.store.run import RunDirectory, TrialFiles
from trifecta.store.schema import RESOURCES, SAMPLES, TRIALS
from trifecta.store.views import connect


def row(number: int, **changes: Any) -> dict[str, Any]:
    values: dict[str, Any] = dict.fromkeys(TRIALS.names)
    return values | {"trial": f"t{number:05d}", "block": 0, "cell": "c", "arm": "h2", "samples": number, **changes}


@pytest.fixture
def earlier(tmp_path: Path) -> RunDirectory:
    """A run whose two trials lack the column."""
    RunDirectory.create(tmp_path / "run", {}, "study: s\n").close()
    (tmp_path / "run" / "manifest.sha256").unlink()
    (tmp_path / "run" / "run.json").write_text('{"schema": 1}')
    run = RunDirectory.open(tmp_path / "run")
    old = pa.schema([field for field in TRIALS.arrow() if field.name != "client"])
    for number in (1, 2):
        values = {name: value for name, value in row(number).items() if name != "client"}
        pq.write_table(pa.Table.from_pylist([values], schema=old), run.path / "trials" / f"t{number:05d}.parquet")
    return run


QUERY = "SELECT trial, client, samples FROM trials ORDER BY trial"


def test_an_earlier_run_had_the_engines_own_client(earlier: RunDirectory) -> None:
    assert [(found["trial"], found["client"], found["samples"]) for found in earlier.rows()] == [
        ("t00001", "load", 1), ("t00002", "load", 2),
    ]  # fmt: skip
    assert set(earlier.rows()[0]) == set(TRIALS.names)
    assert connect(earlier.path).execute(QUERY).fetchall() == [("t00001", "load", 1), ("t00002", "load", 2)]
    columns = connect(earlier.path).execute("SELECT * FROM trials LIMIT 0").description
    assert [name for name, *_ in columns or ()] == [*TRIALS.names, "level"]


def test_an_earlier_run_that_was_gone_on_with_has_both(earlier: RunDirectory) -> None:
    earlier.commit_trial(row(3, client="curl"), TrialFiles())
    expected = [("t00001", "load", 1), ("t00002", "load", 2), ("t00003", "curl", 3)]
    assert connect(earlier.path).execute(QUERY).fetchall() == expected
    assert [(found["trial"], found["client"], found["samples"]) for found in earlier.rows()] == expected


def test_a_run_of_this_version_says_its_clients(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", {}, "study: s\n")
    run.commit_trial(row(1, client="curl"), TrialFiles())
    assert connect(run.path).execute(QUERY).fetchall() == [("t00001", "curl", 1)]


def sample(trial: str, request: int, **changes: Any) -> dict[str, Any]:
    values: dict[str, Any] = dict.fromkeys(SAMPLES.names)
    return values | {"trial": trial, "request": request, "started_ns": 1000, "done_ns": 3000, **changes}


def test_samples_of_an_earlier_run_do_not_say_which_client_made_them(earlier: RunDirectory) -> None:
    old = pa.schema([field for field in SAMPLES.arrow() if field.name != "client"])
    values = {name: value for name, value in sample("t00001", 7).items() if name != "client"}
    pq.write_table(pa.Table.from_pylist([values], schema=old), earlier.path / "samples" / "t00001.parquet")
    query = "SELECT trial, request, client, latency_ns FROM samples ORDER BY trial"
    assert connect(earlier.path).execute(query).fetchall() == [("t00001", 7, None, 2000)]
    columns = connect(earlier.path).execute("SELECT * FROM samples LIMIT 0").description
    assert [name for name, *_ in columns or ()][: len(SAMPLES)] == SAMPLES.names
    draft = earlier.draft("samples", "t00003", ".parquet")
    pq.write_table(pa.Table.from_pylist([sample("t00003", 8, client=5)], schema=SAMPLES.arrow()), draft)
    earlier.commit_trial(row(3), TrialFiles(samples=draft))
    expected = [("t00001", 7, None, 2000), ("t00003", 8, 5, 2000)]
    assert connect(earlier.path).execute(query).fetchall() == expected


def test_resources_of_an_earlier_run_know_cpu_and_memory_only(earlier: RunDirectory) -> None:
    old = pa.schema(list(RESOURCES.arrow())[:5])
    reading = {"trial": "t00001", "time_ns": 1, "process": "server", "cpu_ns": 5, "rss_bytes": 6}
    pq.write_table(pa.Table.from_pylist([reading], schema=old), earlier.path / "resources" / "t00001.parquet")
    query = "SELECT trial, process, cpu_ns, threads, sent_bytes FROM resources ORDER BY trial, process"
    assert connect(earlier.path).execute(query).fetchall() == [("t00001", "server", 5, None, None)]
    columns = connect(earlier.path).execute("SELECT * FROM resources LIMIT 0").description
    assert [name for name, *_ in columns or ()] == RESOURCES.names
    later = [
        reading | {"trial": "t00003", "threads": 3},
        {"trial": "t00003", "time_ns": 1, "process": "host host1", "sent_bytes": 9},
    ]
    earlier.commit_trial(row(3), TrialFiles(resources=later))
    assert connect(earlier.path).execute(query).fetchall() == [
        ("t00001", "server", 5, None, None),
        ("t00003", "host host1", None, None, 9),
        ("t00003", "server", 5, 3, None),
    ]
