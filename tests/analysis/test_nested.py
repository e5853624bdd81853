"""Blocks nested in nodes: intervals that hold for such nodes, claims that no node makes alone, and one node as ever."""

import dataclasses
import json
import math

import numpy as np
import pytest
from scipy import stats

from tests.analysis.clusters import cluster_rows, nested_logs
from tests.analysis.gates import gate_of
from tests.analysis.worlds import make_rows, one_cell_study
from trifecta.analysis.confidence import confidence_sequence, judge, log_e_below, median_log_ratio
from trifecta.analysis.estimate import pair_blocks
from trifecta.analysis.family import level_of, log_e_to_claim
from trifecta.analysis.gate import judge_gate
from trifecta.analysis.nested import FEW, Nested, interval_of, middle_of, nested
from trifecta.analysis.student import chi2_quantile, share_above
from trifecta.analysis.verdict import verdicts
from trifecta.design import plan
from trifecta.design.metrics import METRICS

ALPHA, WITHIN = 0.05, 0.05
NEEDED = math.log(2 / ALPHA)
BLOCKS = {2: 48, 3: 40, 8: 20, 16: 12}  # a node
BETWEEN = (0.0, 0.3 * WITHIN, WITHIN, 3 * WITHIN)


def by_pair(judged):
    return {(one.arm, one.reference): one for one in judged}


def ever(nodes, between, runs, seed):
    """How many of so many clusters without a difference claim one at any look: blocks alone, and with their nodes."""
    rng, alone, whole = np.random.default_rng(seed), 0, 0
    looks = sorted({max(math.ceil(6 / nodes), round(BLOCKS[nodes] * share)) for share in (0.1, 0.2, 0.4, 0.6, 0.8, 1)})
    for _ in range(runs):
        logs, names = nested_logs(rng, nodes, BLOCKS[nodes], between, WITHIN)
        blocks = [judge(logs[: nodes * look], ALPHA) for look in looks]
        claimed = [max(one.log_e_above, one.log_e_below) >= NEEDED for one in blocks]
        alone += any(claimed)
        among = [Nested(logs[: nodes * look], tuple(names[: nodes * look])) for look in looks]
        whole += any(
            max(one.log_e(low=0.0), one.log_e(high=0.0)) >= NEEDED
            for one, enough in zip(among, claimed, strict=True)
            if enough
        )
    return alone, whole


@pytest.mark.parametrize("nodes", [3, 8])
@pytest.mark.parametrize("between", [0.0, 3 * WITHIN])
def test_nodes_that_differ_make_no_difference_of_arms(nodes, between):
    """At any of six looks, and of blocks taken for independent it is not so: the test has teeth."""
    runs = 100
    alone, whole = ever(nodes, between, runs, seed=nodes)
    assert whole <= stats.binom.ppf(0.999, runs, ALPHA), (alone, whole)
    if between >= 3 * WITHIN:
        assert alone > 0.1 * runs


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("nodes", BLOCKS)
@pytest.mark.parametrize("between", BETWEEN)
def test_nodes_that_differ_make_no_difference_of_arms_in_many_clusters(nodes, between):
    runs = 1000
    _, whole = ever(nodes, between, runs, seed=100 + nodes)
    assert whole <= stats.binom.ppf(0.999, runs, ALPHA), whole


@pytest.mark.parametrize("nodes", BLOCKS)
def test_the_interval_holds_the_truth_for_such_nodes(nodes):
    runs, rng = 200, np.random.default_rng(nodes)
    held = alone = 0
    for _ in range(runs):
        logs, names = nested_logs(rng, nodes, 12, 3 * WITHIN, WITHIN)
        logs[:, 0] += math.log(1.3)
        interval, blocks = interval_of(logs, names, ALPHA), confidence_sequence(logs, ALPHA)
        held += (interval.low or -9) <= math.log(1.3) <= (interval.high or 9)
        alone += (blocks.low or -9) <= math.log(1.3) <= (blocks.high or 9)
    assert held >= stats.binom.ppf(0.001, runs, 1 - ALPHA)
    assert alone < 0.93 * runs


