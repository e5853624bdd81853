"""Answers to queries as text, JSON and CSV."""

import csv
import io
import json

import duckdb
import pytest

from trifecta.cli import tables
from trifecta.design.errors import UserError

QUERY = """
SELECT * FROM (VALUES ('a', 1, 1.5, NULL), ('b,"c"', 20, 'infinity'::DOUBLE, [1, 2])) AS t(name, count, share, list)
"""


@pytest.fixture
def answer():
    with duckdb.connect() as connection:
        return tables.ask(connection, QUERY)


def test_text_is_aligned_and_numbers_stand_right(answer):
    assert tables.as_text(answer).splitlines() == [
        "name   count  share  list",
        "-----  -----  -----  ------",
        "a          1    1.5  null",
        'b,"c"     20    inf  [1, 2]',
    ]


def test_json_holds_every_value_and_is_strict(answer):
    def refuse(constant):
        raise AssertionError(constant)

    rows = json.loads(tables.as_json(answer), parse_constant=refuse)
    assert rows == [
        {"name": "a", "count": 1, "share": 1.5, "list": None},
        {"name": 'b,"c"', "count": 20, "share": "inf", "list": [1, 2]},
    ]


def test_csv_reads_back(answer):
    rows = list(csv.reader(io.StringIO(tables.as_csv(answer))))
    assert rows == [["name", "count", "share", "list"], ["a", "1", "1.5", ""], ['b,"c"', "20", "inf", "[1, 2]"]]


def test_an_empty_result_has_its_header():
    with duckdb.connect() as connection:
        empty = tables.ask(connection, "SELECT 1 AS one WHERE false")
    assert tables.as_text(empty) == "one\n---\n"
    assert tables.as_json(empty) == "[]\n"


@pytest.mark.parametrize("query", ["SELEC 1", "SELECT nothing", ";;", "SELECT * FROM missing"])
def test_a_wrong_query_is_one_line(query):
    with duckdb.connect() as connection:
        try:
            tables.ask(connection, query)
        except UserError as error:
            assert "\n" not in str(error)
            assert str(error).startswith("query: ")
