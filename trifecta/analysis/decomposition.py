"""Is it the protocol or the program? The variation of the effect, split over protocol, server, client and noise.

The effect is the log ratio of an arm to the baseline within a block. In one place (all factors but server and client)

    effect = protocol + server + client + server x client + noise,

and its mean square, which is 0 when no protocol ever differs from another, is the sum of the mean squares of these
parts. The parts are quadratic forms of the means of the programs' cells, so that cells with few blocks count as much as
those to which the planner gave many. Each form has a scaled noncentral chi-squared distribution; inverting it gives a
confidence distribution of the part, and draws from these give intervals of the shares. See docs/methodology.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.estimate import Row, by_cell, pair_blocks
from trifecta.analysis.mean_squares import MeanSquares, parts_of
from trifecta.analysis.pooled import PlaceSplit, pooled
from trifecta.analysis.programs import Program, place_of, program_of, programs_are_arms
from trifecta.analysis.shares import Decomposition, Share, shares_of
from trifecta.design import plan
from trifecta.design.metric import Metric
from trifecta.design.metrics import METRICS
from trifecta.design.model import Study
from trifecta.design.phrases import counted

Floats = NDArray[np.float64]

_FEWEST_BLOCKS = 2
_LARGEST_LOG_RATIO = math.log(1_000)


def decompose(study: Study, rows: Sequence[Row], metric: str | None = None) -> list[Decomposition]:
    """Every arm against the baseline: over all places first, then by path, then in every place.

    Empty when the study has one server and one client only: then there is nothing to distinguish. So it is where
    servers or clients are what is compared.
    """
    chosen = METRICS[metric or study.metric]
    cells = by_cell(rows)
    programs = {cell: program_of(here[0]) for cell, here in cells.items()}
    if programs_are_arms(study) or len(set(programs.values())) < 2:
        return []
    places: dict[str, list[str]] = {}
    for cell in cells:
        places.setdefault(place_of(cell), []).append(cell)
    baseline = study.baseline.level
    arms = plan.other_levels(study)

    def one_place(job: tuple[int, str, str]) -> PlaceSplit:
        number, place, arm = job
        rng = np.random.default_rng(plan.stable_seed("decomposition", study.seed, number))
        effects = {}
        left_out = []
        for cell in places[place]:
            values, reason = _effects(cell, cells[cell], chosen, arm, baseline)
            if reason:
                left_out.append(f"{programs[cell].words()}: {reason}")
            else:
                effects[programs[cell]] = values
        one, parts = split(effects, study.confidence, rng, place=place, arm=arm, reference=baseline)
        return PlaceSplit(replace(one, left_out=tuple(left_out)), parts, effects)

    jobs = [(number, place, arm) for number, place in enumerate(places) for arm in arms]
    # Every job has a generator of its own, so that the result does not depend on which is done first. Most of the time
    # goes into quantiles of the noncentral chi-squared, for which Python is not held.
    with ThreadPoolExecutor() as pool:
        splits = list(pool.map(one_place, jobs))
    return [*pooled(splits, study.confidence), *(one.decomposition for one in splits)]


def _effects(cell: str, rows: Sequence[Row], metric: Metric, arm: str, baseline: str) -> tuple[Floats, str]:
    """The log ratios of a cell, or why it does not count."""
    pair = pair_blocks(cell, rows, metric, arm=arm, reference=baseline, baseline=baseline)
    if pair.censored:
        return np.empty(0), f"{pair.censored} of {pair.blocks} blocks hold a trial without a finite value"
    if pair.blocks < _FEWEST_BLOCKS:
        return np.empty(0), counted(pair.blocks, "usable block")
    return pair.log_ratios(), ""


def split(
    effects: Mapping[Program, Floats],
    confidence: float,
    rng: np.random.Generator,
    *,
    place: str = "",
    arm: str = "",
    reference: str = "",
) -> tuple[Decomposition, MeanSquares | None]:
    """Split the log ratios of the programs, two blocks or more each, into parts; None without two programs."""
    programs = list(effects)
    blocks = sum(len(values) for values in effects.values())
    means = np.array([float(values.mean()) for values in effects.values()])
    ratio = math.exp(float(means.mean())) if len(means) else None
    parts = parts_of(effects, rng) if len(programs) > 1 else None
    shares: tuple[Share, ...] = ()
    elsewhere: tuple[float | None, float | None] = (None, None)
    if parts is not None and (parts.estimates > 0).any():
        shares = shares_of(parts.names, parts.estimates, parts.draws, parts.population, confidence)
        elsewhere = _bounds(parts.elsewhere, confidence)
    else:
        parts = None
    decomposition = Decomposition(
        place=place,
        arm=arm,
        reference=reference,
        shares=shares,
        ratio=ratio,
        elsewhere_low=elsewhere[0],
        elsewhere_high=elsewhere[1],
        servers=tuple(dict.fromkeys(program.server for program in programs)),
        clients=tuple(dict.fromkeys(program.client for program in programs)),
        cells=len(programs),
        blocks=blocks,
    )
    return decomposition, parts


def _bounds(draws: Floats, confidence: float) -> tuple[float, float]:
    """Log ratios to an interval of ratios; a bound beyond a factor of 1000 is none: 0 or infinite."""
    low, high = (float(end) for end in np.quantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2]))
    return (
        math.exp(low) if low > -_LARGEST_LOG_RATIO else 0.0,
        math.exp(high) if high < _LARGEST_LOG_RATIO else math.inf,
    )
