"""Sentences on services: what is said of verdicts along a factor, and what is not."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from trifecta.analysis.scaling import Axis, Step
from trifecta.analysis.success import Difference
from trifecta.conclude.comparisons import Comparison
from trifecta.conclude.services.rows import CombinationRow
from trifecta.design.metrics import METRICS
from trifecta.report.services import words

PAIR = ("h3", "h2")
FACTOR = {"faster": 1.2, "slower": 1.3, "same": 1.0, "undecided": 1.1}


METRIC = "latency_p50_ns"


def said(*kinds: str, texts: tuple[str, ...] = ("4", "50", "200", "1000")) -> str:
    steps = tuple(Step(float(text), text, text) for text, _ in zip(texts, kinds, strict=False))
    found = [
        Comparison(
            step.cell, *PAIR, kind, {"metric": METRIC, "factor": FACTOR[kind], "factor_low": 0.99, "factor_high": 1.41}
        )
        for step, kind in zip(steps, kinds, strict=True)
    ]
    return words.along(Axis("clients", "", steps), PAIR, found)


@pytest.mark.parametrize(
    ("kinds", "sentence"),
    [
        (
            ("faster", "slower"),
            "HTTP/3 against HTTP/2: stops winning between 4 clients (1.20× faster [0.99, 1.41]) and 50 clients "
            "(1.30× slower [0.99, 1.41]).",
        ),
        (
            ("slower", "undecided", "faster"),
            "HTTP/3 against HTTP/2: starts to win between 4 clients (1.30× slower [0.99, 1.41]) and 200 clients "
            "(1.20× faster [0.99, 1.41]), undecided at 50 clients.",
        ),
        (
            ("same", "slower", "slower", "undecided"),
            "HTTP/3 against HTTP/2: goes from same to slower between 4 clients (same [0.99, 1.41]) and 50 clients "
            "(1.30× slower [0.99, 1.41]), but the two ratios are not told apart; undecided at 1000 clients.",
        ),
        (
            ("faster", "faster", "undecided"),
            "HTTP/3 is faster than HTTP/2 from 4 clients (1.20× [0.99, 1.41]) to 50 clients (1.20× [0.99, 1.41]); "
            "undecided at 200 clients.",
        ),
        (
            ("undecided", "same"),
            "HTTP/3 is the same as HTTP/2 at 50 clients ([0.99, 1.41]); undecided at 4 clients.",
        ),
        (("undecided", "undecided"), "Whether HTTP/3 or HTTP/2 is faster is undecided from 4 clients to 50 clients."),
        (("faster",), ""),
    ],
)
def test_along_a_factor(kinds: tuple[str, ...], sentence: str) -> None:
    assert said(*kinds) == sentence


@pytest.mark.parametrize(
    ("same", "faster", "start"),
    [
        # 2 % faster at both: one is decided by its margin, the other by its direction, and nothing starts.
        ((0.955, 1.01), (0.962, 0.995), "goes from same to faster between"),
        ((0.955, None), (None, 0.995), "goes from same to faster between"),
        ((0.96, 1.03), (0.7, 0.9), "starts to win between"),
    ],
)
def test_nothing_starts_between_two_verdicts_that_one_ratio_fits(
    same: tuple[float | None, float | None], faster: tuple[float | None, float | None], start: str
) -> None:
    steps = (Step(4.0, "4", "4"), Step(50.0, "50", "50"))
    found = [
        Comparison(
            step.cell,
            *PAIR,
            kind,
            {
                "metric": METRIC,
                "factor": 1.02,
                "factor_low": 1.0,
                "factor_high": 1.1,
                "family_low": low,
                "family_high": high,
            },
        )
        for step, kind, (low, high) in zip(steps, ("same", "faster"), (same, faster), strict=True)
    ]
    sentence = words.along(Axis("clients", "", steps), PAIR, found)
    assert start in sentence
    assert ("not told apart" in sentence) == (start != "starts to win between")
    turned = words.along(Axis("clients", "", steps), PAIR, [replace(found[1], cell="4"), replace(found[0], cell="50")])
    assert ("stops winning" in turned) == (start == "starts to win between")


@pytest.mark.parametrize(
    ("kinds", "tail"),
    [
        ([["faster", "slower"], ["same", "same"]], "changes in 1 of 2 places."),
        ([["faster", "faster"], ["same", "same"]], "changes nowhere."),
        ([["undecided", "undecided"], ["same", "undecided"]], "may change or not: in no place are two levels decided."),
        (
            [["faster", "faster"], ["same", "undecided"]],
            "changes nowhere; in 1 place fewer than two levels are decided.",
        ),
    ],
)
def test_a_verdict_that_is_open_is_not_one_that_stays(kinds: list[list[str]], tail: str) -> None:
    assert words.turning("clients", PAIR, kinds) == f"Along the clients the verdict of HTTP/3 against HTTP/2 {tail}"


def test_from_path_to_path() -> None:
    found = {"normal": ["slower", "same"], "lag": ["faster", "faster"], "far": ["faster"]}
    assert words.everywhere(PAIR, found, METRICS[METRIC]) == (
        "From path to path, HTTP/3 against HTTP/2 is partly slower and partly the same on normal; faster on lag "
        "and far."
    )
    assert words.everywhere(PAIR, {"normal": ["faster"]}, METRICS[METRIC]) == ""


def row(rate: float, failed: int) -> dict[str, object]:
    counts = {"requests": 100, "failed": failed, "excluded_requests": 0, "excluded_failed": 0}
    return counts | {"arm": "h3", "rate": rate, "low": rate - 0.01, "high": rate + 0.01}


def test_fewer_failures_are_claimed_only_when_they_are_shown() -> None:
    rows = [row(0.97, 3)]
    shown = {PAIR: Difference(-0.02, -0.03, -0.01, 0.004, 9)}
    assert "HTTP/3 failed more often than HTTP/2, by 2 percentage points [1, 3]" in words.success(rows, shown, 0.05)[2]
    for open_one in (Difference(-0.02, -0.05, 0.01, 0.2, 9), Difference(-0.02, None, None, 1.0, 1), None):
        said = words.success(rows, {PAIR: open_one}, 0.05)
        assert said[2] == "Which fails less often is not decided between HTTP/3 and HTTP/2."
    assert words.success([], {}, 0.05) == ["No request of a valid trial was counted."]


@pytest.mark.parametrize(
    ("low", "p_holm", "said"),
    [
        (1.01, 0.03, "all hops 1.03 × [1.01, 1.05]."),
        (1.01, 0.08, "all hops 1.03 × [1.01, 1.05] (not shown to differ, all comparisons of the place considered)."),
        (0.99, 0.50, "all hops 1.03 × [0.99, 1.05] (not shown to differ)."),
        (None, None, "all hops 1.03 × [no interval] (not shown to differ)."),
    ],
)
def test_what_differs_by_itself_only_is_told_from_what_does_not(
    low: float | None, p_holm: float | None, said: str
) -> None:
    nothing = {"cell": "path=far", "rank": "1–2", "value": 1.0, "low": 1.0, "high": 1.0, "blocks": 8}
    own = nothing | {"edge": "h2", "inside": "h2", "ratio": None, "ratio_low": None, "ratio_high": None, "p_holm": None}
    high = None if low is None else 1.05
    all_hops = {"edge": "h3", "inside": "h3", "ratio": 1.03, "ratio_low": low, "ratio_high": high, "p_holm": p_holm}
    rows = cast(list[CombinationRow], [own, nothing | all_hops])
    assert words.mixed(rows, "h2", 0.05, "median service time")[1].endswith(said)
