"""Claims among all comparisons of a study."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from tests.analysis.worlds import NOISES, trial_noise
from trifecta.analysis.confidence import log_e_process, mean_of_runs
from trifecta.analysis.family import adjusted_log_e, log_e_to_claim

CELLS, BLOCKS = 12, 200


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


def test_needed_e_value_is_where_the_claim_begins():
    log_e = np.log([0.3, 0.2, 50.0, 900.0, 4.0])
    needed = log_e_to_claim(log_e, 2, 0.05)
    for extra, claimed in ((-1e-6, False), (1e-6, True)):
        log_e[2] = needed + extra
        assert (adjusted_log_e(log_e)[2] >= math.log(20)) is np.bool_(claimed)


def test_huge_evidence_does_not_overflow():
    adjusted = adjusted_log_e(np.array([900.0, 3.5, 1200.0, 4.0]))
    assert (adjusted >= math.log(20)).all()
    assert np.isfinite(adjusted_log_e(np.array([900.0, -900.0]))).all()
    assert log_e_to_claim(np.array([900.0, 2.0]), 1, 0.05) == pytest.approx(math.log(20))
    assert len(adjusted_log_e(np.empty(0))) == 0


def study_evidence(noise, rng, effect=()):
    """(36, 200): log e of every comparison after every block of one study whose trials ran one after the other."""
    trials = trial_noise(noise, rng, CELLS * BLOCKS * 4).reshape(BLOCKS, CELLS, 4).transpose(1, 0, 2)
    h1, h2, h3, again = np.moveaxis(rng.permuted(trials, axis=-1), -1, 0)
    for cell, ratio in effect:
        h3[cell] += math.log(ratio)
    to_baseline = [
        mean_of_runs(np.stack([log_e_process(arm - h2), log_e_process(arm - again)], axis=-1)) for arm in (h1, h3)
    ]
    return np.concatenate([*to_baseline, log_e_process(h3 - h1)])


def claims_ever(log_e, true_effects=frozenset()):
    """Whether a comparison outside ``true_effects`` is claimed at any look."""
    looks = np.flatnonzero(log_e.max(axis=0) >= math.log(20))
    for look in looks:
        claimed = np.flatnonzero(adjusted_log_e(log_e[:, look]) >= math.log(20))
        if set(claimed.tolist()) - true_effects:
            return True
    return False


@pytest.mark.parametrize("noise", NOISES)
def test_at_most_one_study_in_twenty_claims_a_difference_that_is_not_there(noise):
    rng = np.random.default_rng(2)
    studies = 300
    false = sum(claims_ever(study_evidence(noise, rng)) for _ in range(studies))
    assert false <= stats.binom.ppf(0.999, studies, 0.05), f"{false} of {studies} studies"


@pytest.mark.long
@pytest.mark.parametrize("noise", NOISES)
def test_at_most_one_study_in_twenty_claims_a_difference_that_is_not_there_many_studies(noise):
    rng = np.random.default_rng(3)
    studies = 4000
    false = sum(claims_ever(study_evidence(noise, rng)) for _ in range(studies))
    assert false <= stats.binom.ppf(0.999, studies, 0.05), f"{false} of {studies} studies"


def test_true_differences_in_some_cells_do_not_make_false_claims_in_others():
    rng = np.random.default_rng(4)
    studies, half = 200, [(cell, 1.5) for cell in range(6)]
    true = {index for cell in range(6) for index in (CELLS + cell, 2 * CELLS + cell)}
    evidence = [study_evidence("log-normal", rng, half) for _ in range(studies)]
    assert sum(claims_ever(one, true) for one in evidence) <= stats.binom.ppf(0.999, studies, 0.05)
    final = adjusted_log_e(evidence[0][:, -1]) >= math.log(20)
    assert true <= set(np.flatnonzero(final).tolist())


def test_without_the_family_most_studies_would_claim_one():
    rng = np.random.default_rng(5)
    alone = [(study_evidence("log-normal", rng).max(axis=1) >= math.log(20)).any() for _ in range(100)]
    assert np.mean(alone) > 0.4
