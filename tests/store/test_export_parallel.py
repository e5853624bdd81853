"""Two pieces at a time, in order, each with a cursor of its own; the first that fails ends all."""

import time
from threading import Barrier, Event

import duckdb
import pytest

from trifecta.store.exports import parallel


@pytest.fixture
def connection():
    with duckdb.connect() as opened:
        opened.execute("CREATE VIEW many AS SELECT range AS n FROM range(400000000000)")
        yield opened


def test_pieces_come_in_order_and_two_are_under_way_at_once(connection):
    together = Barrier(2, timeout=60)

    def work(cursor, piece):
        together.wait()
        time.sleep(0.05 * (piece % 2 == 0))
        return cursor.execute("SELECT ?", [piece]).fetchone()[0], cursor

    made = list(parallel.map_pieces(connection, work, range(6)))
    assert [piece for piece, _ in made] == list(range(6))
    assert len({id(cursor) for _, cursor in made}) == 2
    assert list(parallel.map_pieces(connection, work, [])) == []


def test_a_piece_has_one_thread_so_that_its_octets_are_the_same_every_time(connection):
    connection.execute("SET threads = 3")
    assert list(parallel.map_pieces(connection, threads, range(3))) == [1, 1, 1]
    assert threads(connection, 0) == 3
    with pytest.raises(OSError, match="no space left"):
        list(parallel.map_pieces(connection, _full, range(3)))
    assert threads(connection, 0) == 3


def test_the_last_of_those_that_overlap_gives_the_threads_back(connection):
    connection.execute("SET threads = 3")
    first, second = (parallel.map_pieces(connection, threads, range(3)) for _ in range(2))
    assert [next(first), next(second)] == [1, 1]
    first.close()
    assert threads(connection, 0) == 1
    assert list(second) == [1, 1] and threads(connection, 0) == 3


def threads(cursor, piece):
    return cursor.execute("SELECT current_setting('threads')").fetchone()[0]


def _full(cursor, piece):
    raise OSError("no space left")


@pytest.mark.parametrize("failing", [0, 1], ids=["the first", "one behind a slower one"])
def test_one_that_fails_ends_what_is_under_way_and_what_has_not_begun(connection, failing):
    begun, other = [], Event()

    def work(cursor, piece):
        begun.append(piece)
        if piece == failing:
            assert other.wait(60)
            raise OSError("no space left")
        other.set()  # which may come before its query begins
        return cursor.execute("SELECT sum(sqrt(n)) FROM many").fetchone()

    started = time.monotonic()
    with pytest.raises(OSError, match="no space left"):
        list(parallel.map_pieces(connection, work, range(8)))
    assert time.monotonic() - started < 60
    assert sorted(begun) == [0, 1]


def test_who_closes_it_ends_what_is_under_way(connection):
    other = Event()

    def work(cursor, piece):
        if not piece:
            return piece
        other.set()
        return cursor.execute("SELECT sum(sqrt(n)) FROM many").fetchone()

    started = time.monotonic()
    made = parallel.map_pieces(connection, work, range(8))
    assert next(made) == 0
    assert other.wait(60)
    made.close()
    assert time.monotonic() - started < 60
