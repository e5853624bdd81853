"""How many blocks would decide: the observed blocks, repeated, until the e-process would decide."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.confidence import LAMBDAS, WEIGHTS, differences_of, log_factors

Floats = NDArray[np.float64]

HORIZON = 10  # a forecast beyond this many times the blocks seen is worth nothing
_UP, _DOWN = slice(0, len(LAMBDAS)), slice(len(LAMBDAS), None)


def blocks_needed(logs: Floats, log_margin: float, alpha: float, log_e_to_claim: float) -> int | None:
    """Total blocks at which the comparison would be decided if further blocks were like those seen.

    A difference is decided when the e-process for a ratio of 1 reaches ``log_e_to_claim``; "same" when those for both
    ends of the margin reach 1/alpha. An estimate from few blocks is rough; None when neither happens within ten times
    the blocks seen.
    """
    blocks = len(logs)
    if blocks < 2:
        return None
    thetas = np.array([0.0, -log_margin, log_margin])
    differences = differences_of(logs)[None, :, :] - thetas[:, None, None]
    growth = log_factors(differences, final_scale=True).mean(axis=(1, 2))  # (3, 2 L): log evidence a block
    difference = min(_blocks_to(growth[0, _UP], log_e_to_claim), _blocks_to(growth[0, _DOWN], log_e_to_claim))
    # Above the lower end and below the upper end of the margin: evidence in one direction each.
    threshold = math.log(1 / alpha)
    same = max(_blocks_to(growth[1, _UP], threshold), _blocks_to(growth[2, _DOWN], threshold))
    best = min(difference, same)
    if not math.isfinite(best) or best > HORIZON * blocks:
        return None
    return max(blocks + 1, math.ceil(best))


def _blocks_to(growth: Floats, threshold: float) -> float:
    """Blocks until the fastest growing bet alone, with its share of the mixture, reaches the threshold."""
    with np.errstate(divide="ignore"):
        blocks = np.where(growth > 1e-9, (threshold - np.log(WEIGHTS / 2)) / np.maximum(growth, 1e-9), math.inf)
    return float(blocks.min())
