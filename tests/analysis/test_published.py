"""Published statements: how they are read, and how often what was measured confirms what is not so."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trifecta.analysis.intervals import Estimate, linear
from trifecta.analysis.judging import CONFIRMED, CONTRADICTED, NOT_COMPARED, OPEN, OTHER_SIZE, judge
from trifecta.analysis.published import Place, evaluate, matching
from trifecta.analysis.statements import Assertion, Statement, parse

ARMS = ("h1", "h2", "h2#aa", "h3")


def place(
    effects: dict[str, float] | None = None,
    *,
    noise: float = 0.02,
    blocks: int = 6,
    seed: int = 1,
    metric: str = "latency_p50_ns",
    run: str = "run",
    spread: float = 0.2,
    **levels: str,
) -> Place:
    """A cell whose arms are these factors of 1 ms, each block with weather of its own (``spread``, a log)."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for block in range(blocks):
        weather = rng.normal(0, spread)
        for arm in ARMS:
            factor = (effects or {}).get(arm.removesuffix("#aa"), 1.0)
            value = 1e6 * factor * math.exp(weather + rng.normal(0, noise))
            rows.append({"arm": arm, "block": block, metric: value, "requests": 100, "succeeded": 100})
    there = {"kind": "chain", **levels}
    cell = ",".join(f"{name}={level}" for name, level in there.items())
    return Place(run, cell, there, rows, trials=len(rows))


def claim(says: dict[str, Any], where: dict[str, Any] | None = None, **more: Any) -> Statement:
    one = {
        "id": "x",
        "text": "A text.",
        "where": where or {"kind": "chain"},
        "says": {"metric": "latency_p50_ns", **says},
    }
    document = {"id": "s", "title": "", "year": 1, "stack": "", "facts": "", "baseline": "h2", "claims": [one | more]}
    return parse(document).statements[0]


H3_SLOWER = {"arm": "h3", "to": "h2", "is": "above"}


# ------------------------------------------------------------------ judging


@pytest.mark.parametrize(
    ("low", "high", "relation", "state"),
    [
        (1.1, 1.3, "above", CONFIRMED),
        (1.1, 1.3, "below", CONTRADICTED),
        (0.8, 0.9, "below", CONFIRMED),
        (0.8, 0.9, "above", CONTRADICTED),
        (0.97, 1.03, "above", CONTRADICTED),
        (1.01, 1.04, "above", CONTRADICTED),
        (1.02, 1.2, "above", OPEN),
        (0.9, 1.2, "above", OPEN),
        (None, None, "above", OPEN),
        (1.2, None, "above", CONFIRMED),
        (0.97, 1.03, "same", CONFIRMED),
        (1.06, 1.2, "same", CONTRADICTED),
        (1.03, 1.2, "same", OPEN),
    ],
)
def test_an_interval_confirms_contradicts_or_leaves_open(
    low: float | None, high: float | None, relation: Any, state: str
) -> None:
    ends = [None if end is None else math.log(end) for end in (low, high)]
    says = Assertion("latency_p50_ns", ("h3",), ("h2",), relation)
    assert judge(says, Estimate(0.0, ends[0], ends[1], 6), 0.05)[0] == state


@pytest.mark.parametrize(
    ("low", "high", "state", "word"),
    [
        (0.45, 0.55, CONFIRMED, "size agree"),
        (0.64, 0.70, OTHER_SIZE, "not so far"),
        (0.20, 0.30, OTHER_SIZE, "further"),
        (0.96, 1.04, CONTRADICTED, "no such difference"),
        (1.5, 1.6, CONTRADICTED, "other side"),
        (0.50, 0.70, OPEN, "how far is open"),
        (0.30, 1.50, OPEN, "across"),
    ],
)
def test_about_half_is_neither_a_quarter_nor_two_thirds(low: float, high: float, state: str, word: str) -> None:
    says = Assertion("latency_p50_ns", ("h3",), ("h2",), "about", size=(0.5, 0.5))
    told, reason = judge(says, Estimate(0.0, math.log(low), math.log(high), 6), 0.05)
    assert told == state
    assert word in reason


