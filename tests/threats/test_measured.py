"""What is said of a measured threat (the experiment of one through the lab: tests/workloads/test_experiment.py)."""

import pytest

from tests.cli.test_run import trifecta
from trifecta.analysis.knee import Knee, Step
from trifecta.cli.threats import _chosen_experiments
from trifecta.design.errors import CannotError, UserError
from trifecta.report.threats import _model_lines, print_list, print_measured, print_threat, sentences
from trifecta.threats import THREATS
from trifecta.workloads.experiments import _finite, _outcome, not_measured, run_experiment

MEAN = {"value": 1e8, "low": 0.9e8, "high": 1.1e8, "blocks": 4}


def row(outcome, arm="h3", reference="h2", **changes):
    ratio = {"more": 1.5, "less": 0.5, "same": 1.0, "undecided": 1.1}[outcome]
    found = {"place": "", "levels": {}, "arm": arm, "reference": reference, "off": None, "on": None}
    if reference is None:
        found |= {"off": MEAN, "on": MEAN}
    found |= {
        "ratio": ratio,
        "low": ratio * 0.98,
        "high": ratio * 1.02,
        "p_holm": 0.01,
        "outcome": outcome,
        "blocks": 4,
    }
    return found | changes


def threat(*rows, **changes):
    effect = {
        "title": "", "factor": "path", "off": "in-order", "on": "overtaking", "metric": "latency_p50_ns",
        "metric_label": "median latency", "unit": "ns", "lower_is_better": True, "baseline": "h2", "margin": 0.05,
        "confidence": 0.95, "rows": list(rows),
        "detected": {"check": "reordering", "off": 0, "off_trials": 12, "on": 11, "on_trials": 12},
    }  # fmt: skip
    made = {"threat": "jitter-reordering", "title": "t", "check": "reordering", "undetected": "", "reason": ""}
    return made | {"outcome": _outcome([effect]), "runs": ["r"], "effects": [effect], "model": []} | changes


def test_one_difference_is_an_effect_and_all_the_same_is_none():
    assert threat(row("more"), row("same"))["outcome"] == "effect"
    assert threat(row("same"), row("same"))["outcome"] == "no effect"
    assert threat(row("same"), row("undecided"))["outcome"] == "not decided"
    assert threat(row("more", blocks=0))["outcome"] == "not measured"
    assert threat()["outcome"] == "not measured"


def test_the_sentences_name_effect_and_detection():
    said = sentences(threat(row("same", "h2", None), row("more")))
    assert said == [
        "an effect",
        "it multiplies HTTP/3 : HTTP/2 (median latency) by 1.50 [1.47, 1.53]",
        "the check reordering warned or failed in 11 of 12 trials with it, in 0 of 12 without",
    ]
    assert sentences(threat(row("same")))[:2] == [
        "no effect on this machine",
        "HTTP/3 : HTTP/2 stays within 5 %: times 1.00 [0.98, 1.02]",
    ]
    both = [
        row("more", "h2", None, ratio=2.0, low=1.9, high=2.1),
        row("more", "h3", None, ratio=2.0, low=1.9, high=2.1),
    ]
    assert sentences(threat(*both, row("same")))[:3] == [
        "an effect",
        "HTTP/3 : HTTP/2 stays within 5 %: times 1.00 [0.98, 1.02]",
        "it multiplies the median latency of HTTP/2 by 2.00 [1.90, 2.10], of HTTP/3 by 2.00 [1.90, 2.10]",
    ]
    places = [
        row("undecided", place="all places"),
        row("more", "h2", None),
        *(row("more", place=f"path {n}") for n in range(5)),
    ]
    assert sentences(threat(*places))[2] == (
        "it multiplies the median latency of HTTP/3 : HTTP/2 (path 0) by 1.50 [1.47, 1.53], of HTTP/3 : HTTP/2 (path "
        "1) by 1.50 [1.47, 1.53], of HTTP/3 : HTTP/2 (path 2) by 1.50 [1.47, 1.53] and 3 more in the table"
    )
    cannot = not_measured(THREATS["conntrack"], "this kernel tracks nothing")
    assert sentences(cannot) == ["not measured here: this kernel tracks nothing"]


