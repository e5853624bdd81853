"""Quantities: every unit, both ways, and complaints that name the text and the units."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trifecta.design import quantity
from trifecta.design.quantity import QuantityError, QueueSize


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("80 ms", 80_000_000),
        ("80ms", 80_000_000),
        ("1.5 us", 1_500),
        ("1.5 µs", 1_500),
        ("2 min", 120_000_000_000),
        ("7 ns", 7),
        ("0", 0),
        ("1e3 s", 1_000_000_000_000),
    ],
)
def test_times(text, ns):
    assert quantity.parse_time_ns(text) == ns


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (quantity.parse_rate_bits_per_s, "20 Mbit/s", 20_000_000),
        (quantity.parse_rate_bits_per_s, "9.6 kbit/s", 9_600),
        (quantity.parse_size_bytes, "10 kB", 10_000),
        (quantity.parse_size_bytes, "1 KiB", 1_024),
        (quantity.parse_size_bytes, "1 MiB", 1_048_576),
        (quantity.parse_ratio, "2 %", 0.02),
        (quantity.parse_ratio, "0.02", 0.02),
        (quantity.parse_frequency_per_s, "30 k/s", 30_000.0),
        (quantity.parse_frequency_per_s, "500/s", 500.0),
        (quantity.parse_count, "1_000", 1_000),
        (quantity.parse_queue, "1 bdp", QueueSize(1, "bdp")),
        (quantity.parse_queue, "100 packets", QueueSize(100, "packets")),
        (quantity.parse_queue, "125 kB", QueueSize(125_000, "bytes")),
    ],
)
def test_other_quantities(parse, text, value):
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text", "parts"),
    [
        (quantity.parse_time_ns, "80", ["'80' has no unit", "ns, us, ms, s, min"]),
        (quantity.parse_time_ns, "80 kB", ["'kB' is not a unit of a time", "ns, us, ms, s, min"]),
        (quantity.parse_time_ns, "-1 ms", ["'-1 ms' is negative"]),
        (quantity.parse_time_ns, "soon", ["'soon' is not a time", "80 ms"]),
        (quantity.parse_time_ns, "1e999 s", ["1e999 s"]),
        (quantity.parse_rate_bits_per_s, "20 mbit/s", ["did you mean 'Mbit/s'?"]),
        (quantity.parse_rate_bits_per_s, "20 MB/s", ["'MB/s' is not a unit of a rate", "Mbit/s"]),
        (quantity.parse_size_bytes, "10 KB", ["did you mean 'kB'?"]),
        (quantity.parse_probability, "102 %", ["'102 %' is more than 100 %", "give 0 % to 100 %"]),
        (quantity.parse_count, "1.5", ["'1.5' is not a whole number"]),
        (quantity.parse_count, "-3", ["negative"]),
        (quantity.parse_queue, "0 packets", ["holds nothing"]),
        (quantity.parse_queue, "5 ms", ["'ms' is not a unit of a queue size", "packets, bdp"]),
        (quantity.parse_time_ns, True, ["True is not a time"]),
    ],
)
def test_complaints_name_the_text_and_the_units(parse, text, parts):
    with pytest.raises(QuantityError) as error:
        parse(text)
    for part in parts:
        assert part in str(error.value)


@given(st.integers(0, 2**62))
def test_formatting_loses_nothing(value):
    assert quantity.parse_time_ns(quantity.format_time(value)) == value
    assert quantity.parse_rate_bits_per_s(quantity.format_rate(value)) == value
    assert quantity.parse_size_bytes(quantity.format_size(value)) == value


@given(st.floats(0, 1, allow_nan=False))
def test_shares_read_back(value):
    assert quantity.parse_probability(quantity.format_ratio(value)) == pytest.approx(value, rel=1e-12)


def test_formats_are_the_ones_people_write():
    assert quantity.format_time(80_000_000) == "80 ms"
    assert quantity.format_time(1_500_000) == "1.5 ms"
    assert quantity.format_rate(20_000_000) == "20 Mbit/s"
    assert quantity.format_size(10_000) == "10 kB"
    assert quantity.format_ratio(0.02) == "2 %"
    assert str(QueueSize(1, "bdp")) == "1 bdp"


@given(st.text(max_size=30))
def test_any_text_is_a_quantity_or_a_complaint(text):
    for parse in (
        quantity.parse_time_ns,
        quantity.parse_rate_bits_per_s,
        quantity.parse_size_bytes,
        quantity.parse_probability,
        quantity.parse_frequency_per_s,
        quantity.parse_count,
        quantity.parse_queue,
    ):
        with contextlib.suppress(QuantityError):
            parse(text)
