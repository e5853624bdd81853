"""What our own client programs read and write: the job as a JSON file, and a line for each request.

The output begins with ``{"columns": [...]}``, then comes an array of values for each request, in the order of their
start, then ``{"end": {"rows": ..., "ended": ...}}``: only with that is it whole. ``ended`` is ``requests``,
``total_timeout``, ``signal`` or ``no_response`` (many failures and never an answer).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from trifecta.contract.errors import ErrorClass
from trifecta.implementations.client import Job, Output, Row

_LEFT_TO_WRITE_NS = 500_000_000
# The error class of requests that were never made, by why the program stopped before them.
_NEVER_MADE: dict[str, ErrorClass] = {"total_timeout": "timeout", "signal": "interrupted", "no_response": "interrupted"}


def write_job(job: Job) -> Path:
    """Write what the program reads into ``job.state``; its path."""
    fields: dict[str, Any] = {name: value for name, value in asdict(job).items() if name != "state"}
    for name in ("ca_file", "keylog_file", "qlog_dir"):
        fields[name] = None if fields[name] is None else str(fields[name])
    # The program ends before it would be ended, so that what was under way is told as what it is.
    left_ns = job.total_timeout_ns - min(_LEFT_TO_WRITE_NS, job.total_timeout_ns // 10)
    fields["deadline_ns"] = time.monotonic_ns() + left_ns
    path = job.state / "job.json"
    path.write_text(json.dumps(fields), encoding="utf-8")
    return path


def read_rows(job: Job, output: Output) -> Iterator[Row]:
    """The rows of a program's output, and one for each request that it gave up before it was made.

    ValueError when it is not such an output. One that was cut short by a signal ends where it was cut.
    """
    columns: list[str] | None = None
    count = 0
    with output.stdout.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                item = json.loads(line)
            except ValueError:
                if output.code < 0:
                    return
                raise ValueError(f"line {number} is not JSON") from None
            if columns is None:
                columns = _columns(item)
            elif isinstance(item, list) and len(item) == len(columns):
                count += 1
                yield cast(Row, dict(zip(columns, item, strict=True)))
            elif isinstance(item, dict) and isinstance(item.get("end"), dict):
                yield from _given_up(job, output, item["end"], count)
                return
            else:
                raise ValueError(f"line {number} is neither a row of {len(columns)} values nor the end")
    if output.code == 0:
        raise ValueError(f"it has no end after {count} rows")


def _columns(item: Any) -> list[str]:
    columns = item.get("columns") if isinstance(item, dict) else None
    if not isinstance(columns, list) or not columns:
        raise ValueError("line 1 does not name the columns")
    return columns


def _given_up(job: Job, output: Output, end: dict[str, Any], count: int) -> Iterator[Row]:
    if end.get("rows") != count:
        raise ValueError(f"its end tells of {end.get('rows')} rows, there are {count}")
    error = _NEVER_MADE.get(str(end.get("ended")))
    if error is not None:
        for _ in range(count, job.requests):
            yield {"started_ns": output.ended_ns, "error": error}
