"""Multiplicity: a study asks many questions at once, and may not claim an answer more often than promised.

Closed testing with the arithmetic mean of e-values (Vovk & Wang 2021): a comparison is claimed when the mean e-value of
every set of the study's comparisons that contains it reaches 1/alpha. The mean over the true null hypotheses is itself
a test martingale in the study's common time, whatever the dependence between them and whichever cell the planner chose
next, so at most a share alpha of studies ever makes a false claim, at any look.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_LARGEST = 300.0  # as a log: far beyond any level that is asked for, and far from overflow


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


def log_e_to_claim(log_e: Floats, index: int, alpha: float) -> float:
    """Log of the e-value that comparison ``index`` would need to be claimed if the others stayed as they are."""
    others = np.sort(np.exp(np.clip(np.delete(log_e, index), -_LARGEST, _LARGEST)))
    sums = np.concatenate([[0.0], np.cumsum(others)])
    needed = (1 / alpha) * np.arange(1, len(log_e) + 1) - sums
    return math.log(float(needed.max()))  # the set of the comparison alone asks for 1/alpha, so this is positive