@pytest.mark.parametrize(
    ("low", "high", "state", "word"),
    [
        (1.1, 1.3, OTHER_SIZE, "not so far"),
        (8, 9, OTHER_SIZE, "further"),
        (0.96, 1.04, CONTRADICTED, "no such"),
        (0.2, 0.3, CONTRADICTED, "other side"),
    ],
)
def test_about_five_times_is_said_the_other_way_round(low: float, high: float, state: str, word: str) -> None:
    says = Assertion("requests_per_s", ("h3",), ("h2",), "about", size=(5.0, 5.0))
    told, reason = judge(says, Estimate(0.0, math.log(low), math.log(high), 6), 0.05)
    assert told == state
    assert word in reason


@pytest.mark.parametrize(
    ("published", "low", "high", "state", "word"),
    [
        (20, 265, 277, OTHER_SIZE, "further"),  # the fan-in's lag, 271 times where 20 was said
        (1.5, 29, 32, OTHER_SIZE, "further"),
        (1.66, 1.11, 1.13, OTHER_SIZE, "not so far"),  # the range of HTTP/3's progression
        (20, 17, 24, CONFIRMED, "size agree"),
        (1.2, 1.12, 1.30, CONFIRMED, "size agree"),
        (1.2, 1.45, 1.50, OTHER_SIZE, "further"),  # within a factor of 1.25, and twice the effect
        (1.2, 1.06, 1.09, OTHER_SIZE, "not so far"),
        (1.2, 1.07, 1.30, OPEN, "how far is open"),
        (1.02, 1.015, 1.025, CONFIRMED, "size agree"),  # less than the margin, and so it was published
        ([5.1, 5.9], 5.0, 6.0, CONFIRMED, "4.08 to 7.38"),
        ([5.1, 5.9], 1.2, 1.4, OTHER_SIZE, "not so far"),
    ],
)
def test_confirmed_is_the_direction_and_the_size(
    published: Any, low: float, high: float, state: str, word: str
) -> None:
    one = claim(H3_SLOWER, published=published)
    assert one.says is not None
    told, reason = judge(one.says, Estimate(math.log(low * high) / 2, math.log(low), math.log(high), 6), 0.05)
    assert (told, word in reason) == (state, True), reason


@pytest.mark.parametrize(("low", "high", "state"), [(4.5, 5.5, CONFIRMED), (1, 2, OTHER_SIZE), (-2, -1, CONTRADICTED)])
def test_a_difference_has_a_size_as_well(low: float, high: float, state: str) -> None:
    one = claim({**H3_SLOWER, "metric": "tcp_connections"}, published=5)
    assert one.says is not None and one.says.by_difference
    assert judge(one.says, Estimate((low + high) / 2, low, high, 6), 0.05)[0] == state


def test_a_published_size_on_the_other_side_is_refused() -> None:
    for published in (0.5, [0.9, 1.2]):
        with pytest.raises(ValueError, match="'published' is"):
            claim(H3_SLOWER, published=published)


def test_what_has_no_size_says_so() -> None:
    assert evaluate(claim(H3_SLOWER), [place({"h3": 1.5}, noise=0.01)]).reason.endswith("; the study gives no size")


def test_cells_of_another_size_are_no_cells_that_say_the_opposite() -> None:
    """An average of tests that differ: 0.10 to 0.35 in the study's own."""
    cells = [place({"h3": 0.12}, seed=1, request="128"), place({"h3": 0.35}, seed=2, request="10240")]
    said = evaluate(claim({**H3_SLOWER, "is": "about"}, published=0.206), cells)
    assert (said.state, said.depends, {one.state for one in said.effects}) == (CONFIRMED, False, {OTHER_SIZE})


