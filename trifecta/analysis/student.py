"""Student's t by scipy.special: scipy.stats takes two seconds to load, which a run and a report would wait for."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=1024)
def t_quantile(share: float, freedom: float) -> float:
    """The quantile of Student's t."""
    from scipy import special

    return float(special.stdtrit(freedom, share))


def two_sided_p(t: float, freedom: float) -> float:
    """How often Student's t is as far from 0 as ``t``, on either side."""
    from scipy import special

    return 2 * float(special.stdtr(freedom, -abs(t)))
