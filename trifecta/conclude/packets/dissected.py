"""Dissects the captures of a run, once."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from trifecta.design import extras
from trifecta.design.errors import CannotError, UserError
from trifecta.store import results_manifest
from trifecta.store.trace_schema import TABLES


def dissect_run(run: Path) -> None:
    """Dissect a run's captures into ``trace/``, once: again when captures came after that, or nobody knows the tables.

    Tables that were changed since stay as they are: `views.connect` names them.
    Where that cannot be done (no tshark, no extra ``capture``, a damaged capture) there is no ``trace/``; the report
    says how to see why.
    """
    captures = list((run / "captures").glob("*.pcapng"))
    done = run / "trace" / "packets.parquet"
    if not captures:
        return
    known = {f"trace/{name}.parquet" for name in TABLES} <= set(results_manifest.known(run) or {})
    if known and done.exists() and done.stat().st_mtime >= max(one.stat().st_mtime for one in captures):
        return
    if extras.missing("capture"):
        return
    from trifecta.trace import overview
    from trifecta.trace.dissect import dissect

    files, logs, _ = overview.find_captures([run])
    with suppress(CannotError, UserError):
        dissect(files, None, run / "trace", link_logs=logs)
        overview.note_tables(run)
