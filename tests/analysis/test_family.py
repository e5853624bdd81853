"""Claims among all comparisons of a study."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from tests.analysis.e_process import log_e_process
from tests.analysis.worlds import NOISES, trial_noise
from trifecta.analysis.confidence import confidence_sequence, judge, log_e_within
from trifecta.analysis.family import adjusted_log_e, claims, level_of, log_e_to_claim

ALPHA, MARGIN = 0.05, math.log(1.05)
CELLS, BLOCKS = 12, 100


def test_adjusted_e_value_is_the_smallest_mean_over_the_sets_that_contain_it():
    rng = np.random.default_rng(1)
    for _ in range(30):
        e_values = np.exp(rng.normal(0, 3, 6))
        expected = [
            min(
                np.mean([e_values[i] for i in members])
                for size in range(1, 7)
                for members in itertools.combinations(range(6), size)
                if k in members
            )
            for k in range(6)
        ]
        assert np.exp(adjusted_log_e(np.log(e_values))) == pytest.approx(expected)


def test_huge_evidence_does_not_overflow():
    adjusted = adjusted_log_e(np.array([900.0, 3.5, 1200.0, 4.0]))
    assert (adjusted >= math.log(20)).all()
    assert np.isfinite(adjusted_log_e(np.array([900.0, -900.0]))).all()
    assert len(adjusted_log_e(np.empty(0))) == 0
    assert claims(np.array([900.0, -math.inf]), ALPHA) == 1


def test_the_more_are_claimed_the_less_each_needs_and_all_that_are_claimed_have_it():
    assert log_e_to_claim(36, 1, ALPHA) == pytest.approx(math.log(1440))
    assert log_e_to_claim(36, 36, ALPHA) == pytest.approx(math.log(40))
    assert claims(np.log([1439.0] + [1.0] * 35), ALPHA) == 0
    assert claims(np.log([1441.0] + [1.0] * 35), ALPHA) == 1
    assert claims(np.log([50.0] * 30 + [1.0] * 6), ALPHA) == 30  # 48 suffice for thirty
    assert claims(np.log([50.0] * 28 + [1.0] * 8), ALPHA) == 0  # 51.4 are needed for 28
    assert claims(np.empty(0), ALPHA) == 0


def test_a_claim_is_made_exactly_where_the_interval_of_the_family_makes_it():
    rng = np.random.default_rng(2)
    for claimed in (1, 7, 30):
        level, needed = level_of(36, claimed, ALPHA), log_e_to_claim(36, claimed, ALPHA)
        for _ in range(40):
            logs = rng.normal([rng.choice([0.0, 0.03, 0.1]), 0, 0], 0.02, (rng.integers(6, 25), 3))
            found, interval = judge(logs, ALPHA), confidence_sequence(logs, level)
            differs = max(found.log_e_above, found.log_e_below) >= needed - 1e-9
            assert differs == interval.excludes_zero()
            assert (log_e_within(logs, MARGIN) >= needed - 1e-9) == interval.within(MARGIN)


def study_evidence(noise, rng, effects=()):
    """(36, BLOCKS) log e-values for above 1, below 1 and within the margin, after every block of one study."""
    trials = trial_noise(noise, rng, CELLS * BLOCKS * 4).reshape(BLOCKS, CELLS, 4).transpose(1, 0, 2)
    h1, h2, h3, again = np.moveaxis(rng.permuted(trials, axis=-1), -1, 0)
    for cell, ratio in effects:
        h3[cell] += math.log(ratio)

    def process(theta, sign):
        def votes(arm, *references):
            differences = np.stack([sign * (arm - reference - theta) for reference in references])
            return np.where(differences > 0, 1.0, -1.0).mean(axis=0)

        every = np.concatenate([votes(h1, h2, again), votes(h3, h2, again), votes(h3, h1)])
        return log_e_process(every)

    return process(0.0, 1), process(0.0, -1), np.minimum(process(-MARGIN, 1), process(MARGIN, -1))


def shares_false(noise, rng, effects=(), every=5):
    """(largest share at any look, share at the end) of false claims among those made, in one study."""
    above, below, within = study_evidence(noise, rng, effects)
    truth = np.zeros(3 * CELLS)
    for cell, ratio in effects:
        truth[[CELLS + cell, 2 * CELLS + cell]] = math.log(ratio)
    shares = []
    for look in range(5, BLOCKS, every):
        kinds = np.stack([above[:, look], below[:, look], within[:, look]])
        differs = np.maximum(kinds[0], kinds[1]) >= math.log(2 / ALPHA)
        kinds[2, differs] = -math.inf  # a difference inside the margin is named as one
        best, which = kinds.max(axis=0), kinds.argmax(axis=0)
        count = claims(best, ALPHA)
        made = best >= log_e_to_claim(len(best), max(count, 1), ALPHA) - 1e-9
        right = np.choose(which, [truth > 1e-12, truth < -1e-12, np.abs(truth) <= MARGIN])
        shares.append((made & ~right).sum() / max(1, made.sum()))
    return max(shares), shares[-1]


SOME = [(cell, ratio) for cell, ratio in enumerate((1.5, 1.2, 1.1, 0.9, 0.7, 1.06))]


def of_studies(noise, studies, effects=()):
    rng = np.random.default_rng(4)
    return np.array([shares_false(noise, rng, effects) for _ in range(studies)])


def check(noise, studies):
    none = of_studies(noise, studies)[:, 1]
    assert (none > 0).sum() <= stats.binom.ppf(0.999, studies, ALPHA), noise
    some = of_studies(noise, studies, SOME)[:, 1]
    assert some.mean() <= ALPHA + 3 * some.std() / math.sqrt(studies), noise


@pytest.mark.parametrize("noise", NOISES)
def test_at_most_one_verdict_in_twenty_is_false(noise):
    check(noise, 60)


@pytest.mark.long
@pytest.mark.parametrize("noise", NOISES)
def test_at_most_one_verdict_in_twenty_is_false_in_many_studies(noise):
    check(noise, 1000)


@pytest.mark.parametrize(("paths", "cells"), [(12, 3), (3, 12)])
def test_a_planner_that_knows_how_the_blocks_of_shared_losses_end_claims_no_more(paths, cells):
    """Losses alone decide each block, the same in all cells of a path: one cell goes ahead, and every other one ends
    where its evidence was greatest. No ratio differs from 1, so each claim is false.
    """
    rng, studies, wrong = np.random.default_rng(6), 500, 0
    for _ in range(studies):
        votes = rng.choice([-1.0, 1.0], (paths, BLOCKS))
        evidence = np.maximum(log_e_process(votes), log_e_process(-votes))
        ends = np.where(np.arange(cells) == 0, evidence[:, -1:], evidence.max(axis=1, keepdims=True))
        wrong += claims(ends.ravel(), ALPHA) > 0
    assert wrong <= stats.binom.ppf(0.999, studies, ALPHA)


def test_without_the_family_most_studies_would_claim_a_difference_that_is_not_there():
    rng = np.random.default_rng(5)
    alone = []
    for _ in range(60):
        above, below, _ = study_evidence("log-normal", rng)
        alone.append((np.maximum(above, below) >= math.log(2 / ALPHA)).any())
    assert np.mean(alone) > 0.4