def test_what_stands_in_for_a_treatment_is_never_averaged_with_it() -> None:
    """The study's video was live: one on demand counts only where no live one was run."""
    cells = [place({"h3": 1.5}, seed=1, mode="live"), place({"h3": 0.7}, seed=2, mode="on-demand")]
    one = claim(H3_SLOWER, {"kind": "chain", "mode": {"first": ["live", "on-demand"]}})
    assert matching(one, cells) == cells[:1]
    assert matching(one, cells[1:]) == cells[1:]
    assert evaluate(one, cells).state == CONFIRMED
    assert evaluate(one, cells[1:]).state == CONTRADICTED
    assert matching(one, [place(mode="other")]) == []


def test_a_gap_in_milliseconds_grows_with_the_distance() -> None:
    """A difference of differences: 32 ms near and 167 ms far are no ratio."""
    far, near = (place({"h3": factor}, seed=seed, noise=0.01, path=path)
                 for seed, (path, factor) in enumerate({"far": 0.5, "near": 0.9}.items()))  # fmt: skip
    says = {"arm": "h3", "to": "h2", "at": {"path": "far"}, "against": {"path": "near"}, "by": "difference",
            "margin": 1e4, "is": "below"}  # fmt: skip
    said = evaluate(claim(says), [far, near])
    assert said.difference and said.state == CONFIRMED
    assert said.value == pytest.approx(-0.4e6, rel=0.3)
    assert evaluate(claim({**says, "is": "above"}), [far, near]).state == CONTRADICTED


@pytest.mark.parametrize("noise", [0.005, 0.05, 0.3])
@pytest.mark.parametrize("truth", [1.0, 1.05])
def test_false_decisions_are_at_most_nominal(truth: float, noise: float) -> None:
    """With no effect, and with one as large as the margin, where both decisions are wrong at the same time."""
    says = claim(H3_SLOWER)
    found = [evaluate(says, [place({"h3": truth}, noise=noise, seed=seed)]).state for seed in range(400)]
    limit = 400 * 0.025 + 3 * math.sqrt(400 * 0.025)  # one side of 95 %, and three standard deviations
    assert found.count(CONFIRMED) <= limit
    if truth == 1.05:
        assert found.count(CONTRADICTED) <= limit


def test_false_decisions_are_at_most_nominal_over_several_cells_and_references() -> None:
    says = claim({"arm": "h3", "to": ["h1", "h2"], "is": "above"})
    found = []
    for seed in range(400):
        cells = [place({"h3": 1.05}, noise=0.1, seed=10 * seed + n, request=str(n)) for n in range(3)]
        found.append(evaluate(says, cells).state)
    limit = 400 * 0.025 + 3 * math.sqrt(400 * 0.025)
    assert found.count(CONFIRMED) <= limit
    assert found.count(CONTRADICTED) <= 2 * limit  # against either of two references, each at half of alpha


def test_a_clear_effect_is_decided_with_six_blocks() -> None:
    confirmed = [evaluate(claim(H3_SLOWER), [place({"h3": 1.5}, noise=0.1, seed=s)]).state for s in range(50)]
    assert confirmed.count(CONFIRMED) == 50
    against = [evaluate(claim(H3_SLOWER), [place({"h3": 0.7}, noise=0.1, seed=s)]).state for s in range(50)]
    assert against.count(CONTRADICTED) == 50


def test_the_estimate_is_the_effect_and_says_how_large_it_is_beside_the_published_one() -> None:
    said = evaluate(claim(H3_SLOWER, published=1.5), [place({"h3": 1.5}, noise=0.01)])
    assert said.value == pytest.approx(1.5, rel=0.02)
    assert said.size == "as large"
    smaller = evaluate(claim(H3_SLOWER, published=5), [place({"h3": 1.5}, noise=0.01)])
    assert (smaller.state, smaller.size) == (OTHER_SIZE, "smaller")
    larger = evaluate(claim(H3_SLOWER, published=1.1), [place({"h3": 1.5}, noise=0.01)])
    assert (larger.state, larger.size) == (OTHER_SIZE, "larger")
    assert said.change() == "HTTP/3 ÷ HTTP/2"
    assert said.arms["h3"] / said.arms["h2"] == pytest.approx(1.5, rel=0.05)


