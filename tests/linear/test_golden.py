"""Against recorded runs and optima: steps, objectives, numbers of epochs."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from linear.datasets import GOLDEN, OPTIMA, golden_problem, load

from minitorch.linear import ConvergenceWarning, ElasticNet, LogisticRegression, Problem, minimize
from minitorch.linear.losses import Logistic, Squared
from minitorch.linear.plain import State, saga_steps
from minitorch.linear.solver import _run_native

pytest.importorskip("sklearn")
EPOCHS = json.loads((GOLDEN / "saga_epochs.json").read_text())
RULES = {"1/3L": "1/(3L)", "1/2(mun+L)": "1/(2(mu n+L))"}
#: trace -> how it takes l2, whether it has l1, l2, how its table starts
TRACES = {
    "l2": ("table", False, True, "paper"),
    "l2exact": ("gradient", False, True, "paper"),
    "l1": ("gradient", True, False, "paper"),
    "l2l1": ("table", True, True, "paper"),
    "l2_zerotable": ("table", False, True, "zero"),
}


@pytest.mark.parametrize("trace", TRACES)
@pytest.mark.parametrize("loss", ["log", "sq"])
def test_sixty_steps(loss, trace):
    golden = np.load(GOLDEN / "saga_traces.npz")
    l2_step, has_l1, has_l2, init = TRACES[trace]
    y = golden["y_log"] if loss == "log" else golden["y_sq"][:, None]
    problem = Problem(
        golden["X"],
        y,
        Logistic() if loss == "log" else Squared(),
        l1=float(golden["l1"]) * has_l1,
        l2=float(golden["l2"]) * has_l2,
    )
    step, indices = float(golden[f"{loss}_gamma"]), golden["idx"].astype(np.int64)
    expected = golden[f"{loss}_{trace}"]
    start = golden["w0"][None]
    state = State(problem, start, init=init)
    ours = [w[0].copy() for w in saga_steps(problem, state, indices, step, l2_step=l2_step)]
    np.testing.assert_allclose(ours, expected[1:], atol=1e-12)
    if l2_step != "table":
        state = State(problem, start, init=init)
        for i, after in zip(indices, expected[1:], strict=True):
            _run_native(problem, state, np.array([i]), step, None, l2_step, checked=False)
            np.testing.assert_allclose(state.coef[0], after, atol=1e-12)


# On the others an l1 penalty alone, or a weak l2 one, leaves directions that are nearly flat.
WELL_CONDITIONED = [
    key
    for key in OPTIMA
    if key.startswith(("diab", "iris", "bc_l2_C0.1", "bc_en_C0.1", "digits_l2", "digits_bin_l2"))
]


@pytest.mark.parametrize("key", WELL_CONDITIONED)
def test_optimum_of_well_conditioned_sets(key):
    problem = golden_problem(key)
    result = minimize(problem, tol=5e-9, max_epochs=200)
    assert result.converged
    assert result.certificate.gap < 1e-8
    above = result.certificate.objective - OPTIMA[key]["objective"]
    assert -1e-14 < above <= result.certificate.gap + 1e-14


@pytest.mark.parametrize("key", ["bc_l2_C1.0_int", "bc_l1_C0.1_noint", "wine_l1_C1_noint"])
def test_minimiser_of_harder_sets(key):
    problem = golden_problem(key)
    result = minimize(problem, tol=1e-13, max_epochs=2000)
    assert result.converged
    golden = np.load(GOLDEN / "saga_optima.npz")[key]
    ours = result.coef.T if golden.ndim == 2 else result.coef[0]
    if problem.intercept:
        ours = np.append(ours, result.intercept)
    np.testing.assert_allclose(ours, golden, atol=1e-5)
    if problem.l1 > 0:
        np.testing.assert_array_equal(ours == 0, golden == 0)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    "key", ["bc_l2_C0.1_noint", "digits_bin_l2_C1_noint", "diab_ridge_0.01", "bc_l2_C1.0_noint"]
)
def test_epochs_of_the_papers_algorithm(key, rule):
    """Uniform sampling, a table that is never refilled: the recorded counts, within a fifth."""
    expected = np.mean([run[:4] for run in EPOCHS[key][rule]], axis=0)
    reached: list[int] = []
    every = max(1, int(expected[0]) // 10)

    def stop(check):
        above = check.objective - OPTIMA[key]["objective"]
        while len(reached) < 4 and above <= 10.0 ** -(4 + 2 * len(reached)):
            reached.append(check.epoch)
        return len(reached) == 4

    minimize(
        golden_problem(key),
        tol=0.0,
        max_epochs=5000,
        sampling="uniform",
        step_size=RULES[rule],
        restart=False,
        callback=stop,
        check_every=every,
    )
    np.testing.assert_allclose(reached, expected, rtol=0.2, atol=every)


def test_the_default_needs_a_fraction_of_those_epochs():
    result = minimize(golden_problem("bc_l2_C1.0_noint"), tol=1e-10 / np.log(2))
    assert result.converged
    assert result.epochs * 20 < EPOCHS["bc_l2_C1.0_noint"]["1/2(mun+L)"][0][3]


@pytest.mark.parametrize("seed", range(20))
def test_three_points(seed):
    """The case at which scikit-learn stays at zero for some seeds: 0.508196721 for every one."""
    x = [[-1.0], [0.0], [1.0]]
    model = ElasticNet(
        alpha=0.5, l1_ratio=0.3, fit_intercept=False, tol=1e-18, random_state=seed
    ).fit(x, [-1.0, 0.0, 1.0])
    # stationary: 2/3 (w - 1) + 0.15 + 0.35 w = 0
    assert model.coef_[0] == pytest.approx((2 / 3 - 0.15) / (2 / 3 + 0.35), abs=1e-9)
    assert round(float(model.coef_[0]), 9) == 0.508196721


def test_raw_breast_cancer_does_not_claim_to_have_converged():
    """Unscaled: F* = 0.10398 (L2, C = 1); a solver that looks at its steps stops at 0.195."""
    import sklearn.datasets

    X, y = sklearn.datasets.load_breast_cancer(return_X_y=True)
    model = LogisticRegression(C=1.0, max_iter=200)
    with pytest.warns(ConvergenceWarning, match="scale the data"):
        model.fit(X, y)
    assert not model.converged_
    last = model.history_[-1]
    assert last.objective - 0.10398 <= last.gap
    assert last.relative > model.tol
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scaled = LogisticRegression(C=1.0).fit(*load("breast_cancer"))
    assert scaled.converged_
    assert scaled.history_[-1].gap < 1e-4
