"""The duality gap bounds the distance to the optimum, from any point, and closes at it."""

from __future__ import annotations

import numpy as np
import pytest
from linear.datasets import LOSSES, OPTIMA, golden_problem, random_problem

from minitorch.linear import minimize
from minitorch.linear.certificate import certify, duality_gap, gradient_mapping
from minitorch.linear.losses import Loss, Squared
from minitorch.linear.problem import Problem

PENALTIES = [(0.0, 0.3), (0.05, 0.0), (0.05, 0.3)]


def _targets(loss: Loss, outputs: int, n: int, rng: np.random.Generator) -> np.ndarray:
    return random_problem(loss, outputs, n=n, seed=int(rng.integers(100))).y


@pytest.mark.parametrize("loss, outputs", LOSSES, ids=lambda v: getattr(v, "name", None))
class TestLosses:
    def test_slopes_are_derivatives(self, loss, outputs):
        rng = np.random.default_rng(0)
        y, z = _targets(loss, outputs, 50, rng), 2 * rng.standard_normal((50, outputs))
        slopes = loss.evaluate(z, y)[1]
        for k in range(outputs):
            h = np.zeros_like(z)
            h[:, k] = 1e-6
            numeric = (loss.evaluate(z + h, y)[0] - loss.evaluate(z - h, y)[0]) / 2e-6
            np.testing.assert_allclose(slopes[:, k], numeric, atol=1e-6)

    def test_curvatures_bound_second_derivatives(self, loss, outputs):
        rng = np.random.default_rng(1)
        y, z = _targets(loss, outputs, 200, rng), 3 * rng.standard_normal((200, outputs))
        direction = rng.standard_normal((200, outputs))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        h = 1e-6
        slopes = loss.evaluate(z, y)[1]
        change = (loss.evaluate(z + h * direction, y)[1] - slopes) / h
        second = (change * direction).sum(axis=1)
        curvatures = loss.curvatures(slopes, y)
        assert np.all(second <= curvatures + 1e-5)
        assert np.all(curvatures <= loss.curvature + 1e-12)

    def test_fenchel_is_the_gap_of_the_conjugate(self, loss, outputs):
        """l(z) + l*(a) - a z with a the slope at another point u: l*(a) = a u - l(u)."""
        rng = np.random.default_rng(2)
        y = _targets(loss, outputs, 50, rng)
        z, u = rng.standard_normal((2, 50, outputs))
        (at_z, slopes), (at_u, dual) = loss.evaluate(z, y), loss.evaluate(u, y)
        conjugate = (dual * u).sum(axis=1) - at_u
        expected = at_z + conjugate - (dual * z).sum(axis=1)
        np.testing.assert_allclose(loss.fenchel(z, slopes, dual, y), expected, atol=1e-14)
        np.testing.assert_array_equal(loss.fenchel(z, slopes, slopes, y), 0)

    def test_balance_sums_to_zero_in_the_domain(self, loss, outputs):
        rng = np.random.default_rng(3)
        y, z = _targets(loss, outputs, 50, rng), rng.standard_normal((50, outputs))
        weights = rng.random(50)
        weights /= weights.sum()
        dual = loss.balance(loss.evaluate(z, y)[1], y, weights)
        np.testing.assert_allclose(weights @ dual, 0, atol=1e-15)
        if loss.name == "softmax":
            p = dual.copy()
            p[np.arange(50), y.astype(int)] += 1
            assert p.min() >= 0
            np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-14)
        elif outputs == 1 and loss.name != "squared":
            share = -y * dual[:, 0]
            assert share.min() >= 0
            assert share.max() <= 1

    def test_extreme_margins_stay_finite(self, loss, outputs):
        y = _targets(loss, outputs, 4, np.random.default_rng(0))
        for size in (1e3, 1e5):
            z = np.full((4, outputs), size) * np.array([1, -1, 1, -1])[:, None]
            z[:, 0] *= -1
            values, slopes = loss.evaluate(z, y)
            assert np.isfinite(values).all()
            assert np.isfinite(slopes).all()
            dual = loss.balance(slopes, y, np.full(4, 0.25))
            assert np.isfinite(loss.fenchel(z, slopes, dual, y)).all()


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("l1, l2", PENALTIES)
@pytest.mark.parametrize("loss, outputs", LOSSES, ids=lambda v: getattr(v, "name", None))
def test_the_gap_bounds_the_distance_everywhere(loss, outputs, l1, l2, intercept):
    rng = np.random.default_rng(5)
    problem = random_problem(
        loss, outputs, l1=l1, l2=l2, intercept=intercept, weights=rng.random(23) + 0.1
    )
    best = minimize(problem, tol=1e-13, max_epochs=20_000)
    assert best.converged
    optimum = best.certificate.objective
    for size in (0.0, 1e-3, 0.1, 1.0, 10.0):
        coef = best.coef + size * rng.standard_normal(best.coef.shape)
        b = best.intercept + size * rng.standard_normal(outputs) * intercept
        at = problem.evaluate(coef, b)
        gap = duality_gap(problem, coef, at)
        assert gap >= at.objective - optimum - 1e-12
        if size <= 1e-3:
            assert gap < 0.05  # and closes with it


