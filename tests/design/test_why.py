"""Causes: documented, found where they are planted, and removed by one field and nothing else."""

from __future__ import annotations

import itertools
from dataclasses import asdict, replace

import pytest

from trifecta import studies
from trifecta.design import plan
from trifecta.design.errors import UserError
from trifecta.design.factors import KNOWN_FACTORS
from trifecta.design.study import path, requests, study
from trifecta.design.why.budget import (
    AMPLE_ROUNDS,
    LEAST_ROUNDS,
    chosen,
    pair_rounds,
    pair_within_ns,
    search_blocks,
    search_within_ns,
)
from trifecta.design.why.cause import UNSUSPECTED
from trifecta.design.why.change import Change
from trifecta.design.why.rungs import (
    ABSENT,
    COMPARED,
    NO_SWITCH,
    Rung,
    case_of,
    cell_named,
    refuse_unasked,
    with_evidence,
)
from trifecta.design.why.table import CAUSES, suspects

RACE = studies.load("race")


def race(cell="path=far,connection=reused,server=origin", **seen):
    case = case_of(RACE, cell_named(RACE, cell), "h3", "h2")
    return with_evidence(case, replace(case.evidence, **seen))


@pytest.mark.parametrize("name", sorted(CAUSES.own))
def test_every_cause_is_documented_and_named_as_it_says(name):
    cause = CAUSES[name]
    assert cause.id == name
    assert not cause.title.endswith(".")
    for text in cause.documentation.sections.values():
        assert text.endswith(".")


# The fields that this version may not have are given to the cause as a study would have them.
PLANTED = {
    "client-cpu": {"client_cpu": "5 %"},
    "server-cpu": {"server_cpu": "10 %"},
    "nagle": {"tcp_nodelay": "false"},
    "tls-version": {"tls_version": "1.2/1.3", "connection": "new"},
    "window-validation": {"quinn": "stock"},
    "congestion-control": {"congestion_control": "bbr/cubic"},
    "initial-window": {"initial_window": "10/2"},
    "ack-delay": {"ack_delay": "200 ms"},
    "ack-frequency": {"ack_packets": "10"},
    "stream-window": {"stream_window": "16 kB"},
    "tls-records": {"tls_record": "16 kB"},
}


@pytest.mark.parametrize("name", sorted(PLANTED))
def test_what_is_planted_is_suspected_most(name):
    seen = race().evidence
    seen = replace(seen, fields={**seen.fields, **PLANTED[name]}, levels={**seen.levels, **PLANTED[name]})
    if name.endswith("cpu"):
        seen = replace(seen, struck={"headroom": 4})
    first = suspects(seen)[0]
    assert first[0].id == name, [(one.id, suspect.suspicion) for one, suspect in suspects(seen)]


def test_a_threshold_is_suspected_where_packets_overtake():
    assert suspects(replace(race().evidence, overtaken=3))[0][0].id == "packet-threshold"
    unsuspected = {one.id: suspect.suspicion for one, suspect in suspects(race().evidence)}
    assert unsuspected["packet-threshold"] == UNSUSPECTED


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({}, "QUIC is paced and TCP is not"),
        ({"pacing": "on/off"}, "TCP is paced and QUIC is not"),
        ({"pacing": "on"}, "both are paced, each in its own way"),
        ({"congestion_control": "bbr/cubic"}, "both are paced, each in its own way"),
        ({"pacing": "off", "congestion_control": "bbr/cubic"}, "TCP is paced and QUIC is not"),
    ],
)
def test_who_is_paced_is_what_the_study_says(fields, why):
    seen = race().evidence
    seen = replace(seen, fields={**seen.fields, **fields})
    assert CAUSES["pacing"].find(seen).why == why
    bare = {**seen.fields, "pacing": "off", "congestion_control": "cubic"}
    assert CAUSES["pacing"].find(replace(seen, fields=bare)) is None


def test_the_programs_of_others_are_causes_where_they_are():
    ids = [one.id for one, _ in suspects(race("path=far,connection=reused,server=caddy").evidence)]
    assert "server-program" in ids
    assert "server-program" not in [one.id for one, _ in suspects(race().evidence)]


def removable(case):
    found = [(one.id, case.change(suspect)) for one, suspect in suspects(case.evidence)]
    return {name: change for name, change in found if isinstance(change, Change)}


