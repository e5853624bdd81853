"""From what an adapter read to the sample rows of a trial: whole, in order, typed, and judged as the engine judges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final, cast

from trifecta.contract.errors import ErrorClass, is_error_class
from trifecta.contract.sample import SampleRow
from trifecta.implementations.client import Job, Output, Row

if TYPE_CHECKING:
    from trifecta.store.parquet import Table

FILLED_IN = frozenset({"trial", "worker", "request", "warmup"})
_TIMES = ("connect_start_ns", "tcp_connected_ns", "secured_ns", "request_sent_ns", "first_byte_ns", "done_ns")
# An answer may come before the request is sent whole (RFC 9113, 8.1), and a body may be sent while the answer arrives.
_MAY_CROSS = {("request_sent_ns", "first_byte_ns"), ("request_sent_ns", "done_ns")}
MISSING: Final = "client:missing"
KILLED: Final = "timeout"
CRASHED: Final = "client:crashed"


def complete(trial: str, job: Job, output: Output, rows: Iterable[Row], *, killed: bool) -> list[SampleRow]:
    """Every request that was asked for as a row, in the order in which they started.

    What is not the answer asked for becomes a failure (``status``, ``length``, ``timeout``), as the engine's own client
    has it. Requests of which the program left no word become failures too: ``timeout`` when it was ended for taking
    too long (``killed``), ``client:crashed`` when it died or ended with an error, ``client:missing`` when it says that
    all went well. ValueError when the rows contradict themselves.
    """
    judged = [_checked_row(job, row.copy()) for row in rows]
    if len(judged) > job.requests:
        raise ValueError(f"{len(judged)} requests were reported, {job.requests} were asked for")
    judged.sort(key=lambda row: int(row["started_ns"]))
    error: ErrorClass = KILLED if killed else CRASHED if output.code else MISSING
    # A request that nobody saw start is put at the end: it must not stretch the time in which the others were served.
    unseen: Row = {"started_ns": output.ended_ns, "error": error}
    judged += [unseen] * (job.requests - len(judged))
    filled: list[SampleRow] = []
    for number, row in enumerate(judged):
        warmup = number < job.warmup_requests
        filled.append({**row, "trial": trial, "worker": 0, "request": number, "warmup": warmup})
    return filled


def _checked_row(job: Job, row: Row) -> Row:
    """A row of the adapter, checked against itself and against the answer asked for."""
    from trifecta.store.schema import SAMPLES

    unknown = set(row) - set(SAMPLES.names) | set(row) & FILLED_IN
    if unknown:
        raise ValueError(f"a row has columns that are not the adapter's: {', '.join(sorted(unknown))}")
    started, done = row.get("started_ns"), row.get("done_ns")
    if started is None:
        raise ValueError("a row has no started_ns")
    values = cast(dict[str, int | None], row)
    times = [(name, at) for name in _TIMES if (at := values.get(name)) is not None]
    disorder = [
        f"{later} before {earlier}"
        for (earlier, before), (later, after) in pairwise(times)
        if after < before and (earlier, later) not in _MAY_CROSS
    ]
    if done is not None and done < started:
        disorder.append("done_ns before started_ns")
    if disorder:
        raise ValueError(f"the times of a request are out of order: {', '.join(disorder)}")
    error = row.get("error")
    if error is None:
        row["error"] = _fault(job, row)
    elif not is_error_class(error):
        raise ValueError(f"a request failed with {error!r}, which is no error class")
    return row


def _fault(job: Job, row: Row) -> ErrorClass | None:
    """The error class of a row that the client takes for a success; None when it is one."""
    done_ns, status = row.get("done_ns"), row.get("status")
    if done_ns is None or status is None:
        raise ValueError("a request without an error has neither an end nor a status")
    if job.expect_status is not None and status != job.expect_status:
        return "status"
    if job.expect_body_bytes is not None and row.get("bytes_in") != job.expect_body_bytes:
        return "length"
    limit_ns = job.request_timeout_ns + (job.connect_timeout_ns if job.connection_mode == "new" else 0)
    return "timeout" if done_ns - row["started_ns"] > limit_ns else None


def table(rows: Sequence[SampleRow]) -> Table:
    """The rows as the samples file has them; ValueError when a value has not the type of its column."""
    from trifecta.store.parquet import Table
    from trifecta.store.schema import SAMPLES

    return Table(rows, SAMPLES)
