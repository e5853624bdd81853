"""Pieces of an export, two at a time: one after the other they leave a quarter of two cores idle."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import TypeVar

import duckdb

from trifecta.store import parquet

_AT_A_TIME = 2
Piece = TypeVar("Piece")
Made = TypeVar("Made")


def each(
    connection: duckdb.DuckDBPyConnection,
    work: Callable[[duckdb.DuckDBPyConnection, Piece], Made],
    pieces: Sequence[Piece],
) -> Iterator[Made]:
    """What each piece gives, in their order; ``work`` gets a cursor that no other piece uses meanwhile.

    The first that fails ends all: what has not begun does not, what is under way is interrupted.
    """
    cursors = [connection.cursor() for _ in range(min(_AT_A_TIME, len(pieces)))]
    idle: SimpleQueue[duckdb.DuckDBPyConnection] = SimpleQueue()
    for cursor in cursors:
        parquet.without_progress(cursor)
        idle.put(cursor)

    def done(piece: Piece) -> Made:
        cursor = idle.get()
        try:
            return work(cursor, piece)
        finally:
            idle.put(cursor)

    try:
        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            try:
                yield from pool.map(done, pieces)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                for cursor in cursors:
                    cursor.interrupt()
                raise
    finally:
        for cursor in cursors:
            cursor.close()
