"""Ladders as files: what they say, what their study is, and one clear line for what is wrong with them."""

from __future__ import annotations

import pytest

from trifecta.design import plan
from trifecta.design.errors import UserError
from trifecta.design.ladder import cells_of, pairs_of, ranked
from trifecta.design.ladder_file import parse_ladder
from trifecta.design.study_file import parse_study

TEXT = """\
ladder: small
title: A small one
claim: milicevic2023.far-mode
arm: h3
to: h2
study:
  workload: {kind: requests, requests: 20}
  factors: {path: far, connection: new, client: python-client, server: hypercorn, tls_version: 1.2/1.3}
  paths: {far: {rtt: 70 ms}}
  metric: latency_mode
rounds: {quick: 3, full: 8}
quick: [requests=4]
steps:
  - {step: tls, title: TLS 1.3, exchange: {tls_version: [1.2/1.3, "1.3"]}, source: II, why: One version.}
  - {step: ends, title: our programs, exchange: {client: [python-client, load], server: [hypercorn, origin]}, source: IV, why: No limit.}
  - {step: median, title: the median, metric: [latency_mode, latency_p50], source: V, why: Half take less.}
"""  # noqa: E501


def read(text=TEXT):
    return parse_ladder(text, "small.yaml")


def study(ladder, **how):
    return ladder.measured_by(ladder.rungs(), rounds=3, seed=9, **how)


def test_each_rung_has_what_the_steps_below_it_exchanged():
    ladder = read()
    assert [rung.cell for rung in ladder.rungs()] == [
        "tls_version=1.2/1.3,client=python-client,server=hypercorn",
        "tls_version=1.3,client=python-client,server=hypercorn",
        "tls_version=1.3,client=load,server=origin",
        "tls_version=1.3,client=load,server=origin",
    ]
    assert [rung.metric for rung in ladder.rungs()] == ["latency_mode_ns"] * 3 + ["latency_p50_ns"]
    assert ladder.study == "milicevic2023"


def test_its_study_has_the_rungs_for_cells_and_reads_back_the_same():
    ladder = read()
    made = study(ladder, overrides=ladder.quick)
    assert len(plan.cells(made)) == 3  # the third step reads the same trials
    assert [cell.key for cell in plan.cells(made)] == list(made.cells)
    assert [plan.cells(made)[0].levels[name] for name in ("client", "tls_version")] == ["python-client", "1.2/1.3"]
    assert (made.min_blocks, made.max_blocks, made.seed, made.workload.requests) == (3, 3, 9, 4)
    assert (made.baseline.level, plan.levels_of(made), made.give_up) == ("h2", ["h2", "h3"], False)
    again = parse_study(made.source, "study.yaml")
    assert plan.cells(again) == plan.cells(made)
    assert again.source == made.source


@pytest.mark.parametrize(
    ("kind", "factor", "before", "after", "field", "values"),
    [
        ("kind: requests", "in_flight", "1", "8", "in_flight", (1, 8)),
        ("kind: requests, loop: open", "rate", "50/s", "100/s", "rate_per_s", (50.0, 100.0)),
        ("kind: fan-in, hosts: 2", "clients", "4", "50", "clients", (4, 50)),
    ],
)
def test_a_step_exchanges_one_load_for_another(kind, factor, before, after, field, values):
    text = TEXT.replace("kind: requests", kind).replace("tls_version: 1.2/1.3}", f"{factor}: {before}}}")
    text = text.replace('{tls_version: [1.2/1.3, "1.3"]}', f"{{{factor}: [{before}, {after}]}}")
    if "fan-in" in kind:
        text = text.replace("client: python-client, server: hypercorn", "server: go-services")
        text = text.replace("{client: [python-client, load], server: [hypercorn, origin]}",
                            "{server: [go-services, services]}")  # fmt: skip
    ladder = read(text)
    made = study(ladder)
    rungs = plan.cells(made)
    found = [getattr(plan.workload_for(made, plan.treatment(made, cell, "h2")), field) for cell in rungs]
    assert found == [values[0], values[1], values[1]]


def test_two_steps_the_other_way_round():
    ladder = read()
    second_alone, without_first = ladder.other_order(0, 1)
    assert second_alone.cell == without_first.cell == "tls_version=1.2/1.3,client=load,server=origin"
    early, late = ladder.other_order(0, 2)
    assert (early.cell, early.metric) == (ladder.rungs()[0].cell, "latency_p50_ns")
    assert (late.cell, late.metric) == ("tls_version=1.2/1.3,client=load,server=origin", "latency_p50_ns")
    assert pairs_of(ladder) == [(0, 1), (0, 2), (1, 2)]
    assert len(cells_of([*ladder.rungs(), early, late])) == 4


def test_steps_that_exchange_the_same_thing_have_one_order():
    text = TEXT + "  - {step: back, title: back, exchange: {client: [load, curl]}, source: V, why: Another.}\n"
    # The last can come before the third; not before the second, nor before the first, which lies below that.
    assert pairs_of(read(text)) == [(0, 1), (0, 2), (1, 2), (2, 3)]
    assert read(text).other_order(1, 3) is None


