"""A search for causes in words, as a picture, in the terminal, as a page and in the report of its run."""

from __future__ import annotations

import io
import json
import shlex

import pytest
from rich.console import Console

from tests.report.synthetic_why import CELL, asked_of, searched, source
from trifecta.conclude.explain.chain import explain as explain_run
from trifecta.conclude.why import evidence, result
from trifecta.design.errors import UserError
from trifecta.design.why.search_plan import case_asked, rungs_of
from trifecta.report import explain
from trifecta.report.figures import svg
from trifecta.report.html import write_report
from trifecta.report.why import output, picture, section, words
from trifecta.store import why


@pytest.fixture(scope="module")
def search(tmp_path_factory):
    """The run, the folder of the search in it, and what it says."""
    run = source(tmp_path_factory.mktemp("why") / "run")
    asked = asked_of(run)
    with pytest.MonkeyPatch.context() as patch:
        folder = searched(run / "why" / "h3-far", asked, patch)
    return run, folder, result.read(folder, asked)


def ends(ratio, low=None, high=None):
    return {"ratio": ratio, "low": low, "high": high, "blocks": 6}


def printed(made, folder, width=120):
    out = Console(file=io.StringIO(), width=width)
    output.print_result(made, folder, out)
    return out.file.getvalue()


def test_what_a_run_shows_is_read_before_anything_is_removed(search):
    asked = evidence.read(search[0])
    assert (asked.case.cell.key, asked.case.evidence.arm, asked.case.evidence.to) == (CELL, "h3", "h2")
    assert asked.case.evidence.shares
    assert asked.block_ns > 0
    assert evidence.read(search[0], "path=far", "h1").case.evidence.arm == "h1"
    with pytest.raises(
        UserError, match="of h1 from h2 is decided; name one with --cell and --arm, or go on: `trifecta"
    ):
        evidence.read(search[0], arm="h1")


def test_the_server_is_named_and_what_does_nothing_is_not(search):
    made = search[2]
    assert made["told_apart"]
    assert made["effect"]["ratio"] == pytest.approx(1.5, abs=0.1)
    first, second = made["causes"]
    assert (first["cause"], first["state"], first["exchange"]) == (
        "server-program",
        "explains",
        {"server": ["caddy", "origin"]},
    )
    assert first["ratio"] == pytest.approx(1.0, abs=0.05)
    assert first["share"] == pytest.approx(1.0, abs=0.15)
    assert second["state"] in ("nothing", "open")
    both = made["together"]
    assert both["causes"] == ["server-program"]
    assert both["orders"][1]["cause"] == "congestion-control"
    assert both["interaction"]["low"] < 1 < both["interaction"]["high"]
    assert both["left"]["share"] == pytest.approx(1 - both["share"])
    assert made["runs"] == ["causes", "together"]


def test_causes_that_turn_it_round_explain_more_than_all_of_it(search):
    made = search[2]
    both = {**made["together"], "share": 1.126, "share_low": 1.108, "share_high": 1.149, "left": ends_of_share(-0.126)}
    last = words.closing({**made, "together": both})[1]
    assert last.endswith("remain; it explains more than all of it (113 % [111 %, 115 %]).")
    both |= {"share": 1.002, "share_low": 1.001, "share_high": 1.004, "left": ends_of_share(-0.002)}
    last = words.closing({**made, "together": both})[1]
    assert last.endswith("remain; it explains all of it (100 % [100 %, 100 %]).")
    both |= {"share": 1.126, "share_low": 0.99, "share_high": 1.149, "left": ends_of_share(-0.004)}
    last = words.closing({**made, "together": both})[1]
    assert last.endswith("it explains 113 % [99 %, 115 %] of it, -0.4 % [-5 %, 5 %] is left unexplained.")


def test_a_narrow_terminal_splits_no_name_of_a_level(search):
    """Each row of the table has a title; what removed the causes stands in a line below it."""
    text = printed(search[2], search[1], width=80)
    assert "Removed by: server caddy → origin; congestion_control " in text
    rows = text.partition("without")[2].partition("Removed by")[0]
    assert "→" not in rows and "->" not in rows


