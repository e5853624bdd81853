"""Looks: however blocks are added, a statement is confirmed or contradicted falsely in at most 5 % of campaigns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis.test_published import H3_SLOWER, claim, place
from trifecta.analysis import predictive_power
from trifecta.analysis.deciding import Rule, Sample, decide
from trifecta.analysis.interim_looks import blocks_at, confidence_at, look_at, look_of
from trifecta.analysis.judging import CONFIRMED, CONTRADICTED, OPEN
from trifecta.analysis.places import Place
from trifecta.analysis.published import Evaluation, evaluate

LOOKS = 8  # 6 to 108 blocks
# Without the guard of sessions, which makes everything rarer: what is compared by its difference has none.
MORE = {"metric": "tcp_connections", "arm": "h3", "to": "h2", "is": "above", "margin": 1.0}


def looking(one: Place, first: int = 6) -> Place:
    """A cell whose blocks are added by looking."""
    done = 1 + max(int(row["block"]) for row in one.rows)
    return Place(**{**vars(one), "first": first, "done": done})


def test_looks_are_set_in_advance_and_share_the_error() -> None:
    assert [blocks_at(6, look) for look in range(1, 7)] == [6, 9, 14, 21, 32, 48]
    assert sum(1 - confidence_at(0.95, look) for look in range(1, 1000)) <= 0.05
    assert confidence_at(0.95, 1) == pytest.approx(0.975)


@given(st.integers(1, 30), st.integers(0, 500))
def test_the_last_look_that_has_blocks_enough(first: int, done: int) -> None:
    look = look_of(first, done)
    assert look == 0 or blocks_at(first, look) <= done
    assert blocks_at(first, look + 1) > done


def test_a_look_judges_its_first_blocks_whatever_came_since() -> None:
    long = place({"h3": 1.5}, blocks=13)
    at_nine = evaluate(
        claim(H3_SLOWER), [looking(Place(**{**vars(long), "rows": [r for r in long.rows if r["block"] < 9]}))]
    )
    at_thirteen = evaluate(claim(H3_SLOWER), [looking(long)])
    assert (at_thirteen.look, at_thirteen.blocks) == (2, 9)
    assert (at_nine.low, at_nine.high) == (at_thirteen.low, at_thirteen.high)
    assert at_nine.rule is not None and at_nine.rule.confidence == pytest.approx(1 - 0.05 / 6)


def test_all_cells_wait_for_the_one_with_the_fewest_looks() -> None:
    cells = [looking(place({"h3": 1.5}, blocks=blocks, request=str(blocks))) for blocks in (6, 14)]
    assert look_at(cells) == 1
    assert evaluate(claim(H3_SLOWER), cells).blocks == 6
    early = looking(place({"h3": 1.5}, blocks=4))
    assert evaluate(claim(H3_SLOWER), [early]).state == OPEN
    assert "not over" in evaluate(claim(H3_SLOWER), [early]).reason


def test_blocks_that_were_set_in_advance_are_judged_as_ever() -> None:
    one = evaluate(claim(H3_SLOWER), [place({"h3": 1.5})])
    assert one.look == 0 and one.rule == Rule(0.05, 0.95)


def adaptive(truth: float, rng: np.random.Generator, *, corrected: bool) -> tuple[str, bool]:
    """A campaign that goes on until it is decided: how it ended, and whether its last interval holds the truth."""
    says = claim(MORE).says
    assert says is not None
    values = truth + rng.normal(0, 1, blocks_at(6, LOOKS))
    for look in range(1, LOOKS + 1):
        sample = Sample("run", "cell", "", (tuple(values[: blocks_at(6, look)]),))
        rule = Rule(0.05, confidence_at(0.95, look) if corrected else 0.95)
        one = decide(says, [sample], "h2", rule)
        if one.state != OPEN:
            break
    low, high = one.pooled.low, one.pooled.high
    assert low is not None and high is not None
    return one.state, low <= truth <= high


def test_a_claim_at_its_margin_is_decided_falsely_in_at_most_5_percent_of_adaptive_campaigns() -> None:
    rng = np.random.default_rng(3)
    found = [adaptive(1.0, rng, corrected=True) for _ in range(1500)]
    states = [state for state, _ in found]
    assert sum(state != OPEN for state in states) / 1500 <= 0.05
    assert sum(covered for _, covered in found) / 1500 >= 0.95
    assert states.count(CONTRADICTED) > 0  # and it can err: the simulation has teeth
    plainly = [adaptive(1.0, rng, corrected=False)[0] for _ in range(1500)]
    assert sum(state != OPEN for state in plainly) / 1500 > 0.10


@pytest.mark.parametrize("truth", [0.0, 0.7, 1.3, 2.5])
def test_the_interval_at_which_it_stopped_covers_nominally(truth: float) -> None:
    rng = np.random.default_rng(4)
    assert sum(adaptive(truth, rng, corrected=True)[1] for _ in range(800)) / 800 >= 0.95


def test_it_holds_where_cells_get_blocks_one_by_one_because_of_what_they_say() -> None:
    """The cell that looks least like the claim gets more blocks, until the claim is decided: the worst of rules."""
    rng, wrong, sims = np.random.default_rng(5), 0, 250
    for _ in range(sims):
        values = {cell: 1.0 + rng.normal(0, 1, 32) for cell in ("a", "b")}
        done = dict.fromkeys(values, 6)
        state = OPEN
        while state == OPEN and min(done.values()) < 32:
            cells = [differences(values[cell][: done[cell]], cell) for cell in values]
            state = evaluate(claim(MORE), cells).state
            least = min((cell for cell in done if done[cell] < 32), key=lambda cell: values[cell][: done[cell]].mean())
            done[least] = min(32, math.ceil(done[least] * 1.5))
        wrong += state != OPEN
    assert wrong / sims <= 0.05


def differences(values: np.ndarray[Any, Any], cell: str) -> Place:
    rows: list[Any] = []
    for block, value in enumerate(values):
        rows += [{"arm": "h2", "block": block, "tcp_connections": 0.0}]
        rows += [{"arm": "h3", "block": block, "tcp_connections": float(value)}]
    return looking(Place("run", f"request={cell}", {"kind": "chain", "request": cell}, rows))


# ------------------------------------------------------------------ what blocks are worth


def judged(truth: float, noise: float, blocks: int = 6, **says: Any) -> Evaluation:
    return evaluate(claim({**H3_SLOWER, **says}), [looking(place({"h3": truth}, noise=noise, blocks=blocks, seed=3))])


def test_chances_grow_with_blocks_and_are_small_at_the_margin() -> None:
    clear, near = judged(1.25, 0.2), judged(1.06, 0.03)
    assert clear.state == near.state == OPEN
    chances = [predictive_power.chance(clear, 6, look) for look in range(2, 9)]
    assert chances[0] < chances[3] < chances[-1] and chances[-1] > 0.6
    assert predictive_power.chance(near, 6, 4) < 0.5


def test_forecasts_hold_about_as_often_as_they_say() -> None:
    """Of claims with a chance of 30 to 70 % at the third look from there, about half are decided then."""
    rng, hopes, came = np.random.default_rng(9), [], []
    for seed in range(400):
        whole = place({"h3": 1.05 * math.exp(rng.normal(0, 0.12))}, noise=0.12, blocks=21, seed=seed)
        now = evaluate(
            claim(H3_SLOWER), [looking(Place(**{**vars(whole), "rows": [r for r in whole.rows if r["block"] < 6]}))]
        )
        share = predictive_power.chance(now, 6, 4)
        if now.state == OPEN and 0.3 <= share <= 0.7:
            hopes.append(share)
            came.append(evaluate(claim(H3_SLOWER), [looking(whole)]).state != OPEN)
    assert len(hopes) > 30
    assert sum(came) / len(came) == pytest.approx(sum(hopes) / len(hopes), abs=0.2)


def test_what_depends_on_the_place_or_has_no_block_is_no_use() -> None:
    cells = [looking(place({"h3": factor}, seed=seed, request=str(seed))) for seed, factor in enumerate((1.6, 0.8))]
    parted = evaluate(claim(H3_SLOWER), cells)
    assert parted.depends and "depends on the place" in predictive_power.no_use(parted)
    assert predictive_power.chance(parted, 6, 3) == 0
    nothing = evaluate(claim({**H3_SLOWER, "metric": "rss_bytes"}), cells[:1])
    assert predictive_power.no_use(nothing) == "not measured in its cells: memory"
    assert predictive_power.no_use(judged(1.25, 0.2)) == ""


def test_a_rate_that_is_whole_takes_more_trials() -> None:
    one = evaluate(claim({"metric": "success_rate", "arm": "h3", "is": "whole"}), [looking(place())])
    assert one.state == OPEN and predictive_power.no_use(one) == ""
    chances = [predictive_power.chance(one, 6, look) for look in range(2, 16)]
    assert 0 < chances[0] < 1 and chances[-1] == 1.0
    assert evaluate(claim(H3_SLOWER), [looking(place({"h3": 1.5}, noise=0.01))]).state == CONFIRMED
