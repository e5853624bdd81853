"""How many blocks would decide: the observed blocks, repeated, until the e-process would decide."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.confidence import LAMBDAS, WEIGHTS, differences_of, log_factors

Floats = NDArray[np.float64]

HORIZON = 10  # a forecast beyond this many times the blocks seen is worth nothing
_UP, _DOWN = slice(0, len(LAMBDAS)), slice(len(LAMBDAS), None)


def blocks_to_difference(logs: Floats, log_e_to_claim: float) -> float:
    """Total blocks at which the e-process for a ratio of 1 reaches ``log_e_to_claim``; infinite if it does not grow."""
    if len(logs) < 2:
        return math.inf
    growth = _growth(logs, np.zeros(1))[0]
    return min(_blocks_to(growth[_UP], log_e_to_claim), _blocks_to(growth[_DOWN], log_e_to_claim))


def blocks_to_fit(logs: Floats, log_margin: float, alpha: float) -> float:
    """Total blocks at which the whole interval lies within the margin: both its ends are rejected."""
    if len(logs) < 2:
        return math.inf
    growth = _growth(logs, np.array([-log_margin, log_margin]))
    threshold = math.log(1 / alpha)
    # Above the lower end and below the upper end: evidence in one direction each.
    return max(_blocks_to(growth[0, _UP], threshold), _blocks_to(growth[1, _DOWN], threshold))


def within_horizon(needed: float, blocks: int) -> int | None:
    """A forecast as a whole number above the blocks seen; None beyond ten times those, where it is worth nothing."""
    if not math.isfinite(needed) or needed > HORIZON * blocks:
        return None
    return max(blocks + 1, math.ceil(needed))


def _growth(logs: Floats, thetas: Floats) -> Floats:
    """(thetas, 2 L): mean log evidence that a block added, for each ratio and bet."""
    differences = differences_of(logs)[None, :, :] - thetas[:, None, None]
    growth: Floats = log_factors(differences, final_scale=True).mean(axis=(1, 2))
    return growth


def _blocks_to(growth: Floats, threshold: float) -> float:
    """Blocks until the fastest growing bet alone, with its share of the mixture, reaches the threshold."""
    with np.errstate(divide="ignore"):
        blocks = np.where(growth > 1e-9, (threshold - np.log(WEIGHTS / 2)) / np.maximum(growth, 1e-9), math.inf)
    return float(blocks.min())