@pytest.mark.parametrize("cell", ["path=far,connection=reused,server=origin", "path=rough,connection=new,server=caddy"])
def test_a_cause_is_removed_by_one_field_and_nothing_else(cell):
    case = race(cell)
    changes = removable(case)
    assert len(changes) >= 4
    for name, change in changes.items():
        made = case.study_of([Rung(), Rung((name,), change)], rounds=5, seed=3, title="why")
        (before, after) = (plan.treatments_of(made, one)[0] for one in plan.cells(made))
        fields = [asdict(plan.workload_for(made, one)) for one in (before, after)]
        changed = {key for key in fields[0] if fields[0][key] != fields[1][key]}
        where = {key for key in before.levels if before.levels[key] != after.levels[key]}
        if change.path:
            assert where == {"path"}
            paths = [asdict(made.paths[str(one.levels["path"])]) for one in (before, after)]
            assert {key for key in paths[0] if paths[0][key] != paths[1][key]} - {"name"} == {
                key for key, _ in change.path
            }
        else:
            assert where == {key for key, _ in change.levels}
        # A path has a length of trials for each mode of connections.
        lengths = {"requests", "warmup_requests", "warmup_ns", "duration_ns"}
        assert changed - lengths <= {"client_cpu", "server_cpu"} | {key for key, _ in change.levels}
        assert (made.min_blocks, made.max_blocks, made.give_up, made.capture) == (5, 5, False, False)
        assert plan.levels_of(made) == ["h2", "h3"]
        assert made.budget_ns is None


def test_what_this_version_has_no_field_for_is_said():
    case = race()
    pacing = CAUSES["header-compression"].find(case.evidence)
    assert pacing is not None
    if "header_compression" not in KNOWN_FACTORS:
        assert case.change(pacing) == NO_SWITCH
    compared = study(
        "s",
        workload=requests(requests=10),
        paths=[path("near", rtt="4 ms")],
        factors={"path": ["near"], "quinn": ["adapted", "stock"], "protocol": ["HTTP/3"]},
        compare="quinn",
    )
    own = case_of(compared, plan.cells(compared)[0], "stock", "adapted")
    suspect = CAUSES["window-validation"].find(replace(own.evidence, fields={**own.evidence.fields, "quinn": "stock"}))
    assert suspect is not None
    assert own.change(suspect) == COMPARED
    there = replace(case.evidence, fields={**case.evidence.fields, "quinn": "adapted"})
    assert with_evidence(case, there).change(replace(pacing, levels={"quinn": ("adapted",)})) == ABSENT


# By cause the arm that alone meets its removal, "" for both, None where there is nothing to remove.
ACROSS = {"ack-delay": "h3", "segmentation-offload": "h3", "pacing": "h3", "idle-window": "h2", "initial-window": ""}
# There is neither a pace nor that delay, and HTTP/1.1 has no window of streams.
OVER_TCP = dict.fromkeys(("ack-delay", "ack-frequency", "segmentation-offload", "pacing"))
OVER_TCP |= {"idle-window": "", "stream-window": "h2"}


@pytest.mark.parametrize(
    ("arm", "to", "fields", "met"),
    [
        ("h3", "h2", {}, ACROSS),
        ("h1", "h2", {}, OVER_TCP),
        ("h3", "h2", {"congestion_control": "bbr/cubic"}, {"congestion-control": "h3"}),
        ("h3", "h2", {"tls_version": "1.2/1.3"}, {"tls-version": "h2"}),
        ("h3", "h2", {"tcp_nodelay": "false"}, {"nagle": "h2"}),
    ],
)
def test_what_no_arm_meets_is_no_cause_and_what_one_meets_says_which(arm, to, fields, met):
    case = case_of(RACE, cell_named(RACE, "path=far,connection=reused,server=origin"), arm, to)
    case = with_evidence(case, replace(case.evidence, fields={**case.evidence.fields, **fields}))
    found = {one.id: case.change(suspect) for one, suspect in suspects(case.evidence)}
    for name, only in met.items():
        change = found.get(name, ABSENT)
        assert (change == ABSENT) == (only is None), name
        assert only is None or case.only(change) == only, name


