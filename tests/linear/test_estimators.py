"""The estimators as users meet them; scikit-learn's own checks are in `test_sklearn_checks.py`."""

from __future__ import annotations

import itertools
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from linear.datasets import load

from minitorch.linear import (
    ConvergenceWarning,
    ElasticNet,
    Lasso,
    LinearRegression,
    LinearSVM,
    LogisticRegression,
    NotFittedError,
    Ridge,
    convergence_plot,
)

sparse = pytest.importorskip("scipy.sparse")
CLASSIFIERS = [LogisticRegression, LinearSVM]
REGRESSORS = [LinearRegression, Ridge, Lasso, ElasticNet]


def _data(classes: int = 2, n: int = 60, d: int = 6, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.5)
    scores = X @ rng.standard_normal((d, classes)) + 0.3 * rng.standard_normal((n, classes))
    return X, scores.argmax(axis=1)


@pytest.mark.parametrize("make", REGRESSORS)
def test_regression_agrees_with_sklearn(make):
    linear_model = pytest.importorskip("sklearn.linear_model")
    X, y = load("diabetes")
    y = y[:, 0] * 70 + 150
    weights = np.random.default_rng(0).random(len(y))
    options = {} if make is LinearRegression else {"alpha": 0.5}
    ours = make(**options, tol=1e-13, max_iter=5000).fit(X + 3.0, y, weights)
    theirs = getattr(linear_model, make.__name__)(**options)
    if make in (Lasso, ElasticNet):
        theirs.set_params(tol=1e-12, max_iter=100_000)
    theirs.fit(X + 3.0, y, weights)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-3)
    assert ours.score(X + 3.0, y, weights) == pytest.approx(
        theirs.score(X + 3.0, y, weights), abs=1e-7
    )


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("ratio", [0.0, 0.5, 1.0])
def test_classification_agrees_with_sklearn(classes, ratio):
    linear_model = pytest.importorskip("sklearn.linear_model")
    X, y = _data(classes)
    labels = np.array(["ant", "bee", "cat"])[y]
    weights = np.random.default_rng(0).random(len(y))
    options = {"C": 0.7, "l1_ratio": ratio, "class_weight": "balanced"}
    ours = LogisticRegression(**options, tol=1e-13, max_iter=10_000).fit(X, labels, weights)
    theirs = linear_model.LogisticRegression(
        **options, solver="saga", tol=1e-10, max_iter=20_000
    ).fit(X, labels, weights)
    assert ours.classes_.tolist() == theirs.classes_.tolist()
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    shift = theirs.intercept_.mean() if classes > 2 else 0.0  # softmax does not see it
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_ - shift, atol=1e-5)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    assert ours.predict(X).tolist() == theirs.predict(X).tolist()
    assert ours.score(X, labels) == theirs.score(X, labels)


@pytest.mark.parametrize("make", [*CLASSIFIERS, *REGRESSORS])
def test_sparse_input_gives_the_same_model(make):
    X, y = _data(3 if make in CLASSIFIERS else 2)
    model = make(tol=1e-14, max_iter=20_000)
    if make in (Lasso, ElasticNet):
        model.set_params(alpha=0.02)
    dense = pickle.loads(pickle.dumps(model)).fit(X, y)
    forms = (sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix)
    for form in forms:
        other = pickle.loads(pickle.dumps(model)).fit(form(X), y)
        np.testing.assert_allclose(other.coef_, dense.coef_, atol=1e-6)
        np.testing.assert_allclose(other.intercept_, dense.intercept_, atol=1e-6)
        np.testing.assert_allclose(np.asarray(other.predict(form(X))), dense.predict(X), atol=1e-5)


def test_a_smaller_smoothing_comes_closer_to_the_hinge():
    svm = pytest.importorskip("sklearn.svm")
    X, y = load("breast_cancer")
    exact = svm.LinearSVC(C=0.1, loss="hinge", fit_intercept=False, tol=1e-8, max_iter=10**6)
    exact.fit(X, y)

    def hinge_objective(w):
        return 0.5 * w @ w + 0.1 * np.maximum(0, 1 - (2 * y - 1) * (X @ w)).sum()

    best = hinge_objective(exact.coef_[0])
    above = []
    for smoothing in (1.0, 0.3, 0.1):
        model = LinearSVM(C=0.1, smoothing=smoothing, fit_intercept=False, tol=1e-6, max_iter=5000)
        above.append(hinge_objective(model.fit(X, y).coef_[0]) - best)
        assert -1e-6 < above[-1] <= 0.1 * len(y) * smoothing / 2
    assert above == sorted(above, reverse=True)


