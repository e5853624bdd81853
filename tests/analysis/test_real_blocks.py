"""What the verdicts are worth on blocks of real races: coverage, false claims, and how many are decided."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from tests.analysis import real_blocks
from trifecta.analysis.confidence import confidence_sequence, median_log_ratio
from trifecta.analysis.verdict import verdicts
from trifecta.design import plan

ALPHA = 0.05
LOOKS = (6, 7, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60)
FEWEST = 25  # blocks of a comparison, to be drawn from
QUIET = (305, 306)  # seeds of the races that had the machine to themselves
NEARER = (1307097191, 22531140, 841816069, 462553142, 358145433, 1734407717, 290872361, 302520524)  # and nearer paths
TODAY = (414508169, 1274844669, 2003636376, 956247328, 713645709, 1070559727)  # likewise, as the race is now


def missed(logs, draws, seed):
    """How many of so many redrawn studies leave the true median out of their interval at any look."""
    truth = median_log_ratio(logs)
    assert truth is not None
    rng = np.random.default_rng(seed)
    count = 0
    for _ in range(draws):
        drawn = logs[rng.integers(0, len(logs), LOOKS[-1])]
        for look in LOOKS:
            interval = confidence_sequence(drawn[:look], ALPHA)
            low = -math.inf if interval.low is None else interval.low - 1e-12
            high = math.inf if interval.high is None else interval.high + 1e-12
            if not low <= truth <= high:
                count += 1
                break
    return count


def check_coverage(draws):
    """At least 95 % for each comparison, but for what chance does to 36 of them."""
    enough = {key: logs for key, logs in real_blocks.pooled().items() if len(logs) >= FEWEST}
    assert len(enough) >= 30
    limit = stats.binom.ppf(1 - 0.001 / len(enough), draws, ALPHA)
    outside = {real_blocks.name(key): missed(logs, draws, 41) for key, logs in enough.items()}
    assert max(outside.values()) <= limit, outside
    assert sum(outside.values()) <= 1.1 * ALPHA * draws * len(enough)


def test_the_median_of_real_blocks_is_covered_at_all_looks_from_6_to_60():
    check_coverage(20)


@pytest.mark.long
def test_the_median_of_real_blocks_is_covered_at_all_looks_in_many_draws():
    check_coverage(1000)


def of_race(rows):
    """The verdicts of one race at its end."""
    study = real_blocks.study()
    return verdicts(study, rows, plan.cells(study), fixed=False)


def contradicts(verdict, truth):
    """Whether the median of all races says otherwise; what they cannot tell from 1 is on neither side."""
    if verdict.verdict == "same":
        return abs(truth) > math.log1p(verdict.margin)
    return truth > 0 if verdict.verdict == "faster" else truth < 0


def test_replayed_races_decide_as_they_did_and_contradict_the_blocks_of_all_in_at_most_one_of_twenty():
    truths = {key: median_log_ratio(logs) for key, logs in real_blocks.pooled().items()}
    counts, wrong = {}, []
    for seed, rows in real_blocks.races().items():
        way = real_blocks.paths()[seed]
        claimed = [one for one in of_race(rows) if one.verdict != "undecided"]
        counts[seed] = len(claimed)
        wrong += [contradicts(one, truths[way, one.cell, one.arm, one.reference]) for one in claimed]
    assert min(counts[seed] for seed in QUIET) >= 20
    assert min(counts[seed] for seed in NEARER) >= 24
    assert np.median([counts[seed] for seed in NEARER]) >= 27
    assert min(counts[seed] for seed in TODAY) >= 25
    assert np.median([counts[seed] for seed in TODAY]) >= 30
    assert np.mean(wrong) <= ALPHA, sum(wrong)


def dealt(rows, rng):
    """The race as if no protocol differed: the values of each block dealt to its arms at random."""
    blocks = {}
    for row in rows:
        blocks.setdefault((row["cell"], row["block"]), []).append(row)
    found = []
    for own in blocks.values():
        order = rng.permutation(len(own))
        found += [
            {**row, "latency_p50_ns": own[place]["latency_p50_ns"], "valid": own[place]["valid"]}
            for row, place in zip(own, order, strict=True)
        ]
    return found


def test_where_the_arms_are_dealt_at_random_at_most_one_verdict_in_twenty_is_a_difference():
    rng = np.random.default_rng(43)
    shares = []
    for rows in real_blocks.races().values():
        claimed = [one for one in of_race(dealt(rows, rng)) if one.verdict != "undecided"]
        shares.append(sum(one.verdict != "same" for one in claimed) / max(1, len(claimed)))
    assert np.mean(shares) <= ALPHA, shares
