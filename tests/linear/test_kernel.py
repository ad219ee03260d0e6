"""The C++ loop against the plain one: same indices, same weights, dense and CSR."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from linear.datasets import LOSSES, random_problem

from minitorch import _core
from minitorch.linear.losses import Logistic, Squared
from minitorch.linear.plain import State, saga_steps
from minitorch.linear.problem import Problem
from minitorch.linear.sampling import SAMPLINGS, Sampler, step_size
from minitorch.linear.solver import _run_native, minimize

sparse = pytest.importorskip("scipy.sparse")
PENALTIES = [(0.0, 0.0), (0.0, 0.3), (0.05, 0.0), (0.05, 0.3)]


def _ids(value: Any) -> str | None:
    return getattr(value, "name", None)


def _random_state(problem: Problem, seed: int) -> State:
    rng = np.random.default_rng(seed)
    coef = rng.standard_normal((problem.outputs, problem.features)).astype(problem.dtype)
    return State(problem, coef, rng.standard_normal(problem.outputs).astype(problem.dtype))


def _difference(a: State, b: State) -> float:
    names = ("coef", "intercept", "table", "mean", "mean_intercept")
    return max(float(np.abs(getattr(a, n) - getattr(b, n)).max()) for n in names)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("l1, l2", PENALTIES)
@pytest.mark.parametrize("loss, outputs", LOSSES, ids=_ids)
def test_native_equals_plain_and_sparse_equals_dense(loss, outputs, l1, l2, intercept):
    rng = np.random.default_rng(1)
    problem = random_problem(
        loss, outputs, l1=l1, l2=l2, intercept=intercept, weights=rng.random(23) + 0.1
    )
    problem.intercept_rate = 0.7
    lazy = copy.copy(problem)
    lazy.X = sparse.csr_matrix(problem.X)
    for name in ("rows", "squared_norms", "lipschitz", "column_scales"):
        lazy.__dict__.pop(name, None)
    indices = rng.integers(0, 23, 300)
    scales = rng.random(23) + 0.5
    for l2_step in ("proximal", "gradient"):
        plain, native, csr = (_random_state(problem, 2) for _ in range(3))
        for _ in saga_steps(problem, plain, indices, 0.05, l2_step=l2_step, scales=scales):
            pass
        _run_native(problem, native, indices, 0.05, scales, l2_step, checked=False)
        _run_native(lazy, csr, indices, 0.05, scales, l2_step, checked=False)
        assert _difference(native, plain) < 1e-12
        assert _difference(csr, plain) < 1e-12
        if l1 == 0.05:
            np.testing.assert_array_equal(csr.coef == 0, plain.coef == 0)


@pytest.mark.parametrize("d", [1, 2, 7, 8, 9, 16, 17, 31])
def test_every_width_of_rows(d):
    problem = random_problem(Logistic(), 1, d=d, l1=0.01, l2=0.1)
    plain, native = _random_state(problem, 0), _random_state(problem, 0)
    indices = np.random.default_rng(0).integers(0, 23, 60)
    for _ in saga_steps(problem, plain, indices, 0.1):
        pass
    _run_native(problem, native, indices, 0.1, None, "proximal", checked=False)
    assert _difference(native, plain) < 1e-12


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_float32_follows_float64(form):
    kept = {}
    for dtype in (np.float64, np.float32):
        problem = random_problem(Logistic(), 1, dtype=dtype, l1=0.02, l2=0.1)
        problem.X = form(problem.X)
        state = State(problem)
        indices = np.random.default_rng(0).integers(0, 23, 200)
        _run_native(problem, state, indices, 0.1, None, "proximal", checked=False)
        assert state.coef.dtype == dtype
        kept[dtype] = state.coef
    np.testing.assert_allclose(kept[np.float32], kept[np.float64], atol=2e-6)


def test_cutting_a_run_into_calls_changes_nothing():
    problem = random_problem(Squared(), 1, l1=0.02, l2=0.1)
    problem.X = sparse.csr_matrix(problem.X)
    indices = np.random.default_rng(0).integers(0, 23, 200)
    whole, parts = State(problem), State(problem)
    _run_native(problem, whole, indices, 0.05, None, "proximal", checked=False)
    for part in np.array_split(indices, 7):
        _run_native(problem, parts, part, 0.05, None, "proximal", checked=True)
    _run_native(problem, parts, indices[:0], 0.05, None, "proximal", checked=True)
    assert _difference(whole, parts) < 1e-13


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("loss, outputs", LOSSES, ids=_ids)
def test_the_gradient_estimate_is_unbiased(loss, outputs, sampling):
    """Averaged over the sampler's probabilities it is the gradient, to 1e-14."""
    rng = np.random.default_rng(4)
    problem = random_problem(loss, outputs, l2=0.1, weights=rng.random(23) + 0.1)
    sampler = Sampler(problem, sampling, seed=0)
    state = _random_state(problem, 0)
    at = problem.evaluate(state.coef, state.intercept)
    sampler.adapt(at.slopes)
    state.table += rng.standard_normal(state.table.shape)  # a table of any kind ...
    state.mean = np.einsum("nk,nd->kd", state.table, problem.X) / 23  # ... with its mean
    estimate = np.zeros_like(state.coef)
    for i in range(23):
        probability = 1 / 23 if sampler.scales is None else 1 / (23 * sampler.scales[i])
        one = copy.deepcopy(state)
        _run_native(problem, one, np.array([i]), 1.0, sampler.scales, "proximal", checked=False)
        # after = 1/(1 + l2): undo it, and what is left of the step is the estimate
        estimate += probability * (state.coef - one.coef * (1 + problem.l2))
    np.testing.assert_allclose(estimate, at.gradient, atol=5e-14)


