"""Pieces of an export, two at a time: one after the other they leave a quarter of two cores idle.

Each has one thread of the database. With more, DuckDB cuts a Parquet file's groups of rows where the threads happen to
meet, so that the same rows are other octets the next time; and it takes a quarter longer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from queue import SimpleQueue
from typing import TypeVar

import duckdb

from trifecta.store import parquet

AT_A_TIME = 2
_POLL_S = 0.01
Piece = TypeVar("Piece")
Made = TypeVar("Made")


def map_pieces(
    connection: duckdb.DuckDBPyConnection,
    work: Callable[[duckdb.DuckDBPyConnection, Piece], Made],
    pieces: Sequence[Piece],
) -> Generator[Made]:
    """What each piece gives, in their order; ``work`` gets a cursor that no other piece uses meanwhile.

    The first that fails ends all, and so does closing this: what has not begun does not, and what the database does for
    another is interrupted. What is not the database's, as sending a file, is waited for.
    """
    cursors = [connection.cursor() for _ in range(min(AT_A_TIME, len(pieces)))]
    idle: SimpleQueue[duckdb.DuckDBPyConnection] = SimpleQueue()
    for cursor in cursors:
        parquet.without_progress(cursor)
        idle.put(cursor)
    busy: set[duckdb.DuckDBPyConnection] = set()
    failed: list[BaseException] = []  # the first is what is raised: others are interrupted because of it

    def end(error: BaseException) -> None:
        """Interrupt what is under way until it is over: DuckDB forgets an interrupt that comes before its query."""
        failed.append(error)
        while busy:
            for cursor in tuple(busy):
                cursor.interrupt()
            time.sleep(_POLL_S)

    def done(piece: Piece) -> Made:
        cursor = idle.get()
        busy.add(cursor)  # before it is looked whether another failed: one of the two sees the other
        try:
            try:
                if failed:
                    raise CancelledError
                return work(cursor, piece)
            finally:
                busy.discard(cursor)
                idle.put(cursor)
        except BaseException as error:
            end(error)
            raise

    try:
        with parquet.one_thread(connection), ThreadPoolExecutor(AT_A_TIME) as pool:
            try:
                yield from pool.map(done, pieces)
            except BaseException as error:
                end(error)
                raise failed[0] from None
    finally:
        for cursor in cursors:
            cursor.close()