def test_highest_of_three_needs_both_comparisons() -> None:
    highest = claim({"arm": "h3", "to": ["h1", "h2"], "is": "above"})
    assert evaluate(highest, [place({"h3": 1.5})]).state == CONFIRMED
    second = evaluate(highest, [place({"h3": 1.5, "h1": 2.0})])
    assert (second.state, second.to) == (CONTRADICTED, "h1")
    third = evaluate(highest, [place({"h3": 1.5, "h2": 2.0})])
    assert (third.state, third.to) == (CONTRADICTED, "h2")


def test_cells_that_say_opposite_things_leave_it_open() -> None:
    cells = [place({"h3": 1.6}, seed=1, request="128"), place({"h3": 0.8}, seed=2, request="10240")]
    said = evaluate(claim(H3_SLOWER), cells)
    assert said.state == OPEN
    assert said.depends
    assert {one.state for one in said.effects} == {CONFIRMED, CONTRADICTED}


@pytest.mark.parametrize(("many", "few"), [(0.4, 1.18), (1.9, 0.99)])
def test_a_mean_of_cells_that_go_both_ways_says_nothing_although_no_cell_of_one_side_is_decided(
    many: float, few: float
) -> None:
    """bourbon2020.cpu-c-over-a, 2026-11-30: four cells at 1.2, undecided each, two at 0.4, and a mean of 0.86."""
    cells = [
        *(place({"h3": many}, noise=0.02, seed=seed, request=str(seed)) for seed in range(3)),
        *(place({"h3": few}, noise=0.09, seed=seed, request=str(seed)) for seed in (10, 11)),
    ]
    said = evaluate(claim(H3_SLOWER), cells)
    assert {one.state for one in said.effects[3:]} == {OPEN}, "else it is told by the states of its cells"
    assert (said.state, said.depends) == (OPEN, True)
    assert said.reason == "it depends on the place: 2 of 5 cells differ from the mean of all, and go the other way"
    assert evaluate(claim(H3_SLOWER), cells[:3]).state == (CONTRADICTED if many < 1 else CONFIRMED)


@pytest.mark.parametrize("truth", [1.0, 1.05, 1.12])
def test_cells_that_are_alike_are_seldom_said_to_depend_on_the_place(truth: float) -> None:
    told = [
        evaluate(claim(H3_SLOWER), [place({"h3": truth}, noise=0.05, seed=8 * n + k, request=str(k)) for k in range(6)])
        for n in range(200)
    ]
    assert sum(one.depends for one in told) <= 6, "one in 50 or less, as Bonferroni's intervals of cells allow"


def test_a_baseline_that_differs_from_itself_leaves_it_open() -> None:
    odd = place({"h3": 1.2}, noise=0.002)
    for row in odd.rows:
        if row["arm"] == "h2#aa":
            row["latency_p50_ns"] *= 1.3  # type: ignore[index]
    said = evaluate(claim({"arm": "h3", "to": "h2", "is": "below"}), [odd])
    assert said.state == OPEN
    assert "differs from itself" in said.reason


def test_censored_blocks_are_longer_than_all_others() -> None:
    there = place()
    for row in there.rows:
        if row["arm"] == "h3":
            row["latency_p50_ns"] = math.inf  # type: ignore[index]
    assert evaluate(claim(H3_SLOWER), [there]).state == CONFIRMED
    assert evaluate(claim({"arm": "h3", "to": "h2", "is": "below"}), [there]).state == CONTRADICTED


# ------------------------------------------------------------------ between cells