def test_a_place_that_goes_another_way_is_named():
    rows = [
        row("less", place="all places"),
        row("less", place="connection reused"),
        row("same", place="connection new"),
    ]
    assert sentences(threat(*rows))[1:3] == [
        "it multiplies HTTP/3 : HTTP/2 (median latency) by 0.50 [0.49, 0.51]",
        "not in every place: connection new 1.00 [0.98, 1.02]",
    ]
    assert "not in every place" not in " ".join(sentences(threat(*rows[:2])))


def test_what_a_check_said_of_other_trials_is_said_by_itself():
    one = threat(row("more"))
    (effect,) = one["effects"]
    of_others = {"check": "reordering", "off": 12, "off_trials": 12, "on": 3, "on_trials": 8}
    again = effect | {"title": "the time of a cycle"}  # the same trials, another metric
    one["effects"] = [effect | {"title": "a client"}, again, effect | {"title": "a server", "detected": of_others}]
    assert sentences(one)[-2:] == [
        "a client: the check reordering warned or failed in 11 of 12 trials with it, in 0 of 12 without",
        "a server: the check reordering warned or failed in 3 of 8 trials with it, in 12 of 12 without",
    ]


def test_what_is_open_says_why():
    open_ = threat(row("undecided", low=None, high=None, blocks=1))
    open_["effects"][0]["left_out"] = {"count": 10, "trials": 24, "checks": {"steady_state": 9, "path": 1}}
    assert sentences(open_)[:2] == [
        "not decided",
        "whether HTTP/3 : HTTP/2 changes is open: times 1.10 [no interval] (blocks: 1, too few for an interval; "
        "trials that do not count: 10 of 24, by steady state 9, path 1)",
    ]
    wide = threat(row("undecided", low=0.5, high=2.0))
    assert "[0.50, 2.00] (blocks: 4, too few for their variation)" in sentences(wide)[1]


def test_what_holds_by_itself_alone_says_so():
    said = sentences(threat(row("undecided", ratio=0.75, low=0.72, high=0.79), row("more")))
    assert said[1] == (
        "whether HTTP/3 : HTTP/2 changes is open: times 0.75 [0.72, 0.79] (blocks: 4, too few to hold among all that "
        "the threat's experiments compare)"
    )


def test_a_comparison_that_is_turned_round_is_said_from_both_sides():
    below, above = ({"value": by, "low": by * 0.9, "high": by * 1.1, "blocks": 4} for by in (0.8, 3.0))
    said = sentences(threat(row("more", off=below, on=above)))[1]
    assert said.endswith("reverses the comparison: 0.80 [0.72, 0.88] without it, 3.00 [2.70, 3.30] with it")
    near = below | {"high": 1.01}
    for off, on in ((near, above), (above, above), (below, None), (below | {"low": None, "high": None}, above)):
        assert "round" not in sentences(threat(row("more", off=off, on=on)))[1]


def test_no_infinity_is_left_for_json():
    assert _finite({"a": [1.0, float("inf")], "b": float("nan")}) == {"a": [1.0, None], "b": None}


def test_the_rate_from_which_a_program_measures_itself_is_said():
    step = dict.fromkeys(Step.__dataclass_fields__)
    steps = [
        step | {"rate_per_s": 100.0, "latency_ns": 5e6, "loud": 0, "trials": 6, "state": "keeps up"},
        step | {"rate_per_s": 800.0, "loud": 6, "trials": 6, "state": "departs", "used": 0.98},
    ]
    knee = dict.fromkeys(Knee.__dataclass_fields__)
    knee |= {"place": "client_cpu 10 %", "levels": {}, "arm": "h3", "against": "", "low": 100.0, "high": 800.0}
    knee["most_per_s"] = 410.0
    said = _model_lines([knee | {"steps": steps}])
    assert said[0] == (
        "client_cpu 10 %, HTTP/3: becomes the bottleneck between 100/s and 800/s. It did 410/s [no interval] at most."
    )
    assert "no answer in time, 98 % of its CPU time; the check warned or failed in 6 of 6: departs" in said[2]