def test_draws_do_not_depend_on_how_a_run_is_cut():
    problem = random_problem(Logistic(), 1, l2=0.1)
    for sampling in SAMPLINGS:
        whole = Sampler(problem, sampling, seed=5).draw(0, 6)
        sampler = Sampler(problem, sampling, seed=5)
        parts = [sampler.draw(0, 1), sampler.draw(1, 3), sampler.draw(4, 2)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)
        assert not np.array_equal(Sampler(problem, sampling, seed=6).draw(0, 6), whole)
        assert whole.min() >= 0
        assert whole.max() < 23
    orders = Sampler(problem, "shuffle", seed=1).draw(0, 3).reshape(3, 23)
    np.testing.assert_array_equal(np.sort(orders, axis=1), np.tile(np.arange(23), (3, 1)))


def test_step_sizes_are_the_papers():
    assert step_size("1/(3L)", 4.0, 0.5, 10) == 1 / 12
    assert step_size("1/(2(mu n+L))", 4.0, 0.5, 10) == 1 / 18
    assert step_size("auto", 4.0, 0.5, 10) == 1 / 8
    assert step_size(0.25, 4.0, 0.5, 10) == 0.25
    for wrong in ("1/L", 0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="step_size must be"):
            step_size(wrong, 4.0, 0.5, 10)


def _call(**changes: Any) -> None:
    arguments: dict[str, Any] = {
        "rows": (np.ones((3, 2)),),
        "targets": np.ones(3),
        "indices": np.array([0, 1, 2]),
        "coef": np.zeros((1, 2)),
        "table": np.zeros((3, 1)),
        "mean": np.zeros((1, 2)),
        "loss": "logistic",
        "samples": 3,
        "features": 2,
        "outputs": 1,
        "step": 0.1,
    }
    _core.saga(**arguments | changes)


def test_the_binding_refuses_what_does_not_fit():
    _call()
    for changes, error, text in [
        ({"loss": "cubic"}, ValueError, "unknown loss 'cubic'"),
        ({"indices": np.array([0, 3])}, IndexError, "index 3 at step 1 is not one of 3 samples"),
        ({"indices": np.array([0, 1], np.int32)}, TypeError, "indices has the wrong dtype"),
        ({"targets": np.ones(2)}, ValueError, "targets has 2 elements, expected 3"),
        ({"table": np.zeros((3, 1), np.float32)}, TypeError, "table has the wrong dtype"),
        ({"coef": np.zeros((1, 2), np.int64)}, TypeError, "float32 or float64"),
        ({"step": 0.0}, ValueError, "must be positive"),
        ({"outputs": 2, "coef": np.zeros((2, 2))}, ValueError, "has one output"),
        ({"loss": "softmax", "targets": np.full(3, 7.0)}, ValueError, "no class number"),
        ({"rows": (np.ones(2), np.ones(2))}, ValueError, "rows must be"),
        (
            {"rows": (np.ones(3), np.array([0, 2, 1], np.int32), np.array([0, 1, 2, 3]))},
            ValueError,
            "do not describe a CSR matrix",
        ),
    ]:
        with pytest.raises(error, match=text):
            _call(**changes)


def test_the_plain_kernel_gives_the_same_run():
    problem = random_problem(Logistic(), 1, l2=0.05, intercept=True)
    runs = [minimize(problem, tol=1e-10, kernel=kernel, seed=3) for kernel in ("native", "plain")]
    assert [c.epoch for c in runs[0].history] == [c.epoch for c in runs[1].history]
    np.testing.assert_allclose(runs[0].coef, runs[1].coef, atol=1e-12)
    with pytest.raises(ValueError, match="kernel must be"):
        minimize(problem, kernel="fast")


def test_a_step_that_would_turn_the_weights_around_is_refused():
    problem = random_problem(Squared(), 1, l2=2.0)
    with pytest.raises(ValueError, match="must be below 1/l2"):
        minimize(problem, step_size=0.5, l2_step="gradient")
