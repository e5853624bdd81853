"""The offset of two clocks lies within its bound, whatever the path does and however far they are apart."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trifecta.analysis.clock_offsets import (
    FourTimes,
    Offset,
    WallClock,
    agree,
    by_wall_clocks,
    offset,
    one_way,
    tighter,
)

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


@given(
    trips=ways,
    ahead=st.integers(-(10**14), 10**14),
    wall=st.integers(0, 10**18),
    bounds=st.tuples(*[st.integers(0, 10**9)] * 2),
    off=st.tuples(*[st.floats(-1, 1)] * 2),
)
def test_what_two_sound_bounds_have_in_common_holds_the_truth_too(
    trips: list[tuple[int, int, int]],
    ahead: int,
    wall: int,
    bounds: tuple[int, int],
    off: tuple[float, float],
) -> None:
    packets = offset(times(trips, ahead))
    assert packets is not None
    # Each wall clock is off by at most its bound: so far it is ahead of its monotonic clock, which is `ahead` apart.
    errors = [int(share * bound) for share, bound in zip(off, bounds, strict=True)]
    near = WallClock(wall + errors[0], bounds[0])
    far = WallClock(wall - ahead + errors[1], bounds[1])
    chrony = by_wall_clocks(near, far)
    assert abs(chrony.offset_ns - ahead) <= chrony.bound_ns
    assert agree(packets, chrony)
    both = tighter(packets, chrony)
    assert abs(both.offset_ns - ahead) <= both.bound_ns
    assert both.bound_ns <= min(packets.bound_ns, chrony.bound_ns) + 1
    there, back = one_way(times(trips, ahead), both)
    assert there.min is not None and back.min is not None
    assert min(there.min, back.min) >= -1


def test_bounds_that_contradict_each_other_have_nothing_in_common() -> None:
    packets, chrony = Offset(0, 5), Offset(20, 14)
    assert not agree(packets, chrony)
    assert tighter(packets, chrony) == packets
    assert agree(packets, Offset(20, 15))
    assert tighter(packets, Offset(20, 15)) == Offset(5, 0)
    assert tighter(packets, None) == packets
