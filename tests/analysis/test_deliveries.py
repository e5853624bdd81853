"""A link that does something else than was asked is convicted: by its draws at once, by its counts over the run."""

import dataclasses
import json
import math

import numpy as np
import pytest

from tests.analysis.checks import sound
from tests.analysis.worlds import one_cell_study
from trifecta.analysis import deliveries, draws
from trifecta.analysis.checks import RUN_CHECKS
from trifecta.analysis.checks.evidence import RunEvidence
from trifecta.design import plan
from trifecta.design.model import PathSpec

PACKETS = 250


def path_of(*impairments, name="clean"):
    return PathSpec(name=name, rtt_ns=50_000_000, loss=0.01, forward=impairments, backward=impairments)


LOSS = {"kind": "loss", "probability": 0.01}


def test_the_draws_are_those_of_the_engine():
    # The published first output of SplitMix64 with state 0 (the same test is in engine/crates/link/src/random.rs).
    first = draws.units(0, np.zeros(1, dtype=np.uint64), np.zeros(1, dtype=np.uint64))[0]
    assert first == (0xE220_A839_7B1D_CDAF >> 11) / (1 << 53)


def reported(seed, asked, did, packets=PACKETS, echo=None):
    """The report of a link that was asked for ``asked``, did ``did`` and echoes ``echo``."""
    told = echo or asked

    def direction(key):
        tallies = []
        met = packets
        for index in range(len(did)):
            before = [{"met": t["met"], "hit": t["hit"]} for t in tallies]
            guess = draws.expected_hits(seed, key, did, packets, [*before, {"met": met, "hit": 0}])
            hit = guess[index] or 0
            tallies.append({"kind": did[index]["kind"], "asked": {k: v for k, v in told[index].items() if k != "kind"}})
            tallies[-1] |= {"met": met, "hit": hit}
            met += hit if did[index]["kind"] == "duplicate" else 0
            met -= hit if did[index]["kind"] in ("loss", "gilbert_elliott") else 0
        lost = sum(t["hit"] for t in tallies if t["kind"] in ("loss", "gilbert_elliott"))
        return {"wire_packets": packets, "lost": lost, "impairments": tallies}

    return {"seed": seed, "split": "merge", "a_to_b": direction("a_to_b"), "b_to_a": direction("b_to_a")}


def judged(link, path, seed):
    evidence = sound.evidence(path=path, link=link, probe=None)
    trial = dataclasses.replace(evidence.trial, seed=seed)
    from trifecta.analysis.checks import TRIAL_CHECKS

    return TRIAL_CHECKS["path"].function(dataclasses.replace(evidence, trial=trial))[0]


KINDS = [
    {"kind": "loss", "probability": 0.01},
    {"kind": "gilbert_elliott", "good_to_bad": 0.01, "bad_to_good": 0.3, "loss_good": 0.0, "loss_bad": 1.0},
    {"kind": "corrupt", "probability": 0.01},
    {"kind": "duplicate", "probability": 0.01},
    {"kind": "reorder", "probability": 0.01, "gap_ns": 2_000_000},
]


@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_a_link_that_does_twice_what_was_asked_and_says_otherwise_fails_in_one_trial(kind):
    asked = (KINDS[kind],)
    field = "probability" if "probability" in asked[0] else "good_to_bad"
    twice = ({**asked[0], field: 0.02},)
    path = path_of(*asked)
    assert judged(reported(5, asked, asked, 2000), path, 5).status != "fail"
    lied = judged(reported(5, asked, twice, 2000, echo=asked), path, 5)
    assert lied.status == "fail"
    assert "the plan's seed gives exactly" in lied.evidence


@pytest.mark.parametrize(
    ("field", "value"),
    [("delay_ns", 26_000_000), ("bits_per_s", 19_000_000), ("queue_bytes", 9_000), ("probability", 0.013)],
)
def test_a_configuration_that_is_not_the_plan_is_named_by_its_field(field, value):
    asked = sound.LOSSY
    told = [{**one, field: value} if field in one else one for one in asked]
    link = reported(5, asked, asked, echo=told)
    result = judged(link, sound.PATH, 5)
    assert result.status == "fail"
    assert f"{field} {value}, planned" in result.evidence
    for changed in ({"seed": 6}, {"split": "real"}):
        name = next(iter(changed))
        assert f"the link had {name}" in judged(reported(5, asked, asked) | changed, sound.PATH, 5).evidence
    other = reported(5, asked[:1], asked[:1])
    assert "the link had loss, planned loss, rate, delay" in judged(other, sound.PATH, 5).evidence


def test_a_link_that_loses_1_3_percent_for_1_fails_by_the_tenth_trial():
    """By its draws: 97 of 100 runs by the tenth trial of 250 packets each way, and no honest one ever."""
    asked, more = (LOSS,), ({**LOSS, "probability": 0.013},)
    caught = 0
    for run in range(100):
        trials = [judged(reported(run * 100 + t, asked, more, echo=asked), path_of(*asked), run * 100 + t)
                  for t in range(10)]  # fmt: skip
        caught += any("the plan's seed gives exactly" in trial.evidence for trial in trials)
    assert caught >= 97
    honest = [judged(reported(seed, asked, asked), path_of(*asked), seed) for seed in range(200)]
    assert not any("the plan's seed gives exactly" in trial.evidence for trial in honest)