def test_blocks_of_unequal_number_and_noise_are_covered_too():
    """Half of the nodes have six times as many blocks as the others, which are three times as noisy."""
    runs, rng, wrong = 300, np.random.default_rng(5), 0
    counts, noises = (24, 24, 24, 4, 4, 4), (0.03, 0.03, 0.03, 0.09, 0.09, 0.09)
    names = [f"n{node}" for node, count in enumerate(counts) for _ in range(count)]
    for _ in range(runs):
        own = rng.normal(0, 0.05, 6)
        parts = [rng.normal(0, noise, (count, 3)) for count, noise in zip(counts, noises, strict=True)]
        logs = np.concatenate(parts)
        logs[:, 0] += np.repeat(own, counts)
        wrong += interval_of(logs, names, ALPHA).excludes_zero()
    assert wrong <= stats.binom.ppf(0.999, runs, ALPHA)


def test_many_nodes_that_agree_decide_as_their_blocks_do():
    rng, decided = np.random.default_rng(3), 0
    for _ in range(50):
        logs, names = nested_logs(rng, 16, 2, 0.01, 0.02)
        logs[:, 0] += math.log(1.1)
        among = nested(logs, names)
        decided += among.weakest(low=0.0)[0] >= NEEDED and among.log_e(low=0.0) >= NEEDED
    assert decided >= 45


def test_a_claim_is_made_exactly_where_the_interval_makes_it():
    rng = np.random.default_rng(2)
    for claimed in (1, 7, 30):
        level, needed = level_of(36, claimed, ALPHA), log_e_to_claim(36, claimed, ALPHA)
        for _ in range(30):
            logs, names = nested_logs(rng, 5, 8, 0.01, 0.02)
            logs[:, 0] += rng.choice([0.0, 0.03, 0.1])
            among = nested(logs, names)
            interval = among.interval(confidence_sequence(logs, level), level)
            differs = max(among.log_e(low=0.0), among.log_e(high=0.0)) >= needed - 1e-9
            assert differs == interval.excludes_zero()
            within = among.log_e(-0.05, 0.05) >= needed - 1e-9
            assert within == interval.within(0.05)


def test_the_estimate_is_the_mean_of_the_nodes_medians_and_lies_in_the_interval():
    logs, names = nested_logs(np.random.default_rng(8), 4, 9, 0.1, 0.02)
    medians = [median_log_ratio(logs[[name == own for name in names]]) for own in sorted(set(names))]
    assert middle_of(logs, names) == pytest.approx(np.mean(medians))
    interval = interval_of(logs, names, ALPHA)
    assert interval.low < np.mean(medians) < interval.high
    assert middle_of(logs, [""] * len(names)) == median_log_ratio(logs)


@pytest.mark.parametrize("between", [0.0, 0.02, 0.1])
def test_how_much_nodes_differ_is_known_within_its_interval(between):
    runs, rng, held, values = 300, np.random.default_rng(4), 0, []
    for _ in range(runs):
        logs, names = nested_logs(rng, 8, 12, between, 0.02)
        spread = nested(logs, names).spread(0.95)
        held += spread.low <= between <= spread.high
        values.append(spread.value)
    assert held >= stats.binom.ppf(0.001, runs, 0.93)
    assert np.median(values) == pytest.approx(between, abs=0.25 * between + 0.005)


def test_two_nodes_hardly_say_how_much_they_differ_and_a_block_each_not_at_all():
    logs, names = nested_logs(np.random.default_rng(6), 2, 12, 0.1, 0.02)
    spread = nested(logs, names).spread(0.95)
    assert spread.high is None or spread.high > 5 * spread.value
    logs, names = nested_logs(np.random.default_rng(6), 8, 1, 0.1, 0.02)
    spread = nested(logs, names).spread(0.95)
    assert (spread.value, spread.low) == (None, 0.0)
    assert spread.high > 0


def test_a_node_without_a_finite_median_leaves_all_open():
    logs, names = nested_logs(np.random.default_rng(6), 4, 8, 0.01, 0.02)
    logs[[name == "n01" for name in names], 0] = math.inf
    among = nested(logs, names)
    assert (among.middle, among.spread(0.95)) == (None, None)
    assert interval_of(logs, names, ALPHA) == confidence_sequence(logs[:0], ALPHA)
    assert among.log_e(low=0.0) == -math.inf


def test_student_and_chi_squared_are_scipys():
    for share, freedom in ((0.025, 1), (0.5, 3), (0.975, 15)):
        assert chi2_quantile(share, freedom) == pytest.approx(stats.chi2.ppf(share, freedom))
        assert share_above(1.7, freedom) == pytest.approx(stats.t.sf(1.7, freedom))


