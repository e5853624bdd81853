"""The offset of two clocks lies within its bound, whatever the path does and however far they are apart."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trifecta.analysis.offsets import FourTimes, offset, one_way

ways = st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**8)), min_size=1, max_size=10)


def times(trips: list[tuple[int, int, int]], ahead: int, since: int = 10**15) -> FourTimes:
    """Packets that took so long there, back, and in between, with a far clock that is so much ahead."""
    sent = [since + number * 10**6 for number in range(len(trips))]
    came = [at + there + ahead for at, (there, _, _) in zip(sent, trips, strict=True)]
    left = [at + stay for at, (_, _, stay) in zip(came, trips, strict=True)]
    received = [at - ahead + back for at, (_, back, _) in zip(left, trips, strict=True)]
    return FourTimes(sent, came, left, received)


@given(trips=ways, ahead=st.integers(-(10**14), 10**14))
def test_the_truth_is_within_the_bound(trips: list[tuple[int, int, int]], ahead: int) -> None:
    measured = times(trips, ahead)
    found = offset(measured)
    assert found is not None
    assert abs(found.offset_ns - ahead) <= found.bound_ns
    shortest = min(there for there, _, _ in trips) + min(back for _, back, _ in trips)
    assert found.bound_ns == (shortest + 1) // 2
    there, back = one_way(measured, found)
    assert there.min is not None and back.min is not None
    assert abs(there.min - min(way for way, _, _ in trips)) <= found.bound_ns
    assert abs(back.min - min(way for _, way, _ in trips)) <= found.bound_ns
    assert min(there.min, back.min) >= 0


def test_on_one_clock_with_equal_ways_the_times_are_what_they_were() -> None:
    measured = times([(5_000_000, 5_000_000, 100)] * 9 + [(7_000_000, 6_000_000, 100)], 0)
    found = offset(measured)
    assert found is not None
    assert (found.offset_ns, found.bound_ns) == (0, 5_000_000)
    there, back = one_way(measured, found)
    assert (there.min, there.p50, there.max) == (5_000_000, 5_000_000, 7_000_000)
    assert (back.p50, back.max) == (5_000_000, 6_000_000)


def test_a_clock_that_was_set_in_between_has_no_offset() -> None:
    before, after = times([(1000, 1000, 0)] * 3, 0), times([(1000, 1000, 0)] * 3, 10**9)
    both = [[*getattr(before, name), *getattr(after, name)] for name in vars(before)]
    assert offset(FourTimes(*both)) is None


def test_without_a_packet_nothing_is_known() -> None:
    assert offset(FourTimes([], [], [], [])) is None
