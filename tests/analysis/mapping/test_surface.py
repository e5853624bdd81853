"""The surface against plain formulas, and what its intervals hold."""

import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from trifecta.analysis.mapping import likelihood
from trifecta.analysis.mapping import surface as surfaces
from trifecta.analysis.mapping.documents import read_surface, surface_document
from trifecta.analysis.mapping.likelihood import Point, as_data, log_likelihood
from trifecta.analysis.mapping.surface import fit

POINTS = [Point(0.1, 0.2, (0.1, 0.2, 0.15)), Point(0.9, 0.1, (0.4,)), Point(0.5, 0.8, (-0.2, -0.1))]
UNKNOWNS = np.array(
    [[-1.5, -0.7, 0.2, -4.0, -2.3, 0.3, -0.4, 0.1, 0.2], [-1.0, 0.0, -0.5, -5.0, -1.9, 0.0, 0.5, 0.0, 0.1]]
)


def _kernel(line, a, b):
    a, b = np.array(a), np.array(b)
    amplitude, lengths, rough = math.exp(line[0]), np.exp(line[1:3]), math.exp(line[3])
    distance = math.sqrt(5) * math.hypot(*((a - b) / lengths))
    smooth = amplitude**2 * (1 + distance + distance**2 / 3) * math.exp(-distance)
    plane = likelihood.LEVEL_SD**2 + likelihood.SLOPE_SD**2 * float((2 * a - 1) @ (2 * b - 1))
    return smooth + plane + rough**2 * bool((a == b).all())


def _scatter(line, place):
    x, y = 2 * np.array(place) - 1
    return math.exp(line[4] + line[5] * x + line[6] * y + line[7] * x * x + line[8] * y * y)


def _blocks(line):
    """Every block by itself: places, values, and their covariance."""
    places = [(p.x, p.y) for p in POINTS for _ in p.values]
    values = np.array([value for p in POINTS for value in p.values])
    covariance = np.array([[_kernel(line, a, b) for b in places] for a in places])
    return places, values, covariance + np.diag([_scatter(line, place) ** 2 for place in places])


def test_the_likelihood_is_that_of_every_block_by_itself():
    found = log_likelihood(as_data(POINTS), UNKNOWNS)
    direct = [multivariate_normal(cov=_blocks(line)[2]).logpdf(_blocks(line)[1]) for line in UNKNOWNS]
    assert found[0] - found[1] == pytest.approx(direct[0] - direct[1], rel=1e-9)


def test_the_prediction_is_the_conditional_normal():
    surface = surfaces.Surface(as_data(POINTS), UNKNOWNS)
    for target in ((0.3, 0.4), (0.9, 0.1)):  # between the points, and at one, which shares its roughness
        prediction = surface.at(np.array([target]))
        for draw, line in enumerate(UNKNOWNS):
            places, values, covariance = _blocks(line)
            cross = np.array([_kernel(line, target, place) for place in places])
            weights = np.linalg.solve(covariance, cross)
            assert prediction.means[draw, 0] == pytest.approx(float(weights @ values), rel=1e-8)
            variance = _kernel(line, target, target) - float(weights @ cross)
            assert prediction.sds[draw, 0] == pytest.approx(math.sqrt(variance), rel=1e-6)
            joint, covariances = surface.jointly(np.array([target, (0.0, 0.0)]), 2)
            assert joint[draw, 0] == pytest.approx(prediction.means[draw, 0])
            assert covariances[draw, 0, 0] == pytest.approx(variance, rel=1e-6)


def test_quantiles_are_those_of_the_mixture():
    prediction = surfaces.Prediction(np.array([[0.0], [1.0]]), np.array([[0.1], [0.2]]))
    for share in (0.025, 0.5, 0.9):
        found = float(prediction.quantile(share)[0])
        assert (norm.cdf(found / 0.1) + norm.cdf((found - 1) / 0.2)) / 2 == pytest.approx(share, abs=2e-3)
    assert prediction.above(0.0)[0] == pytest.approx(0.75, abs=1e-3)


def test_intervals_hold_as_often_as_they_say():
    rng = np.random.default_rng(5)
    held = total = 0
    for seed in range(6):
        slope, bend, shift = rng.normal(0, 0.3, 3)

        def truth(x, y, slope=slope, bend=bend, shift=shift):
            return shift + slope * x + bend * np.sin(3 * y)

        places = rng.random((30, 2))
        points = [Point(x, y, tuple(truth(x, y) + 0.1 * math.exp(y) * rng.standard_normal(2))) for x, y in places]
        targets = rng.random((60, 2))
        prediction = fit(points, seed).at(targets)
        real = truth(targets[:, 0], targets[:, 1])
        held += int(((prediction.quantile(0.025) <= real) & (real <= prediction.quantile(0.975))).sum())
        total += len(targets)
    assert 0.9 <= held / total <= 1.0
    assert float(np.median(prediction.sd)) < 0.12  # and they are not just wide


def test_the_same_points_give_the_same_surface():
    assert np.array_equal(fit(POINTS).draws, fit(POINTS).draws)


def test_a_block_without_an_end_counts_as_the_largest():
    data = as_data([Point(0.5, 0.5, (math.inf, 0.0)), Point(0.1, 0.1, ())])
    assert data.means.tolist() == [likelihood.LARGEST_LOG / 2]
    with pytest.raises(ValueError, match="at least one block"):
        fit([Point(0.1, 0.1, ())])


def test_a_surface_reads_back_and_a_damaged_one_is_refused():
    surface = fit(POINTS)
    document = surface_document(surface)
    places = np.array([(0.2, 0.3)])
    assert read_surface(document).at(places).mean == pytest.approx(surface.at(places).mean)
    for damage in ({"counts": [1.0]}, {"draws": [[1.0]]}, {"means": [math.nan] * 3}, {"unknowns": []}):
        with pytest.raises(ValueError, match="surface"):
            read_surface(document | damage)
