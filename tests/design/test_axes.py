"""Axes and places of maps: what is read, what is refused in one line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trifecta import studies
from trifecta.design import plan as design_plan
from trifecta.design.axes import KINDS, parse_axis
from trifecta.design.errors import UserError
from trifecta.design.mapping import change_to_map, make_plan, parse_place, read_plan, traffic


def test_times_are_logarithmic_and_losses_from_zero_go_with_the_square_root():
    rtt, loss = parse_axis("--x", "rtt=5ms..200ms", 16), parse_axis("--y", "loss=0..3%", 16)
    assert (rtt.scale, loss.scale) == ("log", "sqrt")
    assert rtt.texts[:3] == ("5 ms", "6.39 ms", "8.18 ms")
    assert rtt.texts[-1] == "200 ms"
    assert (loss.texts[0], loss.texts[-1]) == ("0 %", "3 %")
    assert loss.share(0.0075) == pytest.approx(0.5)
    assert rtt.share(rtt.at(0.3)) == pytest.approx(0.3)


def test_ranges_can_be_left_out_and_take_the_unit_of_their_end():
    assert parse_axis("--x", "rtt", 16).text() == "rtt=5 ms..200 ms:log"
    assert parse_axis("--y", "loss=1..3%", 8).low == pytest.approx(0.01)
    assert parse_axis("--y", "path.rate=1..2 Mbit/s:log", 8).scale == "log"


def test_counts_are_whole_and_no_place_stands_twice():
    axis = parse_axis("--x", "in_flight=1..8", 16)
    assert axis.texts == ("1", "2", "3", "4", "5", "6", "7", "8")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rtt=5ms", "write NAME=FROM..TO"),
        ("rtt=9ms..5ms", "swap them"),
        ("rtt=1..2", "no unit"),
        ("rtt=0..5ms:log", "has no 0"),
        ("rtx=1ms..2ms", "did you mean 'rtt'"),
        ("workload.rtt=1ms..2ms", "no axis"),
        ("server=caddy..nginx", "server has levels, not values between two ends.*--set server=LEVEL"),
        ("connection", "connection has levels"),
        ("queue=1kB..2kB", "not a queue in bdp"),
        ("loss=0..300%", "more than 100"),
    ],
)
def test_an_axis_that_is_none_is_one_line(text, said):
    with pytest.raises(UserError, match=said) as raised:
        parse_axis("--x", text, 16)
    assert "\n" not in str(raised.value)
    assert str(raised.value).startswith("option --x")


@given(st.text(max_size=40) | st.from_regex(r"(rtt|loss|rate|response)=[0-9a-zA-Z%./]{1,12}\.\.[0-9a-zA-Z%./: ]{1,12}"))
def test_any_text_is_an_axis_or_one_line(text):
    try:
        axis = parse_axis("--x", text, 9)
    except UserError as error:
        assert "option --x" in str(error)
        return
    assert axis.shares()[0] == 0
    assert axis.shares()[-1] == pytest.approx(1)
    assert parse_axis("--x", axis.text(), 9) == axis


@given(st.text(max_size=40))
def test_any_text_is_a_place_or_one_line(text):
    plan = make_plan("rtt", "loss", "8x8", "h3,h2")
    try:
        x, y = parse_place("--at", plan, text)
    except UserError as error:
        assert "option --at" in str(error)
        return
    assert plan.x.low <= x <= plan.x.high
    assert plan.y.low <= y <= plan.y.high


def test_a_place_outside_is_refused():
    plan = make_plan("rtt", "loss", "8x8", "h3,h2")
    assert parse_place("--at", plan, "loss=0.5%, rtt=35ms") == (35e6, 0.005)
    assert parse_place("--at", plan, "path.loss=0.5%, path.rtt=35ms") == (35e6, 0.005)
    assert parse_place("--at", plan, "rtt=5ms,loss=3%") == (5e6, 0.03)  # the ends belong to it
    for text, said in (
        ("rtt=201ms,loss=0.5%", r"rtt 201ms lies outside of what the map covers \(5 ms to 200 ms\); ask within"),
        ("rtt=35ms,loss=0.5", r"loss 0.5 lies outside .*; did you mean 0.5 %\?"),
        ("rtt=35ms,rtt=40ms,loss=1%", "give a value of rtt and of loss, for example rtt="),
        ("rtt=35ms", "give a value of rtt and of loss"),
        ("rtt=35,loss=1%", "option --at: .*unit"),
    ):
        with pytest.raises(UserError, match=said) as raised:
            parse_place("--at", plan, text)
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "axes", [("rtt", "loss"), ("in_flight=1..20", "loss"), ("response=1kB..1MB", "in_flight=1..9")]
)
def test_a_plan_reads_back_and_every_cell_is_one_place(axes):
    plan = make_plan(*axes, "6x5", "h3,h2", blocks=30, budget_ns=10**9)
    assert read_plan(json.loads(json.dumps(plan.document()))) == plan
    study = studies.load("objects", change=lambda document: change_to_map(document, plan, []))
    cells = design_plan.cells(study)
    assert sorted(plan.place_of(cell) for cell in cells) == list(range(len(plan.places())))
    again = studies.parse_study(study.source, "study.yaml")
    assert again == study
    for cell in cells:
        i, j = plan.places()[plan.place_of(cell)]
        path = study.paths[str(cell.levels["path"])]
        workload = design_plan.workload_for(study, design_plan.treatments_of(study, cell)[0])
        asked = {
            "rtt": path.rtt_ns,
            "loss": path.loss,
            "in_flight": workload.in_flight,
            "response": workload.response_bytes,
        }
        assert asked[plan.x.name] == pytest.approx(plan.x.values[i])
        assert asked[plan.y.name] == pytest.approx(plan.y.values[j])


def test_a_study_with_more_levels_says_which_to_choose():
    plan = make_plan("rtt", "loss", "4x4", "h3,h2")
    with pytest.raises(UserError, match=r"factors\.path: has the levels clean, far, rough.*--set path=clean"):
        studies.load("race", change=lambda document: change_to_map(document, plan, []))
    chosen = ["path=rough", "connection=reused", "server=origin"]
    study = studies.load("race", change=lambda document: change_to_map(document, plan, chosen))
    assert study.factors["protocol"] == ("h2", "h3")
    assert all(path.rate_bits_per_s == 20_000_000 for path in study.paths.values())


def test_the_traffic_in_words():
    plan = make_plan("rtt", "loss", "4x4", "h3,h2")

    def words(study, *overrides):
        return traffic(studies.load(study, change=lambda document: change_to_map(document, plan, overrides)))

    assert words("objects") == "20 objects of 30 kB"
    assert words("objects", "response=5 kB", "connection=new") == "20 objects of 5 kB, a new connection each"
    assert words("objects", "in_flight=4") == "requests of 30 kB, 4 at a time"


def test_every_kind_of_axis_is_a_field_that_a_study_takes():
    for kind in KINDS.values():
        value = 2 if kind.whole else 0.5 if kind.digits == 2 else 250
        assert kind.parse(kind.format(value)) == value


@pytest.mark.parametrize(
    ("option", "remedy"),
    [
        ("blocks.at_most=4", "a map sets at_most itself; use --blocks, how many in all"),
        ("budget=1 min", "a map sets budget itself; use --budget"),
        ("baseline=h1", "a map sets baseline itself; use --arms"),
        ("protocol=h1,h2", "a map sets protocol itself; use --arms"),
        ("paths.clean.rtt=9 ms", "a map sets rtt itself; it is an axis; use --"),
    ],
)
def test_an_option_that_a_map_would_undo_is_refused(option, remedy):
    plan = make_plan("path.rtt=0ms..100ms", "path.loss=0%..2%", "8x8", "h3,h2", blocks=None, budget_ns=600_000_000_000)
    with pytest.raises(UserError) as error:
        studies.load("objects", change=lambda document: change_to_map(document, plan, [option]))
    assert str(error.value).startswith(f"option --set {option}: {remedy}")


def test_what_is_asked_of_the_path_of_a_map_holds_at_every_place():
    plan = make_plan("rtt=10ms..100ms", "rate=2Mbit/s..50Mbit/s", "4x4", "h3,h2", blocks=None, budget_ns=10**12)
    asked = ["paths.access.loss=0.5 %"]
    study = studies.load("objects", change=lambda document: change_to_map(document, plan, asked))
    assert {path.loss for path in study.paths.values()} == {0.005}
    with pytest.raises(UserError, match="no cell has the path 'acces'"):
        studies.load("objects", change=lambda document: change_to_map(document, plan, ["paths.acces.loss=1 %"]))
