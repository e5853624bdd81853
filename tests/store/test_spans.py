"""The hops of cycles: their file in the run directory, and the view over it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trifecta.store import parquet, schema, views
from trifecta.store.run import RunDirectory, TrialFiles


def span(trial: str, ordinal: int, caller: str, callee: str, **changes: object) -> dict[str, object]:
    return {
        "trial": trial, "request": 0, "connection": 0, "client": 0, "warmup": False, "ordinal": ordinal,
        "depth": ordinal, "caller": caller, "callee": callee, "method": "POST", "path": "/chain",
        "started_ns": 1000 + 10 * ordinal, "secured_ns": None, "arrived_ns": 1300, "replied_ns": 1700,
        "returned_ns": 2100 - 10 * ordinal, "status": 200, "error": None,
    } | changes  # fmt: skip


def commit(run: RunDirectory, trial: str, spans: list[dict[str, object]] | None) -> None:
    draft = None
    if spans is not None:
        draft = run.draft("spans", trial, ".parquet")
        pq.write_table(pa.Table.from_pylist(spans, schema=schema.SPANS.arrow()), draft)
    row = dict.fromkeys(schema.TRIALS.names) | {"trial": trial, "arm": "h2", "block": 0, "valid": True}
    run.commit_trial(row, TrialFiles(spans=draft))


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory.create(tmp_path / "run", {"seed": 1}, "name: x\n")


def test_the_view_has_the_hops_of_committed_trials_with_their_parts(run: RunDirectory) -> None:
    lost = span("t00000", 1, "B", "C", arrived_ns=None, replied_ns=None, returned_ns=None, status=None, error="timeout")
    commit(run, "t00000", [span("t00000", 0, "A", "B"), lost])
    commit(run, "t00001", None)
    (run.path / "spans" / "t00002.parquet").write_bytes((run.path / "spans" / "t00000.parquet").read_bytes())
    assert not list(run.path.rglob(".tmp-*"))
    rows = views.connect(run.path).execute(
        "SELECT trial, caller, callee, there_ns, at_callee_ns, back_ns, elapsed_ns, error FROM spans ORDER BY ordinal"
    ).fetchall()  # fmt: skip
    assert rows == [
        ("t00000", "A", "B", 300, 400, 400, 1100, None),
        ("t00000", "B", "C", None, None, None, None, "timeout"),
    ]


def test_a_run_without_services_has_the_view_without_rows(run: RunDirectory) -> None:
    view = views.connect(run.path).execute("SELECT * FROM spans")
    assert [name for name, *_ in view.description or ()][: len(schema.SPANS)] == schema.SPANS.names
    assert view.fetchall() == []


def test_spans_of_a_trial_that_was_not_committed_are_removed(run: RunDirectory) -> None:
    commit(run, "t00000", [span("t00000", 0, "A", "B")])
    run.draft("spans", "t00001", ".parquet").write_text("half")
    (run.path / "spans" / "t00001.parquet").write_text("renamed, but its row was not")
    run.close()
    RunDirectory.open(run.path, write=True)
    assert [path.name for path in (run.path / "spans").iterdir()] == ["t00000.parquet"]


def test_an_abandoned_trial_leaves_no_spans(run: RunDirectory) -> None:
    run.draft("spans", "t00000", ".parquet").write_text("half")
    run.discard_trial("t00000")
    assert not list((run.path / "spans").iterdir())


def test_a_run_of_an_earlier_version_is_gone_on_with(run: RunDirectory) -> None:
    """Before, there was no folder for spans."""
    (run.path / "spans").rmdir()
    run.close()
    again = RunDirectory.open(run.path, write=True)
    commit(again, "t00000", [span("t00000", 0, "A", "B")])
    assert views.connect(run.path).execute("SELECT count(*) FROM spans").fetchall() == [(1,)]


def test_of_two_clocks_no_difference_is_taken(run: RunDirectory) -> None:
    """Between hosts both ways together are known: each host says how long it took, by its own clock."""
    spans = [
        span("t00000", 0, "A", "B", arrived_ns=9_000_300, replied_ns=9_000_700)
        | {"caller_host": "here", "callee_host": "ssh://b"},
        span("t00000", 1, "B", "C") | {"caller_host": "ssh://b", "callee_host": "ssh://b"},
    ]
    draft = run.draft("spans", "t00000", ".parquet")
    parquet.write(spans, schema.SPANS_OF_HOSTS, draft)
    row = dict.fromkeys(schema.TRIALS.names) | {"trial": "t00000", "arm": "h2", "block": 0, "valid": True}
    run.commit_trial(row, TrialFiles(spans=draft))
    rows = views.connect(run.path).execute(
        "SELECT callee_host, there_ns, at_callee_ns, back_ns, ways_ns, elapsed_ns FROM spans ORDER BY ordinal"
    ).fetchall()  # fmt: skip
    assert rows == [("ssh://b", None, 400, None, 700, 1100), ("ssh://b", 290, 400, 390, 680, 1080)]