def test_everything_can_be_shown(capsys, tmp_path):
    print_list(list(THREATS.values()))
    for one in THREATS.values():
        print_threat(one)
    print_measured([threat(row("more"), row("same", "h2", None, place="path far"))], tmp_path)
    shown = capsys.readouterr().out
    assert all(name in shown for name in THREATS)
    assert "HTTP/3 : HTTP/2" in shown
    (head,) = [line for line in shown.splitlines() if line.startswith("place")]
    assert head.split()[-1] == "blocks"
    rates = threat(row("less", "h2", None))
    rates["effects"][0] |= {"metric": "success_rate", "metric_label": "success rate", "unit": "share"}
    print_measured([rates], tmp_path)
    (head,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("success rate")]
    assert head.split()[-1] == "trials"  # of HTTP/2 two in a block


def test_a_threat_that_is_none_is_named(tmp_path):
    done = trifecta("threats", "measure", "contrack", cwd=tmp_path)
    assert (done.returncode, done.stderr.strip()) == (2, "trifecta: no threat 'contrack'; did you mean 'conntrack'?")


def test_only_the_experiments_asked_for_are_measured():
    every = list(THREATS.values())
    assert _chosen_experiments(every, []) == dict.fromkeys(every, ())
    cpu, early = THREATS["cpu-bound"], THREATS["round-trips"]
    assert _chosen_experiments(every, ["cpu-client", "early-data"]) == {
        early: ("round-trips",),
        cpu: ("cpu-bound", "cpu-server"),
    }
    with pytest.raises(UserError, match=r"option --only: no experiment 'cpu-clint' .* did you mean 'cpu-client'\?"):
        _chosen_experiments([cpu], ["cpu-clint"])


def test_what_no_block_has_is_not_passed_over():
    nothing = threat(row("undecided", ratio=None, low=None, high=None, blocks=0), row("more", "h2", None))
    assert sentences(nothing)[1] == "whether HTTP/3 : HTTP/2 changes is open (blocks: 0, too few for an interval)"
    failed = threat(row("undecided", ratio=None, low=None, high=None))
    assert "(blocks: 4, without a value where most requests failed)" in sentences(failed)[1]


def test_a_threat_without_traffic_says_what_its_procedure_would_have_concluded():
    one = {"outcome": "resampled", "reason": "wrong in 30 % of 3,000 conclusions", "effects": [], "check": None}
    assert sentences(one) == ["wrong in 30 % of 3,000 conclusions"], "of an earlier version"
    assert sentences(one | {"outcome": "effect", "resampled": []}) == ["an effect", one["reason"]]
    assert sentences(one | {"outcome": "no effect", "resampled": []})[0] == "no effect on this machine"


def test_an_experiment_that_cannot_run_ends_no_other(tmp_path):
    """And a quick reproduction leaves those out that go beyond what was published."""
    ran = []

    def run_one(study, folder, resume):
        ran.append(study.name)
        raise CannotError("this machine cannot")

    found = run_experiment(THREATS["cpu-bound"], tmp_path, run_one, quick=True)
    assert ran == ["cpu-bound", "cpu-client", "cpu-server"]
    assert found["outcome"] == "not measured"
    assert found["reason"].count("this machine cannot") == 3
    ran.clear()
    run_experiment(THREATS["cpu-bound"], tmp_path, run_one, quick=True, without=THREATS["cpu-bound"].by_itself)
    assert ran == ["cpu-bound"]
    left_out = run_experiment(THREATS["era"], tmp_path, run_one, quick=True, without=THREATS["era"].by_itself)
    assert ran == ["cpu-bound"]
    assert left_out["outcome"] == "not measured"
    assert left_out["reason"] == "`trifecta threats measure era` measures it"


def test_after_a_stop_no_further_experiment_begins(tmp_path):
    ran = []

    def run_one(study, folder, resume):
        ran.append(study.name)
        raise CannotError("this machine cannot")

    run_experiment(THREATS["cpu-bound"], tmp_path, run_one, quick=True, stop=lambda: bool(ran))
    assert ran == ["cpu-bound"]