def test_two_cells_are_compared_where_all_else_is_the_same() -> None:
    containers = claim(
        {"arm": ["h1", "h2", "h3"], "at": {"place": "docker"}, "against": {"place": "native"}, "is": "above"}
    )
    everyone = dict.fromkeys(("h1", "h2", "h3"), 1.6)
    cells = [
        place(everyone, noise=0.1, seed=1, place="docker", request="128", requests="5"),
        place(noise=0.1, seed=2, place="native", request="128", requests="9"),
        place(dict.fromkeys(everyone, 9.0), seed=3, place="native", request="999"),
    ]
    said = evaluate(containers, cells)
    assert said.state in (CONFIRMED, OPEN)
    assert said.value == pytest.approx(1.6, rel=0.4)
    assert len(said.effects) == 1
    assert evaluate(containers, cells[:1]).state == OPEN


@pytest.mark.parametrize("last", [True, False])
def test_two_cells_are_compared_within_a_run_that_has_both(last: bool) -> None:
    """Another run has the same cell without times, since it was captured."""
    containers = claim({"arm": ["h1", "h3"], "at": {"place": "docker"}, "against": {"place": "native"}, "is": "above"})
    cells = [place({"h1": 2.0, "h3": 2.0}, place="docker"), place(seed=2, place="native")]
    captured = place(metric="packets", run="captured", place="native")
    said = evaluate(containers, [*cells, captured] if last else [captured, *cells])
    assert (said.state, said.blocks) == (CONFIRMED, 6)


def test_false_decisions_between_cells_are_at_most_nominal() -> None:
    longer = claim({"arm": "h3", "to": "h2", "along": "request", "is": "above"})
    found = []
    for seed in range(400):
        cells = [
            place({"h3": 1.5}, noise=0.1, seed=2 * seed + n, request_bytes=str(128 * (1 + 9 * n))) for n in range(2)
        ]
        found.append(evaluate(longer, cells).state)
    assert found.count(CONFIRMED) <= 400 * 0.025 + 3 * math.sqrt(400 * 0.025)


def test_along_a_factor_the_largest_level_is_set_against_the_smallest() -> None:
    grows = claim({"arm": "h3", "to": "h2", "along": "request", "is": "above"})
    cells = [
        place({"h3": factor}, seed=seed, request_bytes=size)
        for seed, (size, factor) in enumerate({"10240": 2.0, "128": 1.2, "1024": 1.2}.items())
    ]
    said = evaluate(grows, cells)
    assert said.state == CONFIRMED
    assert said.value == pytest.approx(2.0 / 1.2, rel=0.1)


# ------------------------------------------------------------------ rates, reasons


def test_one_failure_refutes_a_rate_of_all_and_few_requests_prove_nothing() -> None:
    whole = claim({"metric": "success_rate", "arm": "h3", "is": "whole"})
    assert evaluate(whole, [place(blocks=400)]).state == CONFIRMED
    few = place()
    found = evaluate(whole, [few])
    assert found.state == OPEN  # many requests, but they may fail together with their trial
    assert "6 trials are too few to rule out 1 in 100" in found.reason
    assert evaluate(whole, [place(blocks=400)]).reason.startswith("none of 40,000 requests failed")
    next(row for row in few.rows if row["arm"] == "h3")["succeeded"] = 2  # type: ignore[index]
    assert evaluate(whole, [few]).state == CONTRADICTED


def test_what_never_differs_is_no_proof_of_anything() -> None:
    drops = claim({"metric": "frames_dropped", "arm": "h3", "to": "h2", "is": "above"})
    there = place()
    for row in there.rows:
        row["frames_dropped"] = 0  # type: ignore[index]
    assert evaluate(drops, [there]).state == OPEN


