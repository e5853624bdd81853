from __future__ import annotations

import random

from trifecta.report.figures import scales


def test_ticks_lie_inside_and_are_few_enough() -> None:
    draw = random.Random(5)
    for _ in range(2_000):
        low = 10 ** draw.uniform(-9, 12)
        high = low * 10 ** draw.uniform(0.02, 6)
        ticks = scales.log_ticks(low, high, 6)
        assert 1 <= len(ticks) <= 7, (low, high)
        assert all(low * 0.999 <= tick <= high * 1.001 for tick in ticks)
        assert ticks == sorted(set(ticks))


def test_a_ratio_axis_always_has_one_and_its_labels_differ() -> None:
    draw = random.Random(6)
    for _ in range(2_000):
        values = [10 ** draw.uniform(-0.6, 0.6) for _ in range(3)]
        low, high = scales.ratio_limits(values, 0.05)
        assert low < min(values) and high > max(values)
        positions, labels = scales.ratio_ticks(low, high)
        assert "1" in labels
        assert len(labels) == len(set(labels)) == len(positions)


def test_labels_carry_the_unit_that_fits() -> None:
    assert [scales.time_label(value) for value in (0, 500, 2_500, 1.5e6, 2e9)] == [
        "0",
        "500 ns",
        "2.5 µs",
        "1.5 ms",
        "2 s",
    ]
    assert [scales.rate_label(value) for value in (0, 2_500, 20_000)] == ["0", "2,500", "20k"]
    assert scales.linear_ticks(0) == [0.0]
    assert scales.linear_ticks(90e6, 5) == [0, 20e6, 40e6, 60e6, 80e6]
