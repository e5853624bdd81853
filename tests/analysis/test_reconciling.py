"""Two claims that contradict each other: which of them holds, where, and what distinguishes the places."""

import shlex

import pytest

from trifecta import studies
from trifecta.analysis.reconciling import Pair, Side, parse, reconcile
from trifecta.conclude.reconcile.read import pairs as read_pairs
from trifecta.report.reconcile import words
from trifecta.threats import THREATS

PAIR = Pair(
    "pair", "Which?", "h3", "h2", (Side("slow", ("a.slow",)), Side("fast", ("b.fast", "b.more"))), "perhaps", ("x",)
)


def claim(name, state, *cells, metric="latency_p50_ns", to="h2", form="ratio"):
    rows = [
        {"run": run, "cell": cell, "against": "", "state": how, "value": value, "low": low, "high": high, "blocks": 6,
         "to": to}
        for run, cell, how, value, low, high in cells
    ]  # fmt: skip
    return {"id": name, "state": state, "metric": metric, "form": form, "cells": rows}


def read(*claims):
    return reconcile(PAIR, {one["id"]: one for one in claims})


SLOW = claim("a.slow", "confirmed", ("a/run", "path=near,connection=new", "confirmed", 1.2, 1.1, 1.3))
FAST = claim("b.fast", "confirmed", ("b/run", "path=far,connection=new", "confirmed", 0.5, 0.45, 0.55))


def test_both_hold_and_what_differs_is_said():
    found = read(SLOW, FAST)
    assert found.outcome == "both"
    assert found.differ == {"path": (("near",), ("far",)), "study": (("a",), ("b",))}
    assert found.states == ({"a.slow": "confirmed"}, {"b.fast": "confirmed", "b.more": "not run"})


def test_a_factor_with_a_level_in_common_is_no_condition():
    both = claim("b.fast", "open", ("b/run", "path=far,connection=new", "confirmed", 0.5, 0.4, 0.6),
                 ("b/run", "path=near,connection=new", "confirmed", 0.8, 0.7, 0.9))  # fmt: skip
    assert "path" not in read(SLOW, both).differ


@pytest.mark.parametrize(
    ("first", "second", "outcome"),
    [
        ("confirmed", "contradicted", "first"),
        ("contradicted", "confirmed", "second"),
        ("contradicted", "contradicted", "neither"),
        ("open", "contradicted", "open"),
        ("confirmed", "open", "first"),
        ("open", "open", "open"),
    ],
)
def test_the_outcome_follows_the_states(first, second, outcome):
    one = claim("a.slow", first, ("a/run", "path=near", first, 1.0, 0.9, 1.1))
    other = claim("b.fast", second, ("b/run", "path=far", second, 1.0, 0.9, 1.1))
    assert read(one, other).outcome == outcome


def test_nothing_run_is_said_so():
    assert read().outcome == "not run"
    found = read(claim("a.slow", "open"))
    assert found.outcome in ("open", "not run") and found.places == ((), ())


def test_a_rate_is_turned_so_that_less_is_faster():
    rate = claim("b.fast", "confirmed", ("b/run", "path=far", "confirmed", 5.0, 4.0, 10.0), metric="requests_per_s")
    place = read(rate).places[1][0]
    assert (place.ratio, place.low, place.high) == (0.2, 0.1, 0.25)


def test_what_is_said_against_several_holds_where_it_does_against_each():
    """The slowest in the chain: 1.12 of HTTP/2's time, decided, and 1.2 [0.9, 1.6] of HTTP/1.1's, open."""
    for state, told in (("open", "open"), ("contradicted", "no"), ("confirmed", "yes")):
        one = claim("a.slow", state, ("a/run", "path=near", "confirmed", 1.12, 1.06, 1.18))
        one["cells"].append({**one["cells"][0], "to": "h1", "state": state, "value": 1.2, "low": 0.9, "high": 1.6})
        found = read(one, FAST)
        assert [(place.state, place.ratio) for place in found.places[0]] == [(state, 1.12)]
        assert found.holds[0] == told


def test_a_claim_about_the_other_protocol_is_turned_too():
    mine = Pair("p", "?", "h2", "h1", (Side("same", ("a.slow",)), Side("slower", ("b.fast",))), "", ())
    one = claim("a.slow", "confirmed", ("a/run", "path=x", "confirmed", 0.5, 0.4, 0.8), to="h2")
    place = reconcile(mine, {"a.slow": one}).places[0][0]
    assert (place.ratio, place.low, place.high) == (2.0, 1.25, 2.5)
    elsewhere = claim("a.slow", "confirmed", ("a/run", "path=x", "confirmed", 0.5, 0.4, 0.8), to="h3")
    assert reconcile(mine, {"a.slow": elsewhere}).places[0] == ()