def rows_of(hits, met=PACKETS, arms=("h1", "h2", "h2#aa", "h3")):
    """Trials of one cell, of which every arm of a block sees the same draws."""
    rows = []
    for block, (forward, backward) in enumerate(hits):
        link = {
            "seed": block,
            "a_to_b": {"impairments": [{"kind": "loss", "met": met, "hit": int(forward)}]},
            "b_to_a": {"impairments": [{"kind": "loss", "met": met, "hit": int(backward)}]},
        }
        rows += [
            {"trial": f"t{block}{arm}", "arm": arm, "block": block, "seed": block, "path": "clean",
             "cell": "c", "link_json": json.dumps(link)}
            for arm in arms
        ]  # fmt: skip
    return rows


def study_of(probability=0.01):
    return one_cell_study(paths={"clean": path_of({**LOSS, "probability": probability})})


def failed_at(study, hits):
    """The number of blocks after which the run convicts the path, looking after every one; None if never."""
    rows = rows_of(hits)
    for blocks in range(1, len(hits) + 1):
        if deliveries.lies(study, rows[: 4 * blocks]):
            return blocks
    return None


def test_counts_alone_are_judged_with_their_error_kept_under_looking():
    """At most 1 % of honest runs lose a path at any of 40 looks; a link that loses twice is convicted."""
    study, rng = study_of(), np.random.default_rng(1)
    false = sum(failed_at(study, rng.binomial(PACKETS, 0.01, (40, 2))) is not None for _ in range(150))
    assert false <= 4  # 1.5 expected at most
    found = [failed_at(study, rng.binomial(PACKETS, 0.02, (40, 2))) for _ in range(40)]
    assert all(found)
    assert np.median([one for one in found if one]) <= 12


def test_many_looks_at_one_stream():
    """2,000 honest runs of 60 looks at one stream: the promised error, and never more."""
    rng = np.random.default_rng(2)
    for probability in (0.001, 0.02):
        hits = np.cumsum(rng.binomial(PACKETS, probability, (2000, 60)), axis=1)
        needed = math.log(100)
        crossed = [
            any(draws.log_e_binomial(int(h), PACKETS * (i + 1), probability) >= needed for i, h in enumerate(run))
            for run in hits[:500]
        ]
        assert np.mean(crossed) <= 0.02


def test_what_was_requested_is_said_as_it_was_requested():
    stream = dataclasses.replace(deliveries.streams(study_of(), rows_of([(3, 2)] * 4))[0], asked=0.125)
    assert "requested 12.5 %" in stream.text


def test_arms_share_their_draws_and_are_not_counted_twice():
    stream = deliveries.streams(study_of(), rows_of([(3, 2)] * 4))[0]
    assert (stream.packets, stream.hits, stream.arm) == (4 * PACKETS, 12, None)


def test_an_error_that_one_arm_alone_meets_is_seen():
    rows = rows_of([(3, 2)] * 60)
    for row in rows:
        if row["arm"] == "h3":
            link = json.loads(row["link_json"])
            link["a_to_b"]["impairments"][0]["hit"] = 6
            link["a_to_b"]["impairments"][0]["met"] = PACKETS - 1  # so that it does not stand for its block
            row["link_json"] = json.dumps(link)
    assert "in the trials of h3" in deliveries.lies(study_of(), rows)["clean"]


def test_the_check_says_the_smallest_error_that_would_have_been_seen():
    study = study_of()
    rows = rows_of([(3, 2)] * 32)
    result = RUN_CHECKS["delivered"].function(RunEvidence(study, plan.cells(study), rows))[0]
    assert result.status == "pass"
    assert "lost 1.20 % of 8,000 packets, requested 1 %; an error of " in result.evidence
    small, large = (deliveries.streams(study, rows_of([(3, 2)] * n))[0].smallest for n in (300, 32))
    assert small < large < 0.02
    # Nine of ten links with that error are convicted by their counts alone.
    rng = np.random.default_rng(3)
    needed = deliveries.streams(study, rows)[0].log_e_to_fail
    hits = rng.binomial(8000, 0.01 + large, 500)
    assert 0.86 <= np.mean([draws.log_e_binomial(int(h), 8000, 0.01) >= needed for h in hits]) <= 0.96


def test_losses_in_bursts_do_not_convict_an_honest_link():
    channel = KINDS[1]
    study = one_cell_study(paths={"clean": path_of(channel)})
    rows = []
    for block in range(40):
        said = reported(block, (channel,), (channel,))
        rows += [{"trial": "t", "arm": "h1", "block": block, "seed": block, "path": "clean", "cell": "c",
                  "link_json": json.dumps(said)}]  # fmt: skip
    assert deliveries.lies(study, rows) == {}


def test_of_a_kind_whose_draws_are_not_known_nothing_is_counted(monkeypatch):
    """Nor of what comes behind it; what came before it is."""
    monkeypatch.setitem(draws.KINDS, "burst_of_rain", dataclasses.replace(draws.KINDS["loss"]))
    loss = {"kind": "loss", "probability": 0.5}
    tallies = [{"met": 1000, "hit": 0}]
    (hits,) = draws.expected_hits(7, "a_to_b", [loss], 1000, tallies)
    assert hits
    asked = [loss, {"kind": "burst_of_rain", "drops_per_s": 3}, loss]
    tallies += [{"met": 1000 - hits, "hit": 0}] * 2
    assert draws.expected_hits(7, "a_to_b", asked, 1000, tallies) == [hits, None, None]
