"""A metric by another of the same trial: what a protocol says of it by itself, and how often falsely."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from tests.analysis.test_published import claim, place
from trifecta.analysis.deciding import Rule
from trifecta.analysis.interim_looks import confidence_at
from trifecta.analysis.judging import CONFIRMED, CONTRADICTED, OPEN, OTHER_SIZE
from trifecta.analysis.places import Place
from trifecta.analysis.published import change_words, evaluate
from trifecta.conclude.reproduction import rejudge
from trifecta.conclude.reproduction.rows import evaluation_data
from trifecta.design import metrics
from trifecta.report.reproduction.words import effect_words, value_words

ARMS = ("h1", "h2", "h3")
MORE = {"metric": "cpu_share[B]", "over": "cpu_share[A]", "arm": list(ARMS), "is": "above"}
SIMULATED = 400
LIMIT = SIMULATED * 0.025 + 3 * math.sqrt(SIMULATED * 0.025)  # one side of 95 %, and three standard deviations


def services(ratios: dict[str, float], *, noise: float = 0.05, blocks: int = 6, seed: int = 1, **levels: str) -> Place:
    """A cell in whose trials B takes so many times the CPU of A, which no two trials take alike."""
    rng = np.random.default_rng(seed)
    rows: list[Any] = []
    for block in range(blocks):
        for arm in ("h1", "h2", "h2#aa", "h3"):
            own = math.exp(rng.normal(-1, 1))
            ratio = ratios.get(arm.removesuffix("#aa"), 1.0) * math.exp(rng.normal(0, noise))
            rows.append({"arm": arm, "block": block, "cpu_share[A]": own, "cpu_share[B]": own * ratio})
    there = {"kind": "chain", **levels}
    return Place("run", ",".join(f"{name}={level}" for name, level in there.items()), there, rows, trials=len(rows))


def everyone(ratio: float) -> dict[str, float]:
    return dict.fromkeys(ARMS, ratio)


def test_it_is_the_ratio_within_a_trial_and_not_that_of_means() -> None:
    """A differs by e from trial to trial, B by A within 1 %."""
    said = evaluate(claim(MORE), [services(everyone(1.3), noise=0.01)])
    assert said.state == CONFIRMED
    assert said.value == pytest.approx(1.3, rel=0.02)
    assert said.arms == pytest.approx(everyone(1.3), rel=0.02)
    assert evaluate(claim({**MORE, "is": "below"}), [services(everyone(1.3), noise=0.01)]).state == CONTRADICTED
    assert evaluate(claim({**MORE, "is": "same"}), [services(everyone(1.0), noise=0.01)]).state == CONFIRMED


def test_all_protocols_must_hold_and_one_that_does_not_is_named() -> None:
    said = evaluate(claim(MORE), [services({"h1": 1.5, "h2": 1.4, "h3": 0.8}, noise=0.02)])
    assert (said.state, said.to) == (CONTRADICTED, "h3")
    assert said.reason.endswith("; by itself HTTP/1.1 confirmed, HTTP/2 confirmed, HTTP/3 contradicted")
    assert said.change() == "CPU of B ÷ CPU of A, HTTP/3"
    assert {one.to for one in said.effects} == set(ARMS)
    wide = evaluate(claim(MORE), [services({"h1": 1.5, "h2": 1.4, "h3": 1.06}, noise=0.05)])
    assert (wide.state, wide.to) == (OPEN, "h3")
    one = evaluate(claim({**MORE, "arm": "h3"}), [services(everyone(1.5))])
    assert (one.state, one.to, one.change()) == (CONFIRMED, "", "CPU of B ÷ CPU of A, HTTP/3")


def test_words_name_what_is_by_what() -> None:
    says = claim(MORE).says
    assert says is not None
    assert change_words(says) == "CPU of B ÷ CPU of A, HTTP/1.1 and HTTP/2 and HTTP/3"
    said = evaluate(claim(MORE), [services(everyone(1.5), request="128")])
    assert effect_words(said.effects[2], said).startswith("run, kind chain, request 128, HTTP/3: 1.")
    closer = claim({"metric": "duration_ns", "over": "packets", "arm": "h3", "to": "h2", "is": "below"}).says
    assert closer is not None
    assert change_words(closer) == "first packet to last packet ÷ packets, HTTP/3 ÷ HTTP/2"
    assert value_words("duration_ns", 2e6, "packets") == value_words("duration_ns", 2e6)
    assert value_words("cpu_share[B]", 2.0, "cpu_share[A]") == "2"
    label, unknown = metrics.label("elapsed_ns[AB]"), metrics.find("nothing[AB]")
    assert (label, unknown) == ("elapsed time of AB", None)


def test_between_protocols_it_is_the_ratio_of_ratios() -> None:
    both = {"metric": "cpu_share[B]", "over": "cpu_share[A]", "arm": "h3", "to": "h2", "is": "above"}
    said = evaluate(claim(both), [services({"h2": 2.0, "h3": 3.0}, noise=0.01)])
    assert said.state == CONFIRMED
    assert said.value == pytest.approx(1.5, rel=0.02)
    odd = services({"h2": 2.0, "h3": 3.0}, noise=0.01)
    for row in odd.rows:
        if row["arm"] == "h2#aa":
            row["cpu_share[B]"] *= 2  # type: ignore[index]
    assert "differs from itself" in evaluate(claim({**both, "is": "below"}), [odd]).reason


def test_a_size_and_a_difference_are_judged_as_ever() -> None:
    sized = claim(MORE, published=1.5)
    assert evaluate(sized, [services(everyone(1.5), noise=0.02)]).state == CONFIRMED
    assert evaluate(sized, [services(everyone(3.0), noise=0.02)]).state == OTHER_SIZE
    less = claim({**MORE, "by": "difference", "margin": 0.01})
    assert evaluate(less, [services(everyone(3.0), noise=0.02, blocks=30)]).difference
    with pytest.raises(ValueError, match="remove 'over'"):
        claim({**MORE, "is": "whole"})


def test_what_lacks_one_of_the_two_was_not_measured() -> None:
    said = evaluate(claim(MORE), [place(metric="cpu_share[B]")])
    assert (said.state, said.reason) == (
        OPEN, "not measured in its cells: CPU of B over CPU of A",
    )  # fmt: skip
    assert said.change().endswith("HTTP/1.1 and HTTP/2 and HTTP/3")
    censored = services(everyone(1.5))
    for row in censored.rows:
        row.update({"cpu_share[A]": math.inf, "cpu_share[B]": math.inf})  # type: ignore[attr-defined]
    assert evaluate(claim(MORE), [censored]).blocks == 0


def test_it_is_another_statement_than_that_of_the_metric_alone() -> None:
    """And what has none is the statement that was kept of a reproduction (tests/bench/test_kept.py)."""
    plain = {"arm": "h3", "to": "h2", "is": "above"}
    assert claim({**plain, "over": "packets"}).defined != claim(plain).defined


@pytest.mark.parametrize("noise", [0.005, 0.05, 0.3])
@pytest.mark.parametrize("truth", [1.0, 1.05])
def test_false_decisions_are_at_most_nominal(truth: float, noise: float) -> None:
    """With no effect, and with one as large as the margin: where all three arms may contradict it, too."""
    found = [
        evaluate(claim(MORE), [services(everyone(truth), noise=noise, seed=seed)]).state for seed in range(SIMULATED)
    ]
    assert found.count(CONFIRMED) <= LIMIT
    if truth == 1.05:
        assert found.count(CONTRADICTED) <= LIMIT


@pytest.mark.parametrize("cells", [1, 3])
def test_one_protocol_at_its_margin_is_not_carried_by_the_others(cells: int) -> None:
    """By difference there is no guard of sessions, which would make everything rarer."""
    says = claim({**MORE, "by": "difference", "margin": 1.0})
    wrong = 0
    for seed in range(SIMULATED):
        rng = np.random.default_rng(seed)
        here = []
        for cell in range(cells):
            rows: list[Any] = []
            for block in range(6):
                for arm, more in (("h1", 9.0), ("h2", 9.0), ("h3", 1.0)):
                    own = rng.normal(0, 5)
                    both = {"cpu_share[A]": own, "cpu_share[B]": own + more + rng.normal(0, 1)}
                    rows.append({"arm": arm, "block": block, **both})
            here.append(Place("run", str(cell), {"kind": "chain", "request": str(cell)}, rows))
        wrong += evaluate(says, here).state == CONFIRMED
    assert 0 < wrong <= LIMIT  # and it can err: the simulation has teeth


def test_intervals_of_an_arm_hold_the_truth() -> None:
    inside = 0
    for seed in range(1000):
        said = evaluate(claim({**MORE, "arm": "h3"}), [services(everyone(1.3), noise=0.1, seed=seed)])
        assert said.low is not None and said.high is not None
        inside += said.low <= 1.3 <= said.high
    assert 930 <= inside <= 970


def test_blocks_that_are_added_by_looking_wait_for_looks() -> None:
    there = services(everyone(1.5), blocks=10)
    said = evaluate(claim(MORE), [Place(**{**vars(there), "first": 6, "done": 10})])
    assert (said.state, said.look, said.blocks) == (CONFIRMED, 2, 9)
    assert said.rule == Rule(0.05, confidence_at(0.95, 2))


def test_what_is_kept_of_it_gives_the_answer_again() -> None:
    for ratios in (everyone(1.5), {"h1": 1.5, "h2": 1.4, "h3": 0.8}):
        statement = claim(MORE)
        said = evaluate(statement, [services(ratios, seed=1, request="1"), services(ratios, seed=2, request="2")])
        row: Any = json.loads(json.dumps(evaluation_data(said, (said.state, ""), None)))
        assert (row["metric"], row["over"]) == ("cpu_share[B]", "cpu_share[A]")
        assert statement.says is not None
        assert rejudge.recomputed(row, statement.says) == (
            said.state,
            said.reason.partition("; the study")[0],
            said.size,
        )