def test_an_open_end_stays_open():
    one = claim("b.fast", "open", ("b/run", "path=x", "open", 2.0, None, None), metric="requests_per_s")
    place = read(one).places[1][0]
    assert (place.ratio, place.low, place.high) == (0.5, None, None)


def test_the_bundled_contradictions_name_claims_and_threats_that_exist():
    pairs = read_pairs()
    known = {claim.id for study in studies.published().values() for claim in study.claims}
    assert len({pair.id for pair in pairs}) == len(pairs) >= 6
    named = {claim for pair in pairs for side in pair.sides for claim in side.claims}
    assert named <= known, named - known
    waited_for = {"alpn-mismatch", "delayed-ack", "cpu-bound", "round-trips", "implementation", "loopback-offload",
                  "conntrack", "server-timeouts"}  # fmt: skip
    assert {name for pair in pairs for name in pair.threats} <= set(THREATS) | waited_for


def test_what_would_decide_is_a_command_that_trifecta_takes():
    for pair in read_pairs():
        assert pair.decide, pair.id
        for what, run in pair.decide:
            assert what.endswith("."), what
            if not run:
                continue
            words = shlex.split(run)
            assert words[0] == "trifecta"
            sets = [words[i + 1] for i, word in enumerate(words) if word == "--set"]
            if words[1] == "reproduce":
                assert words[2] in studies.published()
            elif words[1:3] == ["threats", "measure"]:
                studies.experiment(words[3], sets)  # raises where a level or a field does not exist
            else:
                assert words[1] == "map"


def test_experiments_and_tests_of_the_bundled_pairs():
    pairs = {pair.id: pair for pair in read_pairs()}
    known = {name.removeprefix("threats/") for name in studies.experiments()}
    assert {name for pair in pairs.values() for name in pair.experiments} <= known
    half = pairs["slowest-or-faster"]
    assert [side.test.relation for side in half.sides] == ["above", "below"]
    fifth = pairs["slowest-or-a-fifth"]
    assert [side.test.relation for side in fifth.sides] == ["above", "about"] and fifth.sides[1].test.ratio == 0.2
    for pair in pairs.values():  # without a test no experiment can say anything
        assert not pair.experiments or any(side.test for side in pair.sides), pair.id


@pytest.mark.parametrize("side", [{"is": "twice"}, {"is": "about"}, {"is": "above", "ratio": 2}])
def test_a_test_that_makes_no_sense_is_refused(side):
    sides = [{"says": "a", "claims": ["x"], **side}, {"says": "b", "claims": ["y"]}]
    with pytest.raises(ValueError, match=r"contradictions/pairs\.yaml: 'is"):
        parse({"pairs": [{"id": "p", "question": "?", "arm": "h3", "to": "h2", "condition": "", "sides": sides}]})


def test_a_side_that_stays_open_is_not_called_wrong():
    opened = claim("b.fast", "open", ("b/run", "path=far", "open", 0.9, 0.7, 1.1))
    found = read(SLOW, opened)
    assert (found.outcome, found.holds) == ("first", ("yes", "open"))
    assert "In the studies' treatments the first holds; the second stays open." in words.answer(found)
    denied = claim("b.fast", "contradicted", ("b/run", "path=far", "contradicted", 1.0, 0.99, 1.01))
    assert "In the studies' treatments only the first holds." in words.answer(read(SLOW, denied))
    assert "holds in the one cell that it is about (HTTP/3 ÷ HTTP/2 1.20)" in words.answer(read(SLOW, denied))


@pytest.mark.parametrize(
    ("side", "holds"), [({"is": "below"}, "yes"), ({}, "yes"), ({"is": "about", "ratio": 0.2}, "no")]
)
def test_another_size_bears_out_a_sentence_about_a_direction_only(side, holds):
    """“Takes less time” holds where half was published and 0.7 found; “a fifth of the time” does not."""
    sides = [{"says": "slow", "claims": ["a.slow"]}, {"says": "fast", "claims": ["b.fast"], **side}]
    about = {"id": "p", "question": "?", "arm": "h3", "to": "h2", "condition": ""}
    (pair,) = parse({"pairs": [{**about, "sides": sides}]})
    state = "same direction, other size"
    fast = claim("b.fast", state, ("b/run", "path=far", state, 0.7, 0.65, 0.75))
    found = reconcile(pair, {"a.slow": SLOW, "b.fast": fast})
    assert (found.holds[1], found.states[1]) == (holds, {"b.fast": state})


def test_a_pair_has_two_sides():
    with pytest.raises(ValueError, match="p has 1 sides; give two"):
        parse({"pairs": [{"id": "p", "question": "?", "arm": "h3", "to": "h2", "condition": "", "sides": [
            {"says": "a", "claims": ["x"]}]}]})  # fmt: skip