def test_sample_weights_mean_repetition_and_their_scale_means_strength():
    X, y = _data(2)
    counts = np.random.default_rng(0).integers(0, 4, len(y))
    options = {"tol": 1e-15, "max_iter": 10_000}
    weighted = LogisticRegression(**options).fit(X, y, counts)
    repeated = LogisticRegression(**options).fit(np.repeat(X, counts, 0), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-6)
    scaled = LogisticRegression(C=0.1, **options).fit(X, y, 10.0 * counts)
    np.testing.assert_allclose(scaled.coef_, weighted.coef_, atol=1e-6)
    lasso = Lasso(0.01, **options).fit(X, y, counts)
    again = Lasso(0.01, **options).fit(X, y, 10.0 * counts)
    np.testing.assert_allclose(lasso.coef_, again.coef_, atol=1e-6)


@pytest.mark.parametrize("make", [*CLASSIFIERS, *REGRESSORS])
def test_a_warm_start_is_done_at_once(make):
    X, y = _data(3 if make in CLASSIFIERS else 2, n=120)
    model = make(tol=1e-8, max_iter=5000, warm_start=True).fit(X, y)
    first, coef = model.n_iter_, model.coef_.copy()
    assert first > 0
    model.fit(X, y)
    assert model.n_iter_ == 0
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-12)
    model.fit(X[:, :4], y)  # another width: a cold start
    assert model.coef_.shape[-1] == 4


def test_callback_history_and_early_stop():
    X, y = load("breast_cancer")
    seen = []
    model = LogisticRegression(tol=1e-8, callback=seen.append).fit(X, y)
    assert seen == model.history_
    assert [check.epoch for check in seen] == sorted({check.epoch for check in seen})
    assert seen[0].epoch == 0
    assert seen[-1].relative <= 1e-8 < seen[-2].relative
    assert seen[-1].passes == seen[-1].epoch + len(seen)
    assert all(a.seconds <= b.seconds for a, b in itertools.pairwise(seen))
    with pytest.warns(ConvergenceWarning, match="tol=1e-08 in .* when its callback stopped it"):
        model.set_params(callback=lambda check: check.epoch >= 3).fit(X, y)
    assert not model.converged_
    assert model.n_iter_ < seen[-1].epoch


def test_the_seed_decides_the_path_not_the_place():
    X, y = load("breast_cancer")
    fits = [LogisticRegression(tol=1e-12, random_state=s).fit(X, y) for s in (None, 0, 1)]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    assert not np.array_equal(fits[1].coef_, fits[2].coef_)
    np.testing.assert_allclose(fits[1].coef_, fits[2].coef_, atol=1e-5)
    generators = (np.random.RandomState(0), np.random.default_rng(0))
    for state in generators:
        LogisticRegression(random_state=state).fit(X, y)
    with pytest.raises(ValueError, match="cannot be used to seed"):
        LogisticRegression(random_state="x").fit(X, y)


def test_float32_stays_float32():
    X, y = load("breast_cancer")
    for data in (X.astype(np.float32), sparse.csr_matrix(X.astype(np.float32))):
        model = LogisticRegression(tol=1e-5, fit_intercept=False).fit(data, y)
        assert model.converged_
        assert model.coef_.dtype == np.float32
        exact = LogisticRegression(tol=1e-10, fit_intercept=False).fit(X, y)
        np.testing.assert_allclose(model.coef_, exact.coef_, atol=0.02)


def test_columns_that_never_change_get_no_weight():
    X, y = _data(2)
    X = np.hstack((X, np.zeros((len(X), 2)), np.full((len(X), 1), 5.0)))
    for make in (*CLASSIFIERS, *REGRESSORS):
        model = make(tol=1e-10, max_iter=5000).fit(X, y)
        assert model.converged_
        np.testing.assert_allclose(np.ravel(model.coef_)[-3:], 0, atol=1e-12)
    zeros = LogisticRegression().fit(np.zeros((4, 2)), [0, 1, 1, 1])
    np.testing.assert_array_equal(zeros.coef_, 0)
    np.testing.assert_allclose(zeros.predict_proba(np.zeros((1, 2))), [[0.25, 0.75]], atol=0.01)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_constant_whose_mean_is_rounded_gets_no_weight_either(dtype):
    """A mean of forty times 0.1 is not 0.1: a column of the difference must not be left."""
    X, y = _data(2)
    X = np.hstack((X, np.full((len(X), 2), 0.1), np.full((len(X), 1), 1e8 / 3))).astype(dtype)
    weights = np.random.default_rng(0).random(len(X))
    for model, sample_weight in itertools.product(
        (LinearRegression(), LogisticRegression(C=np.inf, max_iter=50), Lasso(alpha=1e-9)),
        (None, weights),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y, sample_weight)
        np.testing.assert_array_equal(np.ravel(model.coef_)[-3:], 0)