def ends_of_share(value):
    return {"share": value, "share_low": -0.05, "share_high": 0.05}


def test_a_trial_without_what_was_asked_for_never_counts(search):
    """Windows may differ where quinn-proto has its own; that the kernel gave none of 100 packets excludes a trial."""
    asked = asked_of(search[0])
    one = asked["causes"][0]
    asked["causes"] = [
        {**one, "cause": "window-validation", "levels": {"quinn": "stock"}},
        {**one, "cause": "initial-window", "levels": {"initial_window": "100"}},
    ]
    told = [result._tolerated(case_asked(asked), rung, asked) for rung in rungs_of(asked)]
    assert told == [frozenset(), {result.OTHER_WINDOWS}, frozenset()]


def test_the_answer_comes_first_and_is_one_sentence(search):
    made = search[2]
    said = words.answer(made)
    assert said.startswith("Of 1.")
    assert " times, without the server " in said
    assert " remain" in said
    text = printed(made, search[1])
    assert text.startswith(said)
    assert text.count("\n") <= 24
    for part in ("remains", "share of it", "the congestion control", "cannot be switched in this version", "why.html"):
        assert part in text
    assert "the pace of packets, socket buffers: cannot be" in text  # one reason, once


def test_blocks_without_a_value_are_counted_and_their_causes_open(search, monkeypatch):
    """Of what is left of a cell whose worst blocks failed nothing is concluded."""
    run, folder, made = search
    assert (made["censored"], [one["censored"] for one in made["causes"]]) == (0, [0, 0])
    assert words.left_out(made) == ""
    monkeypatch.setattr(result, "censored", lambda place, *_: 2 if "server=origin" in place.cell else 0)
    failed = result.read(folder, asked_of(run))
    by = {one["cause"]: one for one in failed["causes"]}
    assert (by["server-program"]["state"], by["server-program"]["censored"]) == ("open", 2)
    assert words.left_out(failed) == "Too much failed in 2 blocks for a value: the causes of their cells stay open."
    assert "too much failed in 2 blocks" in words.closing({**made, "together": {**made["together"], "censored": 2}})[-1]
    monkeypatch.setattr(result, "censored", lambda place, *_: int("server=origin" not in place.cell))
    assert {one["state"] for one in result.read(folder, asked_of(run))["causes"]} == {"open"}, "as it is failed, too"


def test_rounds_are_those_that_were_measured(search):
    _, folder, made = search
    assert (made["rounds"], made["planned"]) == (4, 4)
    assert words.method(made).startswith("4 rounds of the unchanged cell")
    late = result.read(folder, {**asked_of(search[0]), "rounds": 9})
    assert (late["rounds"], late["planned"]) == (4, 9)
    assert words.method(late).startswith("4 rounds, of 9 that were planned, of the unchanged cell")


@pytest.mark.parametrize("width", [60, 80])
def test_a_narrow_terminal_loses_nothing(search, width):
    text = printed(search[2], search[1], width).replace("\n", " ")
    for one in search[2]["causes"]:
        assert words.STATES[one["state"]] in " ".join(text.split())


def test_what_is_no_difference_has_no_cause_and_a_cell_without_values_says_so(search):
    made = {**search[2], "told_apart": False, "effect": ends(1.01, 0.98, 1.04)}
    assert "no difference to explain, for it lies within 5 %, so no cause is named" in words.answer(made)
    assert "there is no interval yet" in words.answer({**made, "effect": ends(1.37)})
    wide = words.answer({**made, "effect": ends(1.37, 0.9, 2.1)})
    said = "indistinguishable from 1, which more time decides, so no cause is named."
    assert wide == f"Unchanged, it is 1.37 [0.90, 2.10] times: {said}"
    assert "nothing can be said" in words.answer({**made, "effect": ends(None)})
    open_ = {**search[2], "causes": [{**one, "state": "open"} for one in search[2]["causes"]], "together": None}
    said = words.answer(open_ | {"no_together": "no cause is named"})
    assert "no cause that was removed is shown to explain it" in said
    assert words.closing(open_ | {"no_together": "no cause is named"}) == ["Not measured together: no cause is named."]
    bare = {**made, "causes": [{**one, **ends(None), "share": None} for one in made["causes"]], "effect": ends(None)}
    with svg.drawing():
        assert picture.draw(bare).svg("x").startswith("<svg")


