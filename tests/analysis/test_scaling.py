"""Along a factor, among combinations of protocols, and paths that differ in order alone."""

from __future__ import annotations

import math

import numpy as np
import pytest

from trifecta.analysis.mixing import combinations, normalised
from trifecta.analysis.reordering import reorders, variants
from trifecta.analysis.scaling import Turn, axes, number_of, verdict_changes


def test_an_axis_is_a_factor_in_one_place_in_rising_order() -> None:
    cells = {
        f"path={path},request={size},in_flight={n}": {"path": path, "request": size, "in_flight": n}
        for path in ("near", "far")
        for size in ("10 kB", "128 B")
        for n in ("8",)
    }
    found = axes(cells)
    assert [(one.factor, one.place) for one in found] == [
        ("request", "path=near,in_flight=8"),
        ("request", "path=far,in_flight=8"),
    ]
    assert [(step.text, step.value) for step in found[0].steps] == [("128 B", 128.0), ("10 kB", 10_000.0)]
    assert found[0].steps[0].cell == "path=near,request=128 B,in_flight=8"


@pytest.mark.parametrize(
    ("factor", "text", "number"),
    [("request", "1 KiB", 1024.0), ("in_flight", "50", 50.0), ("method", "GET", None), ("rate", "500/s", 500.0)],
)
def test_levels_as_numbers(factor: str, text: str, number: float | None) -> None:
    assert number_of(factor, text) == number


@pytest.mark.parametrize(
    ("kinds", "found"),
    [
        (["faster", "slower"], [Turn(0, 1)]),
        (["faster", "undecided", "slower"], [Turn(0, 2)]),
        (["undecided", "faster", "faster", "undecided"], []),
        (["slower", "same", "faster", "slower"], [Turn(0, 1), Turn(1, 2), Turn(2, 3)]),
        (["undecided", "undecided"], []),
        ([], []),
    ],
)
def test_an_undecided_level_widens_what_lies_between(kinds: list[str], found: list[Turn]) -> None:
    assert verdict_changes(kinds) == found


def test_the_best_combination_and_what_each_hop_is_worth() -> None:
    """A world in which HTTP/3 at the edge saves 30 % and inside costs 10 %."""
    rng = np.random.default_rng(1)
    truth = {(edge, inside): (0.7 if edge == "h3" else 1.0) * (1.1 if inside == "h3" else 1.0)
             for edge in ("h2", "h3") for inside in ("h2", "h3")}  # fmt: skip
    measured = {pair: math.log(value * 1e7) + 0.02 * rng.standard_normal(8) for pair, value in truth.items()}
    found = combinations(measured, "h2", 0.95, lower_is_better=True)
    assert (found[0].edge, found[0].inside, found[0].best, found[0].worst) == ("h3", "h2", 1, 1)
    assert [one.best for one in found] == [1, 2, 3, 4]
    to_baseline = {(one.edge, one.inside): one.to_baseline for one in found}
    edge, inside = to_baseline["h3", "h2"], to_baseline["h2", "h3"]
    assert edge is not None and edge.low is not None and edge.low < 0.7 < (edge.high or 0)
    assert inside is not None and inside.low is not None and inside.low > 1.05
    assert to_baseline["h2", "h2"] is None
    rates = combinations({pair: -logs for pair, logs in measured.items()}, "h2", 0.95, lower_is_better=False)
    assert (rates[0].edge, rates[0].inside) == ("h3", "h2")


def test_combinations_that_are_alike_share_their_places() -> None:
    rng = np.random.default_rng(2)
    claimed = 0
    for _ in range(200):
        pairs = [(edge, inside) for edge in ("h1", "h2", "h3") for inside in ("h1", "h2", "h3")]
        found = combinations({pair: 0.05 * rng.standard_normal(8) for pair in pairs}, "h2", 0.95, lower_is_better=True)
        claimed += any((one.best, one.worst) != (1, 9) for one in found)
    assert claimed <= 16


def test_without_the_baseline_there_is_no_contrast_and_a_dead_combination_is_last() -> None:
    measured = {("h3", "h3"): np.zeros(6), ("h1", "h1"): np.full(6, math.inf), ("h1", "h3"): np.empty(0)}
    found = combinations(measured, "h2", 0.95, lower_is_better=True)
    assert [(one.edge, one.mean.value) for one in found] == [("h3", 1.0), ("h1", None)]
    assert all(one.to_baseline is None for one in found)
    assert normalised("h3", "same") == ("h3", "h3")
    assert normalised("h3", "h2") == ("h3", "h2")
    assert normalised("h3", "h2+h2") == ("h3", "h2")
    assert normalised("h3", "h2+h1") == ("h3", "h2+h1")


def test_paths_that_differ_in_order_alone() -> None:
    def path(reorder: bool, sigma: int = 20) -> dict[str, object]:
        jitter = {"kind": "jitter", "distribution": "normal", "sigma_ns": sigma, "reorder": reorder}
        return {"rtt_ns": 100, "forward": [{"kind": "delay", "delay_ns": 50}, jitter], "backward": []}

    paths = {"normal": {}, "lag": path(True), "lag-in-order": path(False), "other": path(False, 30)}
    assert [name for name in paths if reorders(paths[name])] == ["lag"]
    assert variants(paths) == [("lag", "lag-in-order")]
    assert variants({"lag": path(True), "other": path(False, 30)}) == []
    sent_ahead = {"forward": [{"kind": "reorder", "probability": 0.1, "gap_ns": 1}]}
    assert variants({"ahead": sent_ahead, "normal": {"forward": []}}) == [("ahead", "normal")]