def test_it_says_why_it_cannot_decide() -> None:
    assert "nothing was run" in evaluate(claim(H3_SLOWER), []).reason
    empty = Place("run", "cell", {"kind": "chain"}, [], trials=24, checks={"headroom": 24})
    assert (
        evaluate(claim(H3_SLOWER), [empty]).reason
        == "none of 24 trials counts; of 24 trials checks warned or failed: headroom in 24"
    )
    without = place()
    gone = [row for row in without.rows if row["arm"] != "h3"]
    lost = evaluate(claim(H3_SLOWER), [Place(**{**vars(without), "rows": gone})])
    assert lost.reason == "no block has a trial of HTTP/3 and HTTP/2 that counts"
    other = claim({**H3_SLOWER, "metric": "rss_bytes"})
    assert "not measured" in evaluate(other, [place()]).reason
    few = evaluate(claim(H3_SLOWER), [place(blocks=1)])
    assert "too few" in few.reason
    assert "blocks would decide" in evaluate(claim(H3_SLOWER), [place({"h3": 1.3}, noise=0.2)]).reason


def test_an_interval_that_reaches_anywhere_has_no_ends() -> None:
    said = evaluate(claim(H3_SLOWER), [place({"h3": 1.3}, blocks=2, noise=3.0)])
    assert said.state == OPEN
    assert (said.low, said.high) == (None, None)
    assert said.value is not None


def test_a_verdict_of_a_run_that_ends_when_decided_is_taken_with_its_interval() -> None:
    there = place({"h3": 1.5})
    verdicts = {("latency_p50_ns", "h3", "h2"): (1.5, 0.9, 2.0)}
    said = evaluate(claim(H3_SLOWER), [Place(**{**vars(there), "verdicts": verdicts})])
    assert (said.state, said.low, said.high) == (OPEN, pytest.approx(0.9), pytest.approx(2.0))


def test_what_is_not_compared_says_why_and_shows_our_values() -> None:
    one = claim(H3_SLOWER)
    said = evaluate(Statement(**{**vars(one), "not_compared": "a time of theirs"}), [place()])
    assert (said.state, said.reason) == (NOT_COMPARED, "a time of theirs")
    assert set(said.arms) == {"h1", "h2", "h3"}


VALUES = st.one_of(st.none(), st.floats(0, 1e12), st.just(math.inf), st.just(0.0), st.just(math.nan))
ROWS = st.lists(
    st.fixed_dictionaries({"arm": st.sampled_from(ARMS), "block": st.integers(0, 4), "latency_p50_ns": VALUES}),
    max_size=20,
)


@settings(max_examples=150, deadline=None)
@given(ROWS, ROWS, st.sampled_from(["above", "below", "same"]), st.booleans())
def test_no_rows_make_it_fail(first: list[Any], second: list[Any], relation: str, between: bool) -> None:
    says = {"arm": ["h1", "h3"], "to": "h2", "is": relation}
    if between:
        says |= {"at": {"path": "a"}, "against": {"path": "b"}}
    cells = [
        Place("run", f"path={path}", {"kind": "chain", "path": path}, rows)
        for path, rows in (("a", first), ("b", second))
    ]
    said = evaluate(claim(says), cells)
    assert said.state in (CONFIRMED, CONTRADICTED, OPEN)
    assert said.reason


def test_intervals_of_sums_cover_the_truth() -> None:
    rng = np.random.default_rng(7)
    inside = 0
    for _ in range(1000):
        first, second = rng.normal(1, 0.5, 6), rng.normal(3, 0.1, 8)
        one = linear([(1.0, first), (-0.5, second)], 0.95)
        assert one.low is not None and one.high is not None
        inside += one.low <= -0.5 <= one.high
    assert inside >= 930


def test_cells_of_more_clients_are_paired_although_their_connections_are_more() -> None:
    """What follows from the number of clients is no other difference."""
    few, many = (
        place({}, clients=number, in_flight=number, connections=number, hosts="2", kind="fan-in", requests="2")
        for number in ("4", "50")
    )
    says = {"arm": ["h1", "h3"], "at": {"clients": "50"}, "against": {"clients": "4"}, "is": "same"}
    said = evaluate(claim(says, {"kind": "fan-in"}), [few, many])
    assert said.blocks == 6
    other = evaluate(
        claim(says, {"kind": "fan-in"}), [few, place({}, clients="50", in_flight="8", streams="2", kind="fan-in")]
    )
    assert other.reason == "one of the two cells that it compares was not run"
