"""Multiplicity: a study asks many questions at once, and may not claim an answer more often than promised.

Each comparison can end in one of three claims: faster, slower, same. Whatever the truth, at least one of the three is
true, so at most two of a comparison's three null hypotheses are. A study of m comparisons therefore has at most 2 m
true nulls, and the e-BH procedure (Wang & Ramdas 2022) that makes k claims when k e-values reach 2 m / (alpha k) keeps
the false discovery rate, the expected share of false claims among those made, at alpha: at any stopping time, whatever
the dependence between comparisons and whichever cell the planner chose next. The intervals that go with k claims are
those at level alpha k / m (e-BY: Xu, Wang & Ramdas 2022): a claim is made exactly where that interval says so.

Where one false claim of all is already too many (does the baseline differ from itself?), `adjusted_log_e` is closed
testing with the arithmetic mean of e-values (Vovk & Wang 2021) instead.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_LARGEST = 300.0  # as a log: far beyond any level that is asked for, and far from overflow


def claims(log_e: Floats, alpha: float) -> int:
    """How many of the comparisons can be claimed: ``log_e`` has the best one-sided claim of each; e-BH."""
    ordered = np.sort(log_e)[::-1]
    count = len(ordered)
    enough = [k for k in range(1, count + 1) if ordered[k - 1] >= log_e_to_claim(count, k, alpha) - 1e-9]
    return max(enough, default=0)


def log_e_to_claim(comparisons: int, claimed: int, alpha: float) -> float:
    """Log of the e-value that each of ``claimed`` claims among so many comparisons needs."""
    return math.log(2 * comparisons / (alpha * claimed))


def level_of(comparisons: int, claimed: int, alpha: float) -> float:
    """The level of the intervals that stand beside ``claimed`` claims among so many comparisons."""
    return alpha * max(1, claimed) / max(1, comparisons)


def adjusted_log_e(log_e: Floats) -> Floats:
    """For each e-value (as a log) the log of the smallest mean over the sets that contain it.

    The smallest mean of a set of n + 1 that contains k takes k and the n smallest others.
    """
    count = len(log_e)
    if count == 0:
        return log_e
    values = np.exp(np.clip(log_e, -_LARGEST, _LARGEST))
    order = np.argsort(values, kind="stable")
    smallest = np.concatenate([[0.0], np.cumsum(values[order])])
    sizes = np.arange(1, count + 1)
    adjusted = np.empty(count)
    for place, k in enumerate(order):
        # Sums of the n smallest others, n = 0 .. count - 1; those up to `place` do not contain k, later ones do.
        others = smallest[:count].copy()
        others[place + 1 :] = smallest[place + 2 :] - values[k]
        adjusted[k] = ((values[k] + others) / sizes).min()
    result: Floats = np.log(adjusted)
    return result
