"""Mixed protocols along a chain: which pair of protocols, at the edge and inside, is best, and what a change is worth.

The arm of a block is the protocol of the edge, the factor ``inside`` that of the other hops; ``same`` is the edge's.
Combinations stand in different cells, so they are compared as the programs of a league are: by Welch's test, Holm's
correction within a place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.contrasts import Contrast, adjusted, contrast
from trifecta.analysis.league import rank
from trifecta.analysis.means import Mean, geometric_mean

Floats = NDArray[np.float64]
SAME = "same"


@dataclass(frozen=True)
class Combination:
    """A protocol at the edge and one inside, with its rank as a range and its contrast to the baseline everywhere."""

    edge: str
    inside: str
    best: int
    worst: int
    mean: Mean
    to_baseline: Contrast | None  # None for the baseline itself


def normalised(edge: str, inside: str) -> tuple[str, str]:
    """The pair in one way of writing: ``same`` at the edge h3 is h3 inside, and so is ``h3+h3``."""
    spoken = {edge} if inside == SAME else set(inside.split("+"))
    return edge, spoken.pop() if len(spoken) == 1 else inside


def combinations(
    measured: Mapping[tuple[str, str], Floats], baseline: str, confidence: float, *, lower_is_better: bool
) -> list[Combination]:
    """All combinations of one place, best first; ``measured`` are the log values of their blocks by `normalised` pair.

    Without the baseline at the edge and inside there is nothing to compare with: then no contrast is given.
    """
    pairs = [pair for pair, logs in measured.items() if len(logs)]
    ranks = rank([measured[pair] for pair in pairs], 1 - confidence, lower_is_better)
    own = (baseline, baseline)
    others = [pair for pair in pairs if pair != own] if own in pairs else []
    against = adjusted([contrast(measured[pair], measured[own], confidence) for pair in others])
    to_baseline = dict(zip(others, against, strict=True))
    ranked = [
        Combination(*pair, best, worst, geometric_mean(measured[pair], confidence), to_baseline.get(pair))
        for pair, (best, worst) in zip(pairs, ranks, strict=True)
    ]
    sign = 1 if lower_is_better else -1
    # Without a finite value a combination is the worst, whichever way is better.
    ranked.sort(key=lambda one: (one.mean.value is None, sign * (one.mean.value or 0.0)))
    return sorted(ranked, key=lambda one: (one.best, one.worst))