def test_the_largest_two_are_chosen_among_those_that_can_be_turned():
    assert ranked([0.1, -2.0, 1.0], [(0, 1), (0, 2), (1, 2)]) == [(1, 2), (0, 1), (0, 2)]
    assert ranked([0.1, -2.0, 1.0], [(0, 1), (0, 2)]) == [(0, 1), (0, 2)]
    assert ranked([None, -2.0, 1.0], [(0, 1)]) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("to: h2", "to: h3", "small.yaml:5: to: is the arm itself; name the protocol that it is compared with"),
        ("arm: h3", "arm: h4", "small.yaml:4: arm: 'h4' is not a protocol; "),
        ("title: A small one\n", "", "small.yaml: title: is missing; every ladder has it"),
        ("title: A small one", "titel: A small one", "small.yaml:2: titel: unknown field; did you mean 'title'?"),
        ("[1.2/1.3, \"1.3\"]", "[\"1.3\", 1.2/1.3]", "tls_version: begins with 1.3, but is 1.2/1.3 there"),
        ("[1.2/1.3, \"1.3\"]", "\"1.3\"", "steps[0].exchange.tls_version: is not [FROM, TO]; write the two levels"),
        ("[1.2/1.3, \"1.3\"]", "[1.2/1.3, 1.2/1.3]", "exchanges 1.2/1.3 for itself; write two levels"),
        ("tls_version: [", "request: [", "steps[0].exchange.request[0]: '1.2/1.3'"),
        ("{tls_version: [1.2/1.3, \"1.3\"]}", "{request: [1 kB, 2 kB]}", "has no level under 'study.factors'"),
        ("{tls_version: [1.2/1.3, \"1.3\"]}", "{speed: [1, 2]}", "is no factor that a step can exchange"),
        ("exchange: {tls_version: [1.2/1.3, \"1.3\"]}, ", "", "steps[0]: exchange: is missing"),
        ("step: ends", "step: tls", "steps[1].step: 'tls' is the name of two steps; give each its own"),
        ("why: One version.", "what: One version.", "steps[0].what: unknown field; did you mean"),
        ("source: II, ", "", "steps[0]: source: is missing; every step has it"),
        ("[latency_mode, latency_p50]", "[latency_mean, latency_p50]", "begins with latency_mean_ns, but is"),
        ("[latency_mode, latency_p50]", "[latency_mode, speed]", "steps[2].metric[1]: 'speed' is not a metric"),
        ("client: python-client,", "client: [python-client, load],", "study.factors.client: has several levels"),
        ("  metric: latency_mode", "  blocks: 3", "study.blocks: is not for the study of a ladder: use 'rounds' of"),
        ("connection: new", "connection: newish", "factors.connection: 'newish' is not a connection mode"),
        ("{quick: 3, full: 8}", "{quick: 1, full: 8}", "rounds.quick: '1' is not a number of rounds; give 2 to 1000"),
        ("[requests=4]", "[requests=none]", "requests: 'none'"),
    ],
)  # fmt: skip
def test_a_fault_is_one_line_with_file_field_and_remedy(old, new, said):
    assert old in TEXT
    with pytest.raises(UserError) as caught:
        read(TEXT.replace(old, new))
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith(("small.yaml", "option --set requests"))
    assert all(part in text for part in said.split(": ", 1)) if said.count(": ") else said in text


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (
            ["server=origin,response=2 kB"],
            "s.yaml:4: cells[0]: '2 kB' is not a level of response; did you mean '3 kB'?",
        ),
        (["response=1 kB,sever=origin"], "'sever=origin' is no factor and level of a cell; did you mean 'server'?"),
        (["response=1 kB,response=1 kB"], "is no factor and level of a cell; twice"),
        (["connection=reused"], "cells[0]: which response? Name one of 1 kB, 3 kB"),
        (["response=1 kB", "response=1000 B"], "cells[1]: the cell path=clean,"),
        ([], "cells: lists 0 cells; list 1 to 1000, or remove the field"),
    ],
)
def test_cells_of_a_study_are_levels_that_it_has(cells, said):
    factors = "{path: clean, response: [1 kB, 3 kB]}"
    text = f"study: s\nworkload: {{kind: requests, requests: 9}}\nfactors: {factors}\ncells: {cells}\n"
    with pytest.raises(UserError) as caught:
        parse_study(text, "s.yaml")
    assert said in str(caught.value)


def test_cells_of_a_workload_with_fixed_factors_read_back():
    factors = "{path: clean, page: [light, heavy]}"
    text = f"study: s\nworkload: {{kind: page, visits: 1}}\nfactors: {factors}\ncells: [page=heavy]\n"
    one = parse_study(text, "s")
    (cell,) = plan.cells(one)
    assert "connection=browser" in cell.key
    assert plan.cells(parse_study(one.source, "study.yaml")) == [cell]


def test_cells_take_the_place_of_combinations():
    factors = "{path: clean, response: [1 kB, 3 kB], tcp_nodelay: [true, false]}"
    text = f"study: s\nworkload: {{kind: requests, requests: 9}}\nfactors: {factors}\n"
    one = parse_study(text + "cells: ['response=3 kB,tcp_nodelay=false', 'tcp_nodelay=true,response=1000 B']\n", "s")
    keys = [cell.key for cell in plan.cells(one)]
    assert keys == [
        "path=clean,connection=reused,server=origin,response=3 kB,tcp_nodelay=false",
        "path=clean,connection=reused,server=origin,response=1 kB,tcp_nodelay=true",
    ]
    assert len(plan.cells(parse_study(text, "s"))) == 4
    assert [plan.workload_for(one, at).tcp_nodelay for at in plan.treatments(one)][::3] == [False, True]
