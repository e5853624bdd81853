"""What is worked out for all connections at once is what each gives alone."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trifecta.analysis.transport.extents import passed_ns
from trifecta.analysis.transport.group_by import (
    begins,
    columns_of,
    first_of_each,
    first_rows,
    frontiers,
    pair_keys,
    repeated,
    rising,
    sums_by,
)
from trifecta.analysis.transport.octets import frontier
from trifecta.analysis.transport.quantiles import quantiles_of_each
from trifecta.analysis.transport.ranges import in_a_row
from trifecta.analysis.transport.rows import Rows

# Far apart, so that group and value do not fit into one number together, or near one another.
NUMBERS = st.integers(-3, 12) | st.integers(-(2**61), 2**61)
PAIRS = st.lists(st.tuples(st.integers(-1, 4) | st.just(2**31), NUMBERS), max_size=25)
RANGES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30), st.integers(1, 9)), max_size=30)


def _columns(rows: list[tuple[int, ...]], width: int) -> list[np.ndarray]:
    return [np.array([row[at] for row in rows], dtype=np.int64) for at in range(width)]


@given(PAIRS, PAIRS)
def test_keys_are_ordered_as_pairs_are(some: list[tuple[int, int]], others: list[tuple[int, int]]) -> None:
    keys = pair_keys((*_columns(some, 2),), (*_columns(others, 2),))  # type: ignore[arg-type]
    told = [*zip(some, keys[0].tolist(), strict=True), *zip(others, keys[1].tolist(), strict=True)]
    for pair, key in told:
        for other, other_key in told:
            assert (pair < other) == (key < other_key) and (pair == other) == (key == other_key)


@given(PAIRS, PAIRS)
def test_the_first_row_of_a_value_is_of_its_group(some: list[tuple[int, int]], wanted: list[tuple[int, int]]) -> None:
    wanted += some[::2]
    found = first_rows(*_columns(some, 2), *_columns(wanted, 2))
    assert found.tolist() == [some.index(pair) if pair in some else -1 for pair in wanted]


@given(RANGES)
def test_what_grows_and_what_has_arrived_is_of_each_group_alone(ranges: list[tuple[int, int, int]]) -> None:
    ranges.sort(key=lambda one: one[0])
    group, start, length = _columns(ranges, 3)
    of_each = [np.flatnonzero(group == one) for one in dict.fromkeys(group.tolist())]
    first = [rows[0] for rows in of_each]
    assert np.flatnonzero(begins(group)).tolist() == [int(one) for one in first]
    reached = frontiers(group, start, start + length, 1 + group % 2)
    grows, again = rising(start, group), repeated(group, start % 2 == 0)
    for rows in of_each:
        mine = start[rows]
        expected = frontier(mine, mine + length[rows], 1 + int(group[rows[0]]) % 2)
        assert reached[rows].tolist() == expected.tolist()
        highest = [-1, *np.maximum.accumulate(mine).tolist()]
        assert grows[rows].tolist() == [value > before for value, before in zip(mine.tolist(), highest, strict=False)]
        even = [value % 2 == 0 for value in mine.tolist()]
        assert again[rows].tolist() == [one and any(even[:at]) for at, one in enumerate(even)]


@given(st.lists(st.lists(st.integers(-(2**50), 2**50), max_size=9), max_size=5), st.lists(st.integers(), max_size=3))
def test_quantiles_of_each_are_those_of_each(parts: list[list[int]], apart: list[int]) -> None:
    values, starts, ends = list[int](), [], []
    for part in parts:
        values += [7] * len(apart)  # of no part
        starts.append(len(values))
        values += part
        ends.append(len(values))
    bounds = (np.array(each, dtype=np.int64) for each in (starts, ends))
    found = quantiles_of_each(np.array(values, dtype=np.int64), *bounds)
    alone = [
        quantiles_of_each(np.array(part, dtype=np.int64), np.zeros(1, np.int64), np.full(1, len(part)))
        for part in parts
    ]
    assert [[one] for one in found] == alone


@given(st.lists(st.lists(st.tuples(st.integers(), st.integers()), max_size=4), max_size=4))
def test_columns_of_parts_say_whose_each_row_is(parts: list[list[tuple[int, int]]]) -> None:
    made = [[np.array([pair[at] % 2**40 for pair in part], dtype=np.int64) for at in (0, 1)] for part in parts]
    group, row, *columns = columns_of(made) if made else [np.zeros(0)] * 4
    expected = [
        (of, at, first % 2**40, second % 2**40)
        for of, part in enumerate(parts)
        for at, (first, second) in enumerate(part)
    ]
    assert list(zip(*(each.tolist() for each in (group, row, *columns)), strict=True)) == expected


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-1, 2**40)), min_size=1, max_size=20))
def test_in_a_row_nobody_touches_another(positions: list[tuple[int, int]]) -> None:
    owners = {owner: at for at, owner in enumerate(sorted({owner for owner, _ in positions}))}
    owner = np.array([owners[one] for one, _ in positions], dtype=np.int64)
    position = np.array([at for _, at in positions], dtype=np.int64)
    row = in_a_row(len(owners), (owner, position))
    assert row is not None
    moved = position + row.shift[owner]
    assert (row.low[owner] <= moved).all() and (moved <= row.high[owner]).all()
    assert (row.low[1:] > row.high[:-1]).all()
    assert len(set(zip(owner.tolist(), (moved - position).tolist(), strict=True))) == len(owners)


@given(st.lists(st.tuples(st.integers(-1, 2), st.integers(0, 3)), max_size=20))
def test_the_first_of_each_and_the_sums_at_each_place(rows: list[tuple[int, int]]) -> None:
    first, second = _columns(rows, 2)
    assert first_of_each(first, second).tolist() == [row not in rows[:at] for at, row in enumerate(rows)]
    expected = [sum(value for place, value in rows if place == at) for at in range(3)]
    assert sums_by(first, 3, second).tolist() == expected


def test_what_does_not_fit_into_a_row_is_said() -> None:
    far = np.array([0, 2**61], dtype=np.int64)
    assert in_a_row(2, (np.array([0, 0]), far), (np.array([1, 1]), far)) is None
    assert in_a_row(1, (np.array([0, 0]), far)) is not None


def test_what_never_passed_did_not_pass_with_the_next_connection() -> None:
    columns = {"connection": [0, 0, 2, 2], "time_ns": [10, 20, 5, 6]}
    rows = Rows({name: np.array(each) for name, each in columns.items()}, {})
    upto = np.array([100, 200, 50, 250])
    asked = [(0, 100), (0, 101), (0, 201), (1, 1), (2, 50), (2, 251), (-1, 0)]
    found = passed_ns(rows, upto, *_columns(asked, 2))
    assert found.tolist() == [10, 20, -1, -1, 5, -1, -1]