@pytest.mark.parametrize("node", [None, "", "rack-1"])
def test_one_node_changes_nothing_to_the_last_bit(node):
    study = one_cell_study()
    rows = make_rows(study, lambda cell, protocol: {"h1": 1.3e6, "h2": 1e6, "h3": 1.01e6}[protocol], 20, sigma=0.03)
    assert verdicts(study, [{**row, "node": node} for row in rows]) == verdicts(study, rows)
    assert {one.nodes for one in verdicts(study, rows)} == {None}
    assert nested(np.zeros((3, 2)), ["a"] * 3) is None


ORDERED = {"h1": 1.5e6, "h2": 1e6, "h2#aa": 1e6, "h3": 0.7e6}


def test_nodes_that_agree_decide_and_say_how_much_they_differ():
    study = one_cell_study()
    shift, blocks = {"a": 1.0, "b": 1.02, "c": 0.99}, dict.fromkeys("abc", 12)
    rows = cluster_rows(
        study, lambda arm, node: ORDERED[arm] * (shift[node] if arm == "h3" else 1), blocks, sigma=0.005
    )
    found = by_pair(verdicts(study, rows))
    assert found["h3", "h2"].verdict == "faster"
    assert found["h1", "h2"].verdict == "slower"
    one = found["h3", "h2"]
    assert (one.nodes, one.left_out_nodes_json) == (3, None)
    assert one.node_sd_low <= one.node_sd <= one.node_sd_high
    assert 0.005 < one.node_sd < 0.03
    assert "between 3 nodes the ratio differs by " in one.reason
    assert one.low < one.ratio < one.high
    assert one.ratio == pytest.approx(0.7, rel=0.02)
    assert (one.mean_low, one.fixed_low) == (None, None), "they take every block for independent"
    alone = by_pair(verdicts(study, [{**row, "node": None} for row in rows]))["h3", "h2"]
    assert one.low < alone.low and alone.high < one.high


def test_no_verdict_stands_that_one_node_decides():
    study = one_cell_study()

    def judged(blocks):
        rows = cluster_rows(study, lambda arm, node: ORDERED[arm], blocks, sigma=0.005)
        return by_pair(verdicts(study, rows))["h3", "h2"]

    one = judged({"a": 30, "b": 3})
    assert one.verdict == "undecided"
    assert one.high < 1, "by its interval it would be"
    assert "without node a it is undecided" in one.reason
    assert one.likely is None
    assert judged({"a": 30, "b": 12}).verdict == "faster"


def test_the_weakest_is_what_is_left_without_the_node_that_says_most():
    rng = np.random.default_rng(11)
    nodes = np.array(["c", "a", "b", "d", "e"])[rng.integers(0, 5, 80)]
    logs = rng.normal(0, 0.02, (80, 3)) + np.column_stack([np.where(nodes == "d", -0.4, -0.03), *np.zeros((2, 80))])
    among = nested(logs, nodes.tolist())
    error, found = among.error * math.sqrt(5 / 4), []
    for place, name in enumerate(among.names):
        rest, middle = logs[nodes != name], np.delete(among.middles, place).mean()
        of_nodes = -math.log(2 * stats.t.sf((0.0 - middle) / error, 4))
        found.append((min(float(log_e_below(rest, np.zeros(1))[0]), of_nodes), name))
    assert among.weakest(high=0.0) == (pytest.approx(min(found)[0], rel=1e-9), min(found)[1])
    assert min(found)[1] == "d"


def test_one_node_of_eight_that_differs_decides_nothing():
    """Seven see no difference, the eighth has HTTP/3 twice as slow: most of all blocks of it, and it is loud."""
    study = one_cell_study()
    blocks = {f"n{node}": 60 if node == 3 else 6 for node in range(8)}
    rows = cluster_rows(study, lambda arm, node: 2e6 if (arm, node) == ("h3", "n3") else 1e6, blocks, sigma=0.02)
    alone = by_pair(verdicts(study, [{**row, "node": None} for row in rows]))["h3", "h2"]
    assert alone.verdict == "slower", "as one machine it would be decided"
    one = by_pair(verdicts(study, rows))["h3", "h2"]
    assert (one.verdict, one.nodes, one.left_out_nodes_json) == ("undecided", 8, None)
    assert "8 nodes differ too much" in one.reason
    assert one.blocks_needed is None, "what is missing is not blocks"
    assert one.node_sd > 0.1


