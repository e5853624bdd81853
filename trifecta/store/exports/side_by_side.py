"""Pieces of an export, two at a time: one after the other they leave a quarter of two cores idle."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
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
) -> Generator[Made]:
    """What each piece gives, in their order; ``work`` gets a cursor that no other piece uses meanwhile.

    The first that fails ends all, and so does closing this: what has not begun does not, and what the database does for
    another is interrupted. What is not the database's, as sending a file, is waited for.
    """
    cursors = [connection.cursor() for _ in range(min(_AT_A_TIME, len(pieces)))]
    idle: SimpleQueue[duckdb.DuckDBPyConnection] = SimpleQueue()
    for cursor in cursors:
        parquet.without_progress(cursor)
        idle.put(cursor)
    failed: list[BaseException] = []  # the first is what is raised: others are interrupted because of it

    def end(error: BaseException) -> None:
        failed.append(error)
        for cursor in cursors:
            cursor.interrupt()

    def done(piece: Piece) -> Made:
        if failed:
            raise CancelledError
        cursor = idle.get()
        try:
            return work(cursor, piece)
        except BaseException as error:
            end(error)
            raise
        finally:
            idle.put(cursor)

    try:
        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            try:
                yield from pool.map(done, pieces)
            except BaseException as error:
                end(error)
                raise failed[0] from None
    finally:
        for cursor in cursors:
            cursor.close()
