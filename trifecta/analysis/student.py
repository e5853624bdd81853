"""Student's t and chi-squared by scipy.special: scipy.stats takes two seconds to load, for which a run would wait."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray


@lru_cache(maxsize=1024)
def t_quantile(share: float, freedom: float) -> float:
    """The quantile of Student's t."""
    from scipy import special

    return float(special.stdtrit(freedom, share))


def reach_of_mean(values: NDArray[np.float64], confidence: float) -> float:
    """Half the interval of the mean of two or more values, in their unit."""
    of_one = t_quantile((1 + confidence) / 2, len(values) - 1) * float(values.std(ddof=1))
    return of_one / math.sqrt(len(values))


def two_sided_p(t: float, freedom: float) -> float:
    """How often Student's t is as far from 0 as ``t``, on either side."""
    from scipy import special

    return 2 * float(special.stdtr(freedom, -abs(t)))


def share_above(t: float, freedom: float) -> float:
    """How often Student's t is above ``t``."""
    from scipy import special

    return float(special.stdtr(freedom, -t))


@lru_cache(maxsize=1024)
def chi2_quantile(share: float, freedom: float) -> float:
    """The quantile of chi-squared."""
    from scipy import special

    return float(special.chdtri(freedom, 1 - share))