def test_at_the_golden_optima_the_gap_is_closed():
    from linear.datasets import GOLDEN

    pytest.importorskip("sklearn")
    minimisers = np.load(GOLDEN / "saga_optima.npz")
    for key in OPTIMA:
        problem = golden_problem(key)
        w = minimisers[key]
        coef, b = (w.T, np.zeros(problem.outputs)) if w.ndim == 2 else (w[None], np.zeros(1))
        if problem.intercept:
            coef, b = w[None, :-1], w[-1:]
        coef = np.ascontiguousarray(coef)
        found = certify(problem, coef, problem.evaluate(coef, b), step=0.1)
        assert found.objective == pytest.approx(OPTIMA[key]["objective"], abs=1e-15)
        assert found.gap < 1e-12
        assert found.kkt < 1e-14


def test_gradient_mapping_is_the_gradient_without_a_penalty():
    problem = random_problem(Squared(), 1, intercept=True)
    coef = np.random.default_rng(0).standard_normal((1, 7))
    at = problem.evaluate(coef, np.zeros(1))
    mapping, of_intercept = gradient_mapping(problem, coef, at, step=0.1)
    np.testing.assert_allclose(mapping, at.gradient, atol=1e-14)
    np.testing.assert_array_equal(of_intercept, at.gradient_intercept)
    found = certify(problem, coef, at, step=0.1)
    assert found.gap == np.inf
    assert 0 < found.relative < np.inf


def test_least_squares_without_a_penalty_reaches_the_normal_equations():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((40, 5)) * [1, 10, 0.1, 1, 1], rng.standard_normal((40, 2))
    problem = Problem(np.ascontiguousarray(X / X.std(axis=0)), y, Squared(), 2)
    result = minimize(problem, tol=1e-10)
    assert result.converged
    expected = np.linalg.lstsq(problem.X, y, rcond=None)[0].T
    np.testing.assert_allclose(result.coef, expected, atol=1e-8)


def test_a_step_that_diverges_is_not_called_converged():
    problem = random_problem(Squared(), 1, l2=0.1)
    result = minimize(problem, step_size=1e3, max_epochs=100, sampling="uniform")
    assert not result.converged
    assert not result.certificate.relative <= 1


def test_a_bad_measurement_of_the_curvature_is_taken_back():
    """A floor of zero promises a curvature that is not there; the checks notice and recover."""
    import minitorch.linear.sampling as sampling

    problem = golden_problem("digits_bin_l1_C1_noint")
    floor, safety = sampling._FLOOR, sampling._SAFETY
    try:
        sampling._FLOOR, sampling._SAFETY = 0.01, 0.3
        result = minimize(problem, tol=1e-6, max_epochs=400)
    finally:
        sampling._FLOOR, sampling._SAFETY = floor, safety
    steps = [check.step for check in result.history]
    rises = np.diff([check.objective for check in result.history]) > 0
    assert rises.any()
    assert min(steps[int(rises.argmax()) + 1 :]) < max(steps)
    assert result.converged
