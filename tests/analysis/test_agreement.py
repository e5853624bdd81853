"""Two reproductions beside each other: what agrees, what does not, and how often two sessions would contradict."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis.test_published import claim, place
from trifecta.analysis import agreement
from trifecta.analysis.intervals import linear
from trifecta.analysis.judging import CONFIRMED, OPEN, between_sessions, judge
from trifecta.analysis.published import evaluate
from trifecta.analysis.statements import Assertion


def said(name: str, state: str, ratio: float | None = 1.2, reach: float = 0.02, **more: Any) -> dict[str, Any]:
    ends = {"low": None, "high": None} if ratio is None else {"low": ratio - reach, "high": ratio + reach}
    about = {"id": name, "kind": "claim", "text": f"Text of {name}.", "metric": "latency_p50_ns", "is": "above"}
    return {**about, "state": state, "form": "ratio", "ratio": ratio, "blocks": 6, "published": None, **ends, **more}


STATES = ("confirmed", "contradicted", "open")


@pytest.mark.parametrize(
    ("first", "second", "relation"),
    [
        ("confirmed", "confirmed", agreement.SAME),
        ("contradicted", "contradicted", agreement.SAME),
        ("confirmed", "contradicted", agreement.DIFFERS),
        ("contradicted", "confirmed", agreement.DIFFERS),
        ("same direction, other size", "same direction, other size", agreement.SAME),
        ("confirmed", "same direction, other size", agreement.DIFFERS),
        ("confirmed", "open", agreement.ONLY_FIRST),
        ("open", "contradicted", agreement.ONLY_SECOND),
        ("open", "open", agreement.OPEN_IN_BOTH),
    ],
)
def test_what_both_decided_agrees_or_differs(first: str, second: str, relation: str) -> None:
    pairs = agreement.compare([said("a", first)], [said("a", second)])
    assert [one.relation for one in pairs] == [relation]
    assert agreement.agree(pairs) == (relation != agreement.DIFFERS)


def test_statements_of_one_name_about_other_cells_do_not_contradict_each_other() -> None:
    """A claim about containers on a bridge, and of that name about those on the host's network."""
    pairs = agreement.compare([said("a", "confirmed")], [said("a", "contradicted", defined="0123456789ab")])
    assert [one.relation for one in pairs] == [agreement.ANOTHER]
    assert agreement.agree(pairs) and agreement.count_relations(pairs)[agreement.ANOTHER] == 1
    same = [said("a", state, defined="0123456789ab") for state in ("confirmed", "contradicted")]
    assert [one.relation for one in agreement.compare(same[:1], same[1:])] == [agreement.DIFFERS]


def test_a_statement_of_one_side_only_is_listed_and_what_neither_compares_is_not() -> None:
    first = [said("a", "confirmed"), said("b", "not compared"), said("c", "not compared")]
    second = [said("c", "open"), said("d", "contradicted"), said("b", "not compared")]
    pairs = {one.id: one for one in agreement.compare(first, second)}
    assert set(pairs) == {"a", "c", "d"}
    assert pairs["a"].second is None
    assert pairs["a"].relation == agreement.ONLY_FIRST
    assert pairs["d"].relation == agreement.ONLY_SECOND
    assert pairs["c"].relation == agreement.OPEN_IN_BOTH


def test_another_statement_of_the_same_name_is_said() -> None:
    pairs = agreement.compare([said("a", "confirmed")], [said("a", "contradicted", published=2.0, metric="rss_bytes")])
    assert pairs[0].changed == ("metric", "published")


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from(STATES)), max_size=9),
       st.lists(st.tuples(st.integers(0, 9), st.sampled_from(STATES)), max_size=9))  # fmt: skip
def test_every_statement_has_one_relation_whichever_comes_first(one: list[Any], other: list[Any]) -> None:
    sides = [[said(str(number), state) for number, state in dict(side).items()] for side in (one, other)]
    there, back = agreement.compare(sides[0], sides[1]), agreement.compare(sides[1], sides[0])
    assert {pair.id for pair in there} == {pair.id for pair in back} == {row["id"] for side in sides for row in side}
    assert agreement.agree(there) == agreement.agree(back)
    assert sum(agreement.count_relations(there).values()) == len(there)


def test_how_far_sessions_lie_apart_is_told_from_what_blocks_vary_by() -> None:
    rng = np.random.default_rng(4)

    def session(between: float) -> list[dict[str, Any]]:
        made = []
        for number in range(400):
            middle, error = 0.5 + rng.normal(0, between), 0.01
            value = middle + rng.normal(0, error)
            reach = 2.5706 * error  # t of five degrees of freedom
            ends = {"ratio": math.exp(value), "low": math.exp(value - reach), "high": math.exp(value + reach)}
            made.append(said(str(number), "confirmed") | ends)
        return made

    alike = agreement.session_spread(agreement.compare(session(0.0), session(0.0)))
    apart = agreement.session_spread(agreement.compare(session(0.03), session(0.03)))
    assert alike is not None
    assert apart is not None
    assert alike.count == 400
    assert alike.between < 0.006
    assert apart.between == pytest.approx(0.03, rel=0.25)
    assert apart.most > apart.median > alike.median
    assert agreement.session_spread(agreement.compare([said("a", "open", None)], [said("a", "open", None)])) is None


# ------------------------------------------------------------------ how often two sessions contradict each other


def sessions_of(truth: float, noise: float, says: Assertion, guard: float, times: int = 1500) -> list[tuple[str, str]]:
    """What two runs of six blocks say to one statement, on two days of the same truth."""
    rng = np.random.default_rng(8)
    found = []
    for _ in range(times):
        states = []
        for _ in range(2):
            day = math.log(truth) + rng.normal(0, between_sessions(says))
            estimate = linear([(1.0, day + rng.normal(0, noise, 6))], 0.95)
            states.append(judge(says, estimate, 0.05, guard)[0])
        found.append((states[0], states[1]))
    return found


