"""Rows of queries have the type that names their columns."""

from __future__ import annotations

from typing import TypedDict

import duckdb
import pytest

from trifecta.conclude import queries
from trifecta.conclude.queries import QueryResult
from trifecta.conclude.query import Query


class Row(TypedDict):
    """Two columns."""

    a: int
    b: str


class Wider(Row, total=False):
    """One more, which a query may lack."""

    c: int


LACKS = "not among the columns: b"


def test_a_select_gives_rows_and_names_a_column_that_it_lacks() -> None:
    with duckdb.connect() as connection:
        sql = "SELECT 1 AS a, 'x' AS b"
        assert queries.select(connection, Row, sql) == queries.select(connection, Wider, sql) == [{"a": 1, "b": "x"}]
        with pytest.raises(TypeError, match=f"Row: {LACKS}"):
            queries.select(connection, Row, "SELECT 1 AS a WHERE false")


def test_an_answer_gives_those_that_are_wanted_and_names_a_column_that_it_lacks() -> None:
    query = Query("q", "SELECT 1", ("a",))
    rows = [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    assert QueryResult(query, rows).of(Row, a=2) == rows[1:]
    assert QueryResult(query, []).of(Row) == []
    with pytest.raises(TypeError, match=f"Row: {LACKS}"):
        QueryResult(query, [{"a": 1}]).of(Row)
