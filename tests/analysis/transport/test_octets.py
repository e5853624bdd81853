import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trifecta.analysis.transport.octets import by_stream, fresh, fresh_by_stream, frontier
from trifecta.analysis.transport.quantiles import quantiles_of_each

RANGES = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 12)), max_size=30)


def _ends(ranges: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    start = np.array([a for a, _ in ranges], dtype=np.int64)
    return start, start + np.array([n for _, n in ranges], dtype=np.int64)


@given(RANGES)
def test_fresh_octets_are_those_that_no_range_had_before(ranges: list[tuple[int, int]]) -> None:
    start, end = _ends(ranges)
    known: set[int] = set()
    expected = []
    for a, b in zip(start.tolist(), end.tolist(), strict=True):
        expected.append(len(set(range(a, b)) - known))
        known |= set(range(a, b))
    assert fresh(start, end).tolist() == expected


@given(RANGES, st.lists(st.integers(0, 7), min_size=30, max_size=30))
def test_streams_do_not_know_of_each_other(ranges: list[tuple[int, int]], streams: list[int]) -> None:
    start, end = _ends(ranges)
    each = np.array(streams[: len(ranges)], dtype=np.int64)
    known: set[tuple[int, int]] = set()
    expected = []
    for number, a, b in zip(each.tolist(), start.tolist(), end.tolist(), strict=True):
        octets = {(number, octet) for octet in range(a, b)}
        expected.append(len(octets - known))
        known |= octets
    assert fresh_by_stream(each // 4, each % 4, start, end).tolist() == expected
    assert [each[rows].tolist() for rows in by_stream(each)] == [
        [one] * each.tolist().count(one) for one in sorted(set(each.tolist()))
    ]


@given(RANGES)
def test_the_frontier_is_the_first_octet_that_has_not_arrived(ranges: list[tuple[int, int]]) -> None:
    start, end = _ends(ranges)
    known: set[int] = set()
    expected = []
    for a, b in zip(start.tolist(), end.tolist(), strict=True):
        known |= set(range(a, b))
        expected.append(next(octet for octet in range(5, 100) if octet not in known))
    assert frontier(start, end, 5).tolist() == expected


@given(st.lists(st.integers(-(2**50), 2**50), min_size=1, max_size=120))
def test_quantiles_are_those_of_numpy(values: list[int]) -> None:
    (found,) = quantiles_of_each(np.array(values, dtype=np.int64), np.zeros(1, np.int64), np.full(1, len(values)))
    assert found is not None
    expected = np.quantile(values, [0, 0.5, 0.9, 0.99, 1]).tolist()
    for place, enough in ((2, 10), (3, 100)):  # no percentile beyond what the sample holds
        if len(values) < enough:
            expected[place] = None
    assert [found.least, found.p50, found.p90, found.p99, found.most] == expected
