"""The e-process block by block, as the definition has it; the package works out its last value alone."""

import numpy as np

from trifecta.analysis.confidence import LAMBDAS, mix


def log_e_process(votes):
    """Log of the one-sided e-process after every block (..., T) of votes (..., T)."""
    with np.errstate(divide="ignore"):
        steps = np.maximum(np.log(1 + votes[..., None] * LAMBDAS), -1e6)
    return mix(np.cumsum(steps, axis=-2))
