"""How many blocks would decide: the observed blocks, repeated, until the e-process would decide."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.confidence import LAMBDAS, WEIGHTS, log_factors

Floats = NDArray[np.float64]

HORIZON = 10  # a forecast beyond this many times the blocks seen is worth nothing


def blocks_needed(logs: Floats, log_margin: float, alpha: float, log_e_to_claim: float) -> int | None:
    """Total blocks at which the comparison would be decided if further blocks were like those seen.

    A difference is decided when the e-process for a ratio of 1 reaches ``log_e_to_claim``; "same" when those for both
    ends of the margin reach 1/alpha. An estimate from few blocks is rough; None when neither happens within ten times
    the blocks seen.
    """
    blocks = len(logs)
    if blocks < 2:
        return None
    shifted = np.repeat(logs[None, :, :], 3, axis=0)
    shifted[:, :, 0] -= np.array([0.0, -log_margin, log_margin])[:, None]
    growth = log_factors(shifted, final_scale=True).mean(axis=1)  # (3, 2 L): log evidence a block
    difference = _blocks_to(growth[0], log_e_to_claim)
    # Above the lower end and below the upper end of the margin: evidence in one direction each.
    up, down = slice(0, len(LAMBDAS)), slice(len(LAMBDAS), None)
    threshold = math.log(1 / alpha)
    same = max(_blocks_to(growth[1, up], threshold), _blocks_to(growth[2, down], threshold))
    best = min(difference, same)
    if not math.isfinite(best) or best > HORIZON * blocks:
        return None
    return max(blocks + 1, math.ceil(best))


def _blocks_to(growth: Floats, threshold: float) -> float:
    """Blocks until the fastest growing bet alone, with its share of the mixture, reaches the threshold."""
    weights = np.tile(WEIGHTS / 2, len(growth) // len(LAMBDAS))
    with np.errstate(divide="ignore"):
        blocks = np.where(growth > 1e-9, (threshold - np.log(weights)) / np.maximum(growth, 1e-9), math.inf)
    return float(blocks.min())