def test_tiny_data_do_not_stop_the_intercept():
    X, y = _data(2)
    for form, (dtype, scale) in itertools.product(
        (np.asarray, sparse.csr_matrix), ((np.float32, 1e-30), (np.float64, 1e-160))
    ):
        model = Ridge().fit(form((X * scale).astype(dtype)), y)
        assert model.converged_
        assert model.intercept_ == pytest.approx(y.mean(), abs=0.01)


def test_entries_beyond_the_last_row_do_not_count():
    X, y = _data(2)
    longer = sparse.csr_matrix(X)
    longer.data = np.r_[longer.data, np.nan]
    longer.indices = np.r_[longer.indices, np.int32(0)]
    expected = LogisticRegression().fit(sparse.csr_matrix(X), y)
    np.testing.assert_array_equal(LogisticRegression().fit(longer, y).coef_, expected.coef_)
    assert len(longer.data) == sparse.csr_matrix(X).nnz + 1  # the user's own is as it was


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_a_constant_target(form):
    X, _ = _data(2)
    for model in (Ridge(), Lasso(), LinearRegression()):
        model.fit(form(X), np.full(len(X), 7.0))
        assert model.converged_
        np.testing.assert_allclose(model.predict(form(X)), 7.0, atol=1e-3)


class TestBadInput:
    def test_data(self):
        X, y = _data(2)
        for model in (LogisticRegression(), Ridge()):
            for bad, text in [
                (np.where(X > 1, np.nan, X), "Input X contains NaN"),
                (np.where(X > 1, np.inf, X), "Input X contains infinity"),
                (sparse.csr_matrix(np.where(X > 1, np.nan, X)), "Input X contains NaN"),
                (X[:0], r"0 sample\(s\) \(shape=\(0, 6\)\) while a minimum of 1"),
                (X[:, :0], r"0 feature\(s\)"),
                (X[0], "Expected 2D array, got 1D array instead"),
                (X[None], "Expected 2D array, got 3D array instead"),
                (X + 1j, "Complex data not supported"),
                (X[:-1], r"inconsistent numbers of samples: \[59, 60\]"),
                ([["a"] * 6] * 60, "X must be numeric"),
            ]:
                with pytest.raises(ValueError, match=text):
                    model.fit(bad, y)
                assert not hasattr(model, "coef_")

    def test_targets(self):
        X, y = _data(2)
        for bad, text in [
            (np.zeros(60), "at least 2 classes in the data, but the data contains only one class"),
            (y + 0.5, "Unknown label type: continuous"),
            (np.where(y, np.nan, 1.0), "Input y contains NaN"),
            (np.where(y, np.datetime64("NaT"), np.datetime64("2020-01-01")), "contains NaT"),
            (None, "requires y to be passed"),
            (np.zeros((60, 2)), "y should be a 1d array"),
        ]:
            with pytest.raises(ValueError, match=text):
                LogisticRegression().fit(X, bad)
        with pytest.raises(ValueError, match="Input y contains infinity"):
            Ridge().fit(X, np.where(y, np.inf, 1.0))

    def test_weights(self):
        X, y = _data(2)
        for bad, text in [
            (np.ones(59), r"sample_weight.shape == \(59,\), expected \(60,\)"),
            (np.ones((60, 1)), "must be 1D array or scalar"),
            (-np.ones(60), "Negative values in data passed to `sample_weight`"),
            (np.zeros(60), "only zeros"),
            (np.full(60, np.nan), "Input sample_weight contains NaN"),
            (np.full(60, 1e308), "sum of sample_weight is too large"),
        ]:
            with pytest.raises(ValueError, match=text):
                LogisticRegression().fit(X, y, bad)
        for bad, text in [
            ("even", "'balanced'"),
            ({5: 1.0}, "not in class_weight"),
            (3, "dict"),
            ({0: None}, "must hold numbers"),
            ({0: 1e308}, "sum of class_weight times sample_weight is too large"),
        ]:
            with pytest.raises(ValueError, match=text):
                LogisticRegression(class_weight=bad).fit(X, y)

    @pytest.mark.parametrize(
        "model, text",
        [
            (
                Ridge(alpha=-1.0),
                r"'alpha' parameter of Ridge must be a float in the range \[0, inf\)",
            ),
            (Lasso(alpha="1"), "'alpha'"),
            (ElasticNet(l1_ratio=1.5), r"in the range \[0, 1\]"),
            (LogisticRegression(C=0.0), r"'C' .* in the range \(0, inf\)"),
            (LinearSVM(smoothing=0.0), "'smoothing'"),
            (LinearSVM(smoothing=np.inf), "smoothing and 1 / smoothing must be finite"),
            (Ridge(alpha=1e308), "penalties .* are too large"),
            (LogisticRegression(warm_start="yes"), "'warm_start' .* must be a bool"),
            (LogisticRegression(tol=-1.0), "'tol'"),
            (LogisticRegression(max_iter=0), "'max_iter' .* must be an int"),
            (LogisticRegression(max_iter=1.5), "'max_iter'"),
            (LogisticRegression(sampling="cyclic"), "sampling must be one of"),
            (LogisticRegression(step_size="big"), "step_size must be"),
        ],
    )
    def test_parameters(self, model, text):
        with pytest.raises(ValueError, match=text):
            model.fit(*_data(2))

    def test_use(self):
        X, y = _data(2)
        with pytest.raises(NotFittedError, match="not fitted yet"):
            LogisticRegression().predict(X)
        with pytest.raises(NotFittedError, match="not fitted yet"):
            LogisticRegression().convergence_plot()
        with pytest.raises(ValueError, match="X has 5 features, but Ridge is expecting 6"):
            Ridge().fit(X, y).predict(X[:, :5])
        with pytest.raises(ValueError, match="Invalid parameter 'depth' for estimator Ridge"):
            Ridge().set_params(depth=3)