def test_of_a_cluster_the_blocks_of_one_node_decide_nothing():
    study = one_cell_study()
    rows = cluster_rows(study, lambda arm, node: ORDERED[arm], {"a": 20}, sigma=0.005)
    lost = [{**row, "node": "b", "valid": False, "block": 99, "trial": "t99999"} for row in rows[:1]]
    one = by_pair(verdicts(study, rows + lost))["h3", "h2"]
    assert (one.verdict, one.nodes) == ("undecided", 1)
    assert "all of its blocks are of node a" in one.reason
    assert by_pair(verdicts(study, rows))["h3", "h2"].verdict == "faster", "but a run on it alone may"


def test_what_a_lost_node_left_of_a_block_is_not_paired_with_what_was_done_again():
    study = one_cell_study()
    rows = cluster_rows(study, lambda arm, node: 1e6 if node == "a" else 5e6, {"a": 4, "b": 4})
    first = [row for row in rows if row["block"] == 0 and row["arm"] == "h3"]
    torn = [{**row, "node": "b", "latency_p50_ns": 9_000_000} for row in first]
    pairs = [
        pair_blocks("c", each, METRICS["latency_p50_ns"], arm="h3", reference="h2", baseline="h2")
        for each in (rows, rows + torn)
    ]
    assert rows[0]["node"] == "a"
    np.testing.assert_array_equal(pairs[0].logs, pairs[1].logs)
    assert pairs[1].incomplete_blocks == 1
    assert pairs[0].nodes == pairs[1].nodes


def test_same_is_said_of_nodes_that_agree_and_not_of_nodes_that_differ():
    study = one_cell_study()
    blocks = {f"n{node}": 4 for node in range(8)}
    agree = by_pair(verdicts(study, cluster_rows(study, lambda arm, node: 1e6, blocks, sigma=0.005)))
    assert agree["h3", "h2"].verdict == "same"
    shift = {name: math.exp(0.08 * (-1) ** place) for place, name in enumerate(blocks)}
    rows = cluster_rows(study, lambda arm, node: 1e6 * (shift[node] if arm == "h3" else 1), blocks, sigma=0.005)
    assert by_pair(verdicts(study, rows))["h3", "h2"].verdict == "undecided"


@pytest.mark.parametrize("nodes", [3, FEW + 2])
def test_verdicts_of_clusters_without_a_difference_are_seldom_one(nodes):
    study, wrong, runs = one_cell_study(), 0, 60
    arms = {"h1": 0, "h2": 1, "h2#aa": 1, "h3": 2}
    for seed in range(runs):
        own = np.random.default_rng(1000 + seed).normal(0, 0.05, (nodes, 3))
        rows = cluster_rows(
            study,
            lambda arm, node, own=own: 1e6 * math.exp(own[int(node), arms[arm]]),
            {str(node): 8 for node in range(nodes)},
            seed=seed,
            sigma=0.02,
        )
        wrong += any(one.verdict in ("faster", "slower") for one in verdicts(study, rows, fixed=False))
    assert wrong <= stats.binom.ppf(0.999, runs, 0.08), "of three comparisons each"


def test_a_gate_knows_of_nodes():
    gate = gate_of(["slower:3%"])
    study, cells = gate.study, plan.cells(gate.study)

    def rows(blocks, worse_on):
        return cluster_rows(
            study, lambda arm, node: 1.5e6 if arm == gate.candidate and node in worse_on else 1e6, blocks, sigma=0.01
        )

    loud = rows({"a": 6, "b": 60, "c": 6}, "b")
    assert judge_gate(gate, [{**row, "node": None} for row in loud], cells).state == "fail"
    assert judge_gate(gate, loud, cells).state == "undecided"
    assert judge_gate(gate, rows(dict.fromkeys("abc", 12), "abc"), cells).state == "fail"
    lone = judge_gate(gate, rows({"a": 30, "b": 2}, "ab"), cells)
    assert lone.state == "undecided"
    assert "a node alone does not decide" in lone.tests[0].reason
    parted = judge_gate(gate, rows({"a": 12, "b": 12}, "b"), cells).tests[0]
    assert parted.reason == (
        "2 nodes are too few, or differ too much, to say which side of the limit such nodes lie on: more nodes would "
        "tell"
    )
    assert parted.needed is None, "no forecast of blocks where nodes are missing"


def test_the_words_of_a_verdict_are_plain_values():
    study = one_cell_study()
    rows = cluster_rows(study, lambda arm, node: ORDERED[arm], {"a": 8, "b": 8})
    assert json.loads(json.dumps([dataclasses.asdict(one) for one in verdicts(study, rows)], allow_nan=False))
