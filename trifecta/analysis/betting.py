"""The bets of the confidence sequences (`confidence`), and the fewest blocks that they can decide anything from.

Without numpy, whose threads must not start before the lab's private namespaces are entered.
"""

from __future__ import annotations

import math
from functools import lru_cache

# Tuned by simulation and on real races (tests/analysis/test_power.py, test_real_blocks.py): a bet of everything decides
# in the fewest blocks that signs allow, six, and by its weight in six where 25 of 36 comparisons agree in all of them;
# the smaller ones survive blocks that disagree and find small effects within 200 blocks.
SHARES = (0.1, 0.3, 0.7, 1.0)
WEIGHTS = (0.02, 0.03, 0.07, 0.88)


@lru_cache
def fewest_blocks(confidence: float) -> int:
    """The blocks before which no verdict is possible at this level, were every block to say the same: 6 at 95 %."""
    needed = 2 / (1 - confidence)
    return next(
        blocks
        for blocks in range(1, 1000)
        if math.fsum(weight * (1 + share) ** blocks for share, weight in zip(SHARES, WEIGHTS, strict=True)) >= needed
    )
