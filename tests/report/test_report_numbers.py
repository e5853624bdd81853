from __future__ import annotations

import math

import pytest

from trifecta.design import numbers


@pytest.mark.parametrize(
    ("ns", "shown"),
    [
        (None, "–"),
        (math.nan, "–"),
        (math.inf, "∞"),
        (0, "0 ns"),
        (812, "812 ns"),
        (999.4, "999 ns"),
        (999.6, "1.00 µs"),
        (12_345, "12.3 µs"),
        (999_600, "1.00 ms"),
        (80_449_000, "80.4 ms"),
        (1_200_000_000, "1.20 s"),
        (7_660_000_000_000, "7,660 s"),
    ],
)
def test_durations_have_three_digits_and_the_unit_that_fits(ns: float | None, shown: str) -> None:
    assert numbers.duration(ns) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.4285, "1.43"),
        (0.7, "0.70"),
        (1.0, "1.00"),
        (1.0041, "1.004"),
        (0.9962, "0.996"),
        (12.345, "12.3"),
        (0.0123, "0.012"),
    ],
)
def test_ratios_show_their_difference_from_one(value: float, shown: str) -> None:
    assert numbers.ratio(value) == shown


@pytest.mark.parametrize(
    ("ends", "shown"),
    [
        ((1.384, 1.49), "[1.38, 1.49]"),
        ((0.95, 1.0083), "[0.950, 1.008]"),
        ((None, 1.2), "[0, 1.20]"),
        ((0.8, None), "[0.80, ∞]"),
        ((None, None), "[no interval]"),
        ((0.0123, 14.2), "[0.012, 14.2]"),
        ((0.5, math.inf), "[0.50, ∞]"),
    ],
)
def test_both_ends_of_an_interval_have_the_same_decimals(ends: tuple[float | None, float | None], shown: str) -> None:
    assert numbers.interval(ends) == shown


def test_a_range_whose_ends_read_alike_is_one_number() -> None:
    assert numbers.between(0.668, 0.672, "at") == "at 0.67"
    assert numbers.between(0.668, 0.672) == "0.67"
    assert numbers.between(0.66, 0.67, "at") == "between 0.66 and 0.67"


def test_a_failure_is_never_rounded_away() -> None:
    assert numbers.percent(1.0) == "100 %"
    assert numbers.percent(1 - 1e-7) == "> 99.99 %"
    assert numbers.percent(0.9994) == "99.94 %"
    assert numbers.percent(1e-6) == "0.00010 %"


def test_sizes_and_rates() -> None:
    assert numbers.size(999) == "999 B"
    assert numbers.size(10_000) == "10.0 kB"
    assert numbers.bit_rate(20e6) == "20.0 Mbit/s"
    assert numbers.p_value(1e-9) == "< 0.0001"
    assert numbers.evidence(2e7) == "> 10⁶"
    assert numbers.count(1234567) == "1,234,567"
