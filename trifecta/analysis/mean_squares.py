"""The mean squares of the parts of an effect: estimates, and draws from their confidence distributions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trifecta.analysis.layout import Layout
from trifecta.analysis.programs import Program

Floats = NDArray[np.float64]

NOISE = "noise"
DRAWS = 1_000
_LARGE_FORM = 3_000.0  # beyond this the root of a noncentral chi-squared is as good as normal
_TINY = 1e-300


@dataclass(frozen=True)
class MeanSquares:
    """Mean squares of the parts (log ratio squared): estimates, and draws (parts, draws).

    Both may be negative, so that sums over many comparisons stay right; who is done adding takes those for 0.

    ``draws`` are for the programs that were measured, ``population`` and ``elsewhere`` (log ratios of a program that
    was not) for those of which they are a random sample.
    """

    names: tuple[str, ...]
    estimates: Floats
    draws: Floats
    population: Floats
    elsewhere: Floats


def estimates_of(effects: Mapping[Program, Floats]) -> dict[str, float]:
    """The mean squares of the parts alone, by name; may be negative (`MeanSquares`)."""
    layout, means, of_means, noise = _moments(effects)
    estimates = {
        term.name: float(means @ term.form @ means - np.trace(term.form @ of_means)) / len(means)
        for term in layout.terms
    }
    return estimates | {NOISE: noise}


def _moments(effects: Mapping[Program, Floats]) -> tuple[Layout, Floats, Floats, float]:
    """Layout, means of the cells, their covariance, and the mean noise of a block."""
    means = np.array([float(values.mean()) for values in effects.values()])
    layout = Layout.of([(program.server, program.client) for program in effects])
    counts = np.array([len(values) for values in effects.values()])
    variances = np.array([float(values.var(ddof=1)) for values in effects.values()])
    return layout, means, np.diag(variances / counts), float(variances.mean())


def parts_of(effects: Mapping[Program, Floats], rng: np.random.Generator) -> MeanSquares:
    """Split the log ratios of the programs, two blocks or more each."""
    layout, means, of_means, noise = _moments(effects)
    variances = np.array([float(values.var(ddof=1)) for values in effects.values()])
    wobble = _noise_wobble(list(effects.values()), variances, rng)
    draws = [
        _noncentral(float(means @ term.form @ means), _chi_squared(term.form, of_means), wobble, rng) / len(means)
        for term in layout.terms
    ]
    population, elsewhere = _population(layout, means, of_means, wobble, rng)
    return MeanSquares(
        names=(*(term.name for term in layout.terms), NOISE),
        estimates=np.array(list(estimates_of(effects).values())),
        draws=np.vstack([*draws, noise * wobble]),
        population=np.vstack([*population, noise * wobble]),
        elsewhere=elsewhere,
    )


def _noise_wobble(values: Sequence[Floats], variances: Floats, rng: np.random.Generator) -> Floats:
    """Draws of true noise to estimated noise: how well the mean of the cells' variances is known.

    Satterthwaite's degrees of freedom, fewer where the noise has heavier tails than a normal distribution (Box 1953;
    Bonett 2006).
    """
    freedom = np.array([len(one) - 1.0 for one in values])
    squared = float((variances**2 / freedom).sum())
    if squared <= 0:
        return np.ones(DRAWS)
    residuals = np.concatenate([one - one.mean() for one in values])
    scales = np.concatenate([np.full(len(one), len(one) / (len(one) - 1.0)) for one in values])
    fourth = float((residuals**4 * scales**2).sum()) * len(residuals)
    excess = max(0.0, fourth / float((residuals**2 * scales).sum()) ** 2 - 3.0)
    degrees = 2.0 / (2.0 * squared / float(variances.sum()) ** 2 + excess / len(residuals))
    result: Floats = degrees / rng.chisquare(degrees, DRAWS)
    return result


def _chi_squared(form: Floats, covariance: Floats) -> tuple[float, float]:
    """(scale, degrees of freedom) of the chi-squared that has the form's mean and variance without any effect."""
    product = form @ covariance
    mean, half_variance = float(np.trace(product)), float(np.trace(product @ product))
    if mean <= 0 or half_variance <= 0:
        return _TINY, float(np.trace(form))
    return half_variance / mean, mean**2 / half_variance


def _noncentral(form: float, shape: tuple[float, float], wobble: Floats, rng: np.random.Generator) -> Floats:
    """Draws from the confidence distribution of scale times noncentrality, given the value of a quadratic form.

    A draw U of a uniform variable stands for the noncentrality with which the form falls below its value with
    probability U. If even without any effect it would do so less often, there is none, and the draw is as negative as
    the form falls short of the value that it would then have.
    """
    from scipy import special

    scale, freedom = shape
    scales = np.maximum(scale * wobble, _TINY)
    uniform = np.clip(rng.random(len(wobble)), 1e-12, 1 - 1e-12)
    size = form / scales
    none = uniform >= special.chdtr(freedom, size)
    # The root of the noncentrality is the form's root less a normal deviate, exactly so with one degree of freedom; the
    # others add half of themselves over the root. Beyond 3,000 it is right to 1e-4, and 1,000 times as quick.
    root = np.sqrt(size) - special.ndtri(uniform)
    large = (root - (freedom - 1) / (2 * np.maximum(root, 1.0))) ** 2
    quantile = np.where(none, size - special.chdtri(freedom, 1 - uniform), large)
    some = ~none & (size < _LARGE_FORM)
    if some.any():
        quantile[some] = special.chndtrinc(size[some], freedom, uniform[some])
    result: Floats = quantile * scales
    return result


def _population(
    layout: Layout, means: Floats, of_means: Floats, wobble: Floats, rng: np.random.Generator
) -> tuple[list[Floats], Floats]:
    """Draws of the parts, and of the effect of another program, if servers and clients are a random sample.

    Generalized pivotal quantities (Weerahandi 1993): a mean square over its chi-squared stands for its expectation.
    """
    variances: dict[str, Floats] = {}
    last: Floats = np.zeros(len(wobble))  # expectation of the mean square of the interaction beyond its noise
    for term in reversed(layout.terms[1:]):
        size = float(np.trace(term.adjusted))
        square = float(means @ term.adjusted @ means) / rng.chisquare(size, len(wobble))
        own = float(np.trace(term.adjusted @ of_means)) / size * wobble
        variances[term.name] = np.maximum(0.0, square - own - last) / term.weight
        if term.crossed:
            last = np.maximum(0.0, square - own)
    total_noise = float(np.trace(of_means)) / len(means) ** 2 * wobble
    of_mean = total_noise + sum(
        (variances[term.name] * term.mean_weight for term in layout.terms[1:]), start=np.zeros(len(wobble))
    )
    middle = float(means.mean())
    protocol = np.maximum(0.0, _noncentral(middle**2, (1.0, 1.0), of_mean, rng))
    spread = sum(variances.values(), start=np.zeros(len(wobble)))
    normal = rng.standard_normal((2, len(wobble)))
    elsewhere = middle + normal[0] * np.sqrt(of_mean) + normal[1] * np.sqrt(spread)
    return [protocol, *(variances[term.name] for term in layout.terms[1:])], elsewhere
