"""A published sentence put to the cells of an experiment: where it is true, and which cells are told together."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from trifecta.analysis.conditions import Cell, Test, branches, changes, estimates, put
from trifecta.analysis.intervals import Estimate

HALF, SLOWER, SAME = Test("about", 0.5), Test("above"), Test("same")


def found(low: float | None, high: float | None, blocks: int = 6) -> Estimate:
    logs = [None if end is None else math.log(end) for end in (low, high)]
    middle = None if None in logs else sum(one for one in logs if one is not None) / 2
    return Estimate(middle, logs[0], logs[1], blocks)


@pytest.mark.parametrize(
    ("test", "low", "high", "truth"),
    [
        (HALF, 0.45, 0.55, "true"),
        (HALF, 0.65, 0.70, "false"),
        (HALF, 0.60, 0.70, "open"),
        (HALF, 0.10, 0.20, "further"),
        (HALF, 1.10, 1.20, "false"),
        (Test("about", 5.0), 7.0, 9.0, "further"),
        (Test("about", 5.0), 1.0, 2.0, "false"),
        (SLOWER, 1.06, 1.20, "true"),
        (SLOWER, 1.01, 1.20, "open"),
        (SLOWER, 0.98, 1.02, "false"),
        (SAME, 0.98, 1.02, "true"),
        (SAME, 1.10, 1.20, "false"),
        (SAME, None, None, "open"),
    ],
)
def test_a_sentence_is_true_false_or_open(test: Test, low: float | None, high: float | None, truth: str) -> None:
    assert put(test, found(low, high), 0.05) == truth
    assert put(None, found(low, high), 0.05) is None


def test_the_band_of_a_sentence() -> None:
    assert HALF.band(0.05) == (0.4, 0.625)
    assert SLOWER.band(0.05) == (1.05, None)
    assert Test("below").band(0.25) == (None, 0.8)


def test_intervals_of_an_experiment_hold_together() -> None:
    """Of 12 cells without any effect all intervals hold 1 in 95 % of experiments; alone they would in about half."""
    rng = np.random.default_rng(1)
    whole = 0
    for _ in range(400):
        made = estimates([rng.normal(0, 0.1, 5) for _ in range(12)], 0.95)
        whole += all(one.low is not None and one.high is not None and one.low <= 0 <= one.high for one in made)
    assert 0.92 < whole / 400 < 0.985
    alone = estimates([np.array([0.1, 0.2, 0.3])], 0.95)[0]
    beside = estimates([np.array([0.1, 0.2, 0.3]), np.array([]), np.array([1.0])], 0.95)[0]
    assert alone == beside  # cells without an interval take no share


def cell(path: str, connection: str, ratio: float | None, truth: str, experiment: str = "trips") -> Cell:
    levels = {"path": path, "connection": connection, "server": "origin"}
    return Cell(experiment, f"path={path},connection={connection}", levels, ratio, None, None, 3, (None, truth))  # type: ignore[arg-type]


def test_cells_that_say_the_same_stand_together() -> None:
    cells = [
        cell("10 ms", "new", 0.6, "open"),
        cell("40 ms", "new", 0.50, "true"),
        cell("70 ms", "new", 0.51, "true"),
        cell("40 ms", "reused", 1.0, "false"),
        cell("70 ms", "reused", None, "open"),  # no block counts: it says nothing
    ]
    assert changes(cells) == ["path", "connection"]  # not the server: it is the same everywhere
    made = branches(cells, 1)
    assert [(one.truth, dict(one.levels), one.along) for one in made] == [
        ("open", {"connection": "new"}, ("10 ms",)),
        ("true", {"connection": "new"}, ("40 ms", "70 ms")),
        ("false", {"connection": "reused"}, ("40 ms",)),
    ]
    assert made[1].ratios == (0.50, 0.51)
    assert branches(cells, 0) == []  # that side has no test
    assert replace(made[1], cells=()).ratios is None