def test_the_warning_says_what_helps():
    X, y = _data(2)
    with pytest.warns(ConvergenceWarning, match="take a smaller step_size, or 'auto'"):
        LogisticRegression(step_size=1e3, max_iter=20).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="scale the data or strengthen the l2 penalty"):
        Ridge(max_iter=20).fit(X * 1e8, y)
    with pytest.warns(ConvergenceWarning, match="increase max_iter or tol"):
        LogisticRegression(max_iter=1, tol=1e-9).fit(X, y)


def test_repr_shows_what_was_changed():
    assert repr(LogisticRegression()) == "LogisticRegression()"
    assert repr(LogisticRegression(C=0.5, tol=1e-6)) == "LogisticRegression(C=0.5, tol=1e-06)"
    assert Ridge(2.0).get_params()["alpha"] == 2.0


def test_it_works_without_scipy_and_sklearn():
    """In an interpreter that cannot import them, with warnings of our own kind."""
    program = """
import sys, warnings
for name in ("sklearn", "scipy", "matplotlib"):
    sys.modules[name] = None
import numpy as np
from minitorch.linear import *
X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
assert LogisticRegression().fit(X, [0, 0, 1, 1]).predict(X).tolist() == [0, 0, 1, 1]
try:
    Ridge().predict(X)
except NotFittedError:
    pass
else:
    raise SystemExit("no NotFittedError")
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    LogisticRegression(tol=0.0, max_iter=1).fit(X, [0, 0, 1, 1])
assert [w.category for w in seen] == [ConvergenceWarning]
try:
    Ridge().fit(X, X[:, 0]).convergence_plot()
except ImportError as error:
    assert "pip install matplotlib" in str(error)
else:
    raise SystemExit("no ImportError")
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_convergence_plot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    X, y = load("breast_cancer")
    model = LogisticRegression(tol=1e-6).fit(X, y)
    figure = model.convergence_plot()
    (axes,) = figure.axes
    (line,) = axes.lines
    assert axes.get_xlabel() == "passes over the data"
    assert axes.get_yscale() == "log"
    np.testing.assert_array_equal(line.get_xdata(), [check.passes for check in model.history_])
    np.testing.assert_array_equal(line.get_ydata(), [check.gap for check in model.history_])
    least = min(check.objective for check in model.history_)
    both = convergence_plot({"a": model.history_, "b": model.history_}, "epoch", optimum=least)
    assert len(both.axes[0].lines) == 4
    free = LinearRegression().fit(X, y).convergence_plot("seconds")
    assert free.axes[0].get_ylabel() == "relative gradient"
    with pytest.raises(ValueError, match="against must be one of"):
        model.convergence_plot("time")
    plt.close("all")


@pytest.mark.parametrize("make", [*CLASSIFIERS, *REGRESSORS])
def test_defaults_converge_without_a_warning(make):
    tiny = ([[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for X, y in (tiny, _data(3), load("digits"), load("wine")):
            model = make()
            if make is LinearRegression and X is load("digits")[0]:
                continue  # its columns differ by a factor of 277, and no penalty helps
            if make in (Lasso, ElasticNet):
                model.set_params(alpha=0.1)
            model.fit(X, y)
            assert model.converged_
    empty = sparse.csr_matrix((4, 2))
    assert make().fit(empty, [0, 1, 0, 1]).converged_