def test_what_both_arms_speak_decides_where_servers_are_compared():
    compared = study(
        "s",
        workload=requests(requests=10),
        paths=[path("near", rtt="4 ms")],
        factors={"path": ["near"], "server": ["origin", "caddy"], "protocol": ["HTTP/3"]},
        compare="server",
    )
    own = case_of(compared, plan.cells(compared)[0], "caddy", "origin")
    changes = {one.id: own.change(suspect) for one, suspect in suspects(own.evidence)}
    assert changes["idle-window"] == ABSENT, "QUIC keeps its window by itself"
    assert own.only(changes["pacing"]) == ""


def test_two_causes_go_together_unless_they_set_one_field_otherwise():
    changes = removable(race())
    both = race().together(changes, ("window-validation", "congestion-control"))
    assert both is not None
    assert dict(both.levels) == {"quinn": f"{OTHERS}+settings", "congestion_control": "bbr"}
    assert race().together(changes, ("slow-start-exit", "congestion-control")) is None


OTHERS = "padding-cut+parameters-in-order+no-ecn"


@pytest.mark.parametrize(
    ("own", "rule", "settings", "both"),
    [
        ("adapted", f"{OTHERS}+settings", f"window-validation+{OTHERS}", OTHERS),
        ("stock", "window-validation", "settings", "window-validation+settings"),
        ("window-validation+no-ecn", "no-ecn", "window-validation+no-ecn+settings", "no-ecn+settings"),
        ("settings", "window-validation+settings", "stock", "window-validation"),
    ],
)
def test_of_quinn_one_adaptation_is_switched_and_the_others_stay(own, rule, settings, both):
    case = race()
    case = with_evidence(case, replace(case.evidence, fields={**case.evidence.fields, "quinn": own}))
    changes = removable(case)
    assert dict(changes["window-validation"].levels) == {"quinn": rule}
    assert dict(changes["quinn-settings"].levels) == {"quinn": settings}
    for ids in itertools.permutations(("window-validation", "quinn-settings")):
        assert dict(case.together(changes, ids).levels) == {"quinn": both}


def test_the_nearest_stack_is_the_engines_own():
    case = race("path=far,connection=reused,server=caddy")
    assert case.has_nearest
    assert not race().has_nearest
    assert case.levels(Rung(nearest=True))["server"] == "origin"
    # Without the foreign server, and as it is on the nearest stack, are one cell.
    rungs = [Rung(), Rung(nearest=True), Rung(("server-program",), Change((("server", "origin"),)))]
    assert len(plan.cells(case.study_of(rungs, rounds=4, seed=1, title="why"))) == 2


@pytest.mark.parametrize(
    ("cell", "arm", "said"),
    [
        ("path=fur", None, "option --cell: no cell 'path=fur'; choose from path=clean,"),
        ("path=far", None, "option --cell: 'path=far' fits 4 cells"),
        (None, "h2", "option --arm: 'h2' is not compared with h2; choose from h1, h3"),
        (None, "h4", "option --arm: 'h4' is not compared"),
    ],
)
def test_a_cell_or_an_arm_that_is_not_there_is_refused(cell, arm, said):
    with pytest.raises(UserError, match=r"option --") as caught:
        refuse_unasked(RACE, cell, arm)
    assert said in str(caught.value)


def test_a_budget_goes_to_what_is_suspected_first():
    second = 1_000_000_000
    count, rounds = chosen([9, 6, 0, 0], 60 * second, second, nearest=False)
    assert (count, rounds) == (2, 8)  # 36 s, 3 of them around, 4 blocks a round: no ample rounds for the others
    assert chosen([9, 6, 0, 0], 600 * second, second, nearest=False)[0] == 4
    assert chosen([9, 6], 20 * second, second, nearest=False) == (0, 0)
    for number, seconds in itertools.product(range(1, 9), (30, 60, 300)):
        count, rounds = chosen([5.0] * number, seconds * second, second, nearest=True)
        blocks = rounds * search_blocks(count, nearest=True)
        assert blocks <= seconds
        assert count == 0 or rounds >= LEAST_ROUNDS
    assert pair_rounds(60 * second, 5, second) == LEAST_ROUNDS
    assert pair_rounds(60 * second, 2, second) == 10
    assert AMPLE_ROUNDS > LEAST_ROUNDS
    assert search_within_ns(60 * second) == pytest.approx(43.2 * second)
    assert pair_within_ns(60 * second, 50 * second) == pytest.approx(22 * second)