def test_the_label_of_a_long_cell_is_broken_and_has_its_room(search):
    cell = "path=far,connection=reused,server=origin,tls_record=16.384 kB,initial_window=4,idle_window=restart"
    with svg.drawing():
        short, long = (picture.draw({**search[2], "cell": one}).figure for one in ("path=far", cell))
    lines = [one.axes[0].get_xlabel().split("\n") for one in (short, long)]
    assert [len(each) for each in lines] == [1, 2]
    assert " ".join(lines[1]).endswith(
        "server=origin, tls_record=16.384 kB, initial_window=4, idle_window=restart (log)"
    )
    assert max(map(len, lines[1])) <= 100
    assert long.get_figheight() > short.get_figheight()


def test_states_are_worded_each(search):
    first, second = search[2]["causes"]
    made = {**search[2], "causes": [first, {**second, "state": "hides"}, {**second, "state": "nothing", "title": "T"}]}
    said = words.answer(made)
    assert "some of it is hidden by the congestion control" in said
    assert "at most a tenth of it is explained by T" in said
    small = [{**one, "state": "nothing"} for one in search[2]["causes"]]
    late = [{"cause": "c", "title": "C", "why": "w"}]
    said = words.answer({**made, "causes": small, "together": None, "not_measured": late})
    assert "is explained by each of the server and the congestion control." in said
    assert said.endswith(" 1 possible cause was not measured; a larger --budget has room for more.")
    assert "not measured" not in words.answer({**made, "not_measured": late})


def test_what_remains_without_the_largest_does_not_come_from_the_rounds_that_chose_it(search):
    first, second = search[2]["causes"]
    wide = {**first, **ends(1.0, 0.99, 1.01), "remains_low": 0.95, "remains_high": 1.06}
    pair = search[2]["together"]
    fresh = {**pair, "orders": [{**pair["orders"][0], "remains": ends(1.03, 1.01, 1.05)}, pair["orders"][1]]}
    alone = {**pair, "orders": [], "both": None, "interaction": None, "remains": ends(1.04, 1.02, 1.06)}
    lost = {**fresh, "orders": [{**pair["orders"][0], "remains": ends(None)}, pair["orders"][1]]}
    for both, said in ((fresh, "1.03 [1.01, 1.05]"), (alone, "1.04 [1.02, 1.06]"), (lost, "1.00 [0.95, 1.06]"),
                       (None, "1.00 [0.95, 1.06]")):  # fmt: skip
        made = {**search[2], "causes": [wide, second], "together": both}
        assert f"without the server {said} remain" in words.answer(made), said


def test_what_is_of_the_nearest_stack_is_told_of_its_own_effect_everywhere(search):
    first, second = search[2]["causes"]
    near = {**second, "nearest": True, "state": "explains", **ends(1.02, 0.99, 1.05)}
    made = {**search[2], "nearest": ends(1.1, 1.05, 1.15), "causes": [first, near]}
    said = words.answer(made)
    own, other = said.split(". On the engine's own programs it is 1.10 [1.05, 1.15] times; of that, ")
    assert own.startswith("Of 1.")
    assert "congestion control" not in own
    assert other.startswith("without the congestion control 1.")
    same = words.answer({**made, "nearest": ends(1.01, 0.97, 1.05)})
    assert "times, indistinguishable from 1, so what was removed there explains none of it." in same
    assert "On the engine's own programs" in words.answer({**made, "causes": [near]})
    assert "the engine's own programs 1.10 [1.05, 1.15]" in " ".join(printed(made, search[1], 200).split())
    with svg.drawing():
        assert "unchanged on the engine" in picture.draw(made).svg("x")
        shown_ = section.why_view(made, "why", "")
    assert [one.title for one in shown_.causes] == [
        first["title"],
        "unchanged on the engine's own programs",
        near["title"],
    ]
    assert "It cannot" in output.page(made)
    both = {**made["together"], "causes": [near["cause"]]}
    assert "In separate rounds on the engine's own programs, " in words.closing({**made, "together": both})[0]


