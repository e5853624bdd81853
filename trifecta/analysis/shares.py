"""What a decomposition says: shares of the mean square of an effect, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Share:
    """A part of the mean square of the effect, 0..1, with an interval for the programs that were measured.

    ``population_low`` and ``population_high`` are for servers and clients of which those measured are a random sample;
    None where there is no telling. ``without_low`` and ``without_high`` bound the share with any one path, server or
    client left out.
    """

    part: str
    share: float
    low: float
    high: float
    population_low: float | None = None
    population_high: float | None = None
    without_low: float | None = None
    without_high: float | None = None


@dataclass(frozen=True)
class Decomposition:
    """The effect of one arm in one place, or over several (``pooled``), split into its parts.

    ``ratio`` is the geometric mean over the programs, each counting the same. ``elsewhere_low`` and ``elsewhere_high``
    bound the ratio to be expected of a server and client that were not measured, if those measured are a random
    sample. ``left_out`` names the cells that do not count here and why; ``shares`` is empty when nothing is left.
    ``weighs`` is what has the larger share, where that holds with any one path, server and client left out.
    """

    place: str
    arm: str
    reference: str
    shares: tuple[Share, ...]
    ratio: float | None
    elsewhere_low: float | None
    elsewhere_high: float | None
    servers: tuple[str, ...]
    clients: tuple[str, ...]
    cells: int
    blocks: int
    left_out: tuple[str, ...] = ()
    pooled: bool = False
    weighs: Literal["protocol", "program"] | None = None

    def share(self, part: str) -> Share | None:
        """A part by its name."""
        return next((one for one in self.shares if one.part == part), None)


def shares_of(
    names: Sequence[str], estimates: Floats, draws: Floats, population: Floats | None, confidence: float
) -> tuple[Share, ...]:
    """Shares from mean squares: estimates (parts,), draws and those for any such programs (parts, draws)."""
    least, drawn = np.maximum(estimates, 0.0), np.maximum(draws, 0.0)
    shares = least / least.sum()
    drawn = drawn / drawn.sum(axis=0)
    wide = None if population is None else population / population.sum(axis=0)
    ends = [(1 - confidence) / 2, (1 + confidence) / 2]
    all_shares = []
    for i, name in enumerate(names):
        low, high = (float(end) for end in np.quantile(drawn[i], ends))
        share = float(shares[i])
        one = Share(name, share, min(low, share), max(high, share))
        if wide is not None:
            bottom, top = (float(end) for end in np.quantile(wide[i], ends))
            one = replace(one, population_low=bottom, population_high=top)
        all_shares.append(one)
    return tuple(all_shares)
