"""The metrics of a dissection, and a row a connection: on every core where it is large."""

from __future__ import annotations

import gc
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trifecta.store import cpu_count
from trifecta.store.trace_schema import TABLES
from trifecta.trace import overview
from trifecta.trace.dissection import Dissection
from trifecta.trace.summary import METRICS, encoded_metrics

if TYPE_CHECKING:
    from trifecta.analysis.transport.rows import Ints
    from trifecta.trace.documents import ConnectionSummary

_SMALL = 100_000  # rows: below, one process is quicker than several
_CONNECTION = 500  # rows that take as long as a connection does by itself
_MOST = 8  # processes
_TURNS = 4  # parts that each has one after the other: what a part needs beside the tables is less then


@dataclass(frozen=True, slots=True)
class Analysis:
    """``metrics``: as `summary.METRICS`; ``connections``: as `overview.by_connection` gives them."""

    metrics: pa.Table
    connections: list[ConnectionSummary]


@dataclass(frozen=True, slots=True)
class _Part:
    """Connections [first, last] by number, [begin, end) by their place in the table."""

    first: int
    last: int
    begin: int
    end: int


_found: Dissection | None = None  # what the worker processes inherit
_one_side = False


def analyse(dissection: Dissection, processes: int | None = None) -> Analysis:
    """Of all connections. ``processes``: how many; None: as many as there are cores, one for what is small."""
    global _found, _one_side  # noqa: PLW0603 - what the workers inherit
    parts = _parts(dissection, processes)
    if len(parts) < 2:
        done = [_analyse(dissection, None)]
        return Analysis(done[0].metrics.cast(METRICS), done[0].connections)
    _found, _one_side = dissection, _has_one_side(dissection)
    try:
        # fork: no other thread runs here, and the workers need the whole dissection.
        fork = multiprocessing.get_context("fork")
        workers = min(processes or _cores(), len(parts))
        with ProcessPoolExecutor(workers, mp_context=fork, initializer=_begin) as pool:
            done = list(pool.map(_work, parts))
    finally:
        _found = None
    metrics = pa.concat_tables([one.metrics.cast(METRICS) for one in done]).combine_chunks()
    return Analysis(metrics, [row for one in done for row in one.connections])


def _analyse(dissection: Dissection, one_side: bool | None) -> Analysis:
    of = overview.connections(dissection)
    analysis = Analysis(encoded_metrics(dissection, of, one_side=one_side), overview.by_connection(dissection, of))
    of.clear()  # it is through this list that they know one another: a worker, which looks for no rubbish, forgets them
    return analysis


def _begin() -> None:
    """A worker makes millions of objects and ends: to look through them for rubbish is a third of its time."""
    gc.freeze()
    gc.disable()


def _work(part: _Part) -> Analysis:
    assert _found is not None
    tables = {name: _between(getattr(_found, name), part) for name in TABLES if name != "connections"}
    mine = _found.connections.slice(part.begin, part.end - part.begin)
    return _analyse(Dissection(**tables, connections=mine, notes=_found.notes), _one_side)


def _between(table: pa.Table, part: _Part) -> pa.Table:
    number = table["connection"]
    first, last = (pa.scalar(one, number.type) for one in (part.first, part.last))
    return table.filter(pc.and_(pc.greater_equal(number, first), pc.less_equal(number, last)))


def _parts(dissection: Dissection, processes: int | None) -> list[_Part]:
    """Neighbouring connections, about as much work in each part. No metric of one needs another."""
    numbers = _numbers(dissection.connections)
    if processes == 1 or len(numbers) < 2 or (np.diff(numbers) <= 0).any():
        return []
    work = np.full(len(numbers), _CONNECTION, dtype=np.int64)
    for table in (dissection.packets, dissection.frames):
        rows = np.searchsorted(numbers, _numbers(table), side="right") - 1
        work += np.bincount(rows[rows >= 0], minlength=len(numbers))
    done = np.cumsum(work)
    if processes is None:
        processes = _cores() if done[-1] > _SMALL else 1
    if processes < 2:
        return []
    pieces = processes * _TURNS
    cuts = np.searchsorted(done, done[-1] * np.arange(1, pieces) / pieces) + 1
    bounds = np.unique(np.concatenate(([0], cuts, [len(numbers)])))
    return [
        _Part(int(numbers[begin]), int(numbers[end - 1]), begin, end)
        for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    ]


def _cores() -> int:
    return min(cpu_count.usable(), _MOST)


def _numbers(table: pa.Table) -> Ints:
    return np.asarray(pc.drop_null(table["connection"]).to_numpy(), dtype=np.int64)


def _has_one_side(dissection: Dissection) -> bool:
    """Whether some packets are of a capture of one side, for that is said of all connections."""
    packets = dissection.packets
    known = pc.and_(pc.is_valid(packets["connection"]), pc.is_in(packets["direction"], pa.array(["up", "down"])))
    return bool(pc.any(pc.and_(known, pc.is_null(packets["side"]))).as_py())