@pytest.mark.parametrize(
    ("interaction", "said"),
    [
        (ends(1.01, 0.97, 1.04), "× 1.01 [0.97, 1.04], so they act on their own."),
        (ends(1.3, 0.6, 2.9), "× 1.30 [0.60, 2.90], so whether they act on their own is open."),
        (ends(1.3), ", so whether they act on their own is open."),
        (ends(1.3, 1.1, 1.5), ", so one changes what the other does."),
    ],
)
def test_that_two_act_on_their_own_is_said_where_it_is_known(search, interaction, said):
    both = {**search[2]["together"], "interaction": interaction}
    assert words.closing({**search[2], "together": both})[0].endswith(said)


def test_shares_without_bounds_are_said_so():
    assert words.share({"share": None, "share_low": None, "share_high": None}) == "–"
    assert words.share({"share": 0.5, "share_low": None, "share_high": None}) == "50 % [not bounded]"
    assert words.share({"share": 0.87, "share_low": 0.79, "share_high": 0.96}) == "87 % [79 %, 96 %]"


def test_the_picture_has_a_row_for_every_cause(search):
    with svg.drawing():
        drawn = picture.draw(search[2])
        text = drawn.svg("x")
    for part in ("unchanged: 1.", "without the server", "without the congestion control", "without all that are named"):
        assert part in text
    assert drawn.label == words.answer(search[2])


def test_files_page_and_the_section_of_the_report(search):
    run, folder, made = search
    output.write({**made, "study": "<race>"}, folder)
    assert {path.name for path in folder.iterdir()} >= {"why.json", "why.svg", "why.png", "why.html"}
    page = (folder / "why.html").read_text()
    assert "&lt;race&gt;" in page
    assert 'href="causes/report.html"' in page
    report = write_report(run).read_text()
    assert '<a href="#why">Why?</a>' in report
    assert 'href="why/h3-far/why.html"' in report
    assert "cannot be switched in this version" in report
    ticked = [{**one, "why": "see `window-validation`, <b>"} for one in made["not_switched"]]
    output.write({**made, "not_switched": ticked}, folder)
    page = (folder / "why.html").read_text()
    assert "see <code>window-validation</code>, &lt;b&gt;." in page and "`" not in page.partition("</style>")[2]
    (folder / "why.json").write_text(json.dumps({**made, "rounds": 7}))
    with pytest.raises(UserError, match=r"why\.json: is not what"):
        why.of_run(run)


def test_explain_tells_what_a_search_answered_and_else_how_to_ask(search, monkeypatch):
    run, folder, made = search
    explained = explain_run(run)

    def brief():
        out = Console(file=io.StringIO(), width=120)
        explain.print_brief(explained, out)
        return " ".join(out.file.getvalue().split())

    monkeypatch.setattr(why, "of_run", lambda _: [])
    bare = brief()
    assert f"Causes, by experiment: trifecta why {shlex.quote(str(run))}" in bare
    assert "By experiment" not in bare
    monkeypatch.setattr(why, "of_run", lambda _: [(folder, made)])
    assert f"By experiment: {words.answer(made)}" in brief()
    assert "trifecta why" not in brief()
    out = Console(file=io.StringIO(), width=120)
    explain.print_chains(explained, [], out)
    assert "By experiment: Of 1." in out.file.getvalue()
    told = {(one["arm"], one["reference"]): one["by_experiment"] for one in explain.as_data(explained, [])["chains"]}
    assert told["h3", "h2"] == words.answer(made)
    assert told["h1", "h2"] == ""


def test_a_run_without_a_search_has_no_section(small):
    assert 'href="#why"' not in write_report(small).read_text()