SAYS = Assertion("latency_p50_ns", ("h3",), ("h2",), "above")
HALF = Assertion("latency_p50_ns", ("h3",), ("h2",), "about", size=(0.5, 0.5))


def contradictions(found: list[tuple[str, str]]) -> float:
    return sum(OPEN not in one and one[0] != one[1] for one in found) / len(found)


@pytest.mark.parametrize("noise", [0.0005, 0.005, 0.05])
@pytest.mark.parametrize(("says", "truth"), [(SAYS, 1.05), (HALF, 0.625), (HALF, 0.4)])
def test_at_the_very_edge_two_sessions_hardly_ever_contradict_each_other(
    says: Assertion, truth: float, noise: float
) -> None:
    """The worst there is: a truth as large as the margin, blocks that vary by less than sessions do."""
    found = sessions_of(truth, noise, says, between_sessions(says))
    assert contradictions(found) <= 0.01


def test_without_the_guard_they_would() -> None:
    """What the guard is for: intervals of a few hundredths of a per cent are right about one morning only."""
    assert contradictions(sessions_of(1.05, 0.0005, SAYS, 0.0)) > 0.3


@pytest.mark.parametrize("truth", [1.02, 1.05, 1.08, 1.2])
def test_over_all_distances_from_the_margin(truth: float) -> None:
    found = sessions_of(truth, 0.01, SAYS, between_sessions(SAYS), times=600)
    assert contradictions(found) <= 0.005
    if truth == 1.2:  # and what is far from it is decided all the same
        assert found.count((CONFIRMED, CONFIRMED)) == 600


def test_a_claim_about_many_cells_and_two_references_does_not_turn_either() -> None:
    """Cells of a session move together; against each of two references at half the error."""
    rng = np.random.default_rng(11)
    highest = claim({"arm": "h3", "to": ["h1", "h2"], "is": "above"})
    found = []
    for pair in range(120):
        states = []
        for run in range(2):
            day = math.exp(rng.normal(0, between_sessions(SAYS)))
            cells = [
                place({"h3": 1.05 * day}, noise=0.005, seed=100 * pair + 10 * run + cell, request=str(cell))
                for cell in range(4)
            ]
            states.append(evaluate(highest, cells).state)
        found.append((states[0], states[1]))
    assert contradictions(found) <= 1 / 120


def test_what_sessions_could_turn_is_open_and_says_so() -> None:
    estimate = linear([(1.0, np.log([1.0579, 1.058, 1.0581, 1.058, 1.0579, 1.0581]))], 0.95)
    assert judge(SAYS, estimate, 0.05)[0] == CONFIRMED
    state, reason = judge(SAYS, estimate, 0.05, between_sessions(SAYS))
    assert state == OPEN
    assert "confirmed here, but by less than sessions differ (2.0 %)" in reason


def test_counts_and_shares_have_no_guard_and_octets_a_small_one() -> None:
    assert between_sessions(Assertion("tcp_connections", ("h1",), ("h2",), by_difference=True)) == 0
    assert between_sessions(Assertion("wire_bytes", ("h3",), ("h2",))) < 0.01 / 2  # half of its margin
    assert between_sessions(SAYS) < math.log(1.05) / 2


# ------------------------------------------------------------------ levels that two runs have, one after the other


def two_runs_of(drift: float, truth: float, *, one_run: bool, seed: int) -> str:
    """What a session says to "four hosts take longer than one", each six blocks, at levels that drift by so much."""
    rng = np.random.default_rng(seed)
    runs = ["single", "single" if one_run else "distributed"]
    day = rng.normal(0, drift, 2) * (not one_run)
    cells = [
        place(
            {"h3": level * math.exp(day[number])},
            noise=0.02,
            seed=2 * seed + number,
            run=runs[number],
            spread=0.0,
            hosts=hosts,
        )
        for number, (level, hosts) in enumerate(((1.0, "1"), (truth, "4")))
    ]
    return evaluate(claim({"arm": "h3", "at": {"hosts": "4"}, "against": {"hosts": "1"}, "is": "above"}), cells).state


def test_two_runs_that_drift_hardly_ever_contradict_each_other() -> None:
    """A run drifts by 10 % to the next, as measured: at the margin, and where there is no effect at all."""
    for truth in (1.0, 1.05):
        states = [two_runs_of(0.1, truth, one_run=False, seed=seed) for seed in range(300)]
        pairs = list(zip(states[::2], states[1::2], strict=True))
        assert contradictions(pairs) <= 0.01, truth


def test_cells_of_one_run_and_large_effects_are_decided_all_the_same() -> None:
    assert two_runs_of(0.0, 1.2, one_run=True, seed=1) == CONFIRMED
    assert two_runs_of(0.0, 1.2, one_run=False, seed=1) == OPEN
    assert two_runs_of(0.1, 2.0, one_run=False, seed=1) == CONFIRMED


def test_ratios_of_a_block_keep_their_guard_in_two_runs() -> None:
    says = Assertion("latency_p50_ns", ("h3",), ("h2",), "above", at={"hosts": "4"}, against={"hosts": "1"})
    assert between_sessions(says, apart=True) == between_sessions(says)
    levels = Assertion("latency_p50_ns", ("h3",), (), "above", at={"hosts": "4"}, against={"hosts": "1"})
    assert between_sessions(levels, apart=True) > 10 * between_sessions(levels)
