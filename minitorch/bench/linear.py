"""SAGA against scikit-learn's: the time to the same certified suboptimality.

A solver that stops early is fast, so the clock is not stopped by a solver's own rule: scikit-learn
gets the fewest iterations (found by bisection, not timed) with which *our* duality gap at its
solution is below the target; ours stops when its own gap is, and pays for its checks. Dense sets
are the ones that scikit-learn brings, without an intercept, standardised or scaled to [0, 1]; the
sparse one is generated. One BLAS thread. liblinear and L-BFGS are shown for reference.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .measure import Figure, alternate, compare, enough
from .registry import Settings, Skipped, benchmark

OURS, SAGA = "minitorch", "scikit-learn saga"
TARGETS = (1e-3, 1e-6, 1e-9)
MOST_EPOCHS = 4000  # of the peer; what needs more is timed at that many, and so named


@dataclass
class Case:
    """One model on one data set: how both sides are made, and the objective they share."""

    name: str
    X: Any
    y: np.ndarray
    ours: Callable[[float], Any]  # tol -> estimator
    theirs: Callable[[str, float, int], Any]  # solver, tol, max_iter -> estimator
    problem: Any
    references: tuple[str, ...] = ()
    target: float = 1.0

    def gap(self, estimator: Any) -> float:
        """Certified suboptimality of a fitted estimator."""
        from minitorch.linear.certificate import duality_gap

        coef = np.atleast_2d(estimator.coef_)
        if coef.shape[0] == 1 and self.problem.outputs > 1:
            raise ValueError("the two sides do not fit the same model")
        at = self.problem.evaluate(coef, np.zeros(self.problem.outputs))
        return duality_gap(self.problem, coef, at)


def _logistic(
    name: str,
    X: Any,
    y: np.ndarray,
    C: float,
    ratio: float,
    references: tuple[str, ...],
    **more: Any,
) -> Case:
    import sklearn.linear_model

    from minitorch.linear import LogisticRegression, Problem
    from minitorch.linear.losses import Logistic, Softmax

    classes, labels = np.unique(y, return_inverse=True)
    strength = 1 / (C * len(y))
    binary = len(classes) == 2
    problem = Problem(
        X,
        np.where(labels == 1, 1.0, -1.0) if binary else labels.astype(float),
        Logistic() if binary else Softmax(),
        1 if binary else len(classes),
        strength * ratio,
        strength * (1 - ratio),
    )
    return Case(
        name,
        X,
        y,
        lambda tol: LogisticRegression(
            C, l1_ratio=ratio, fit_intercept=False, tol=tol, max_iter=100_000
        ),
        lambda solver, tol, most: sklearn.linear_model.LogisticRegression(
            C=C,
            l1_ratio=ratio,
            solver=solver,
            fit_intercept=False,
            tol=tol,
            max_iter=most,
            random_state=0,
        ),
        problem,
        references,
        **more,
    )


def _ridge(name: str, X: np.ndarray, y: np.ndarray, alpha: float) -> Case:
    import sklearn.linear_model

    from minitorch.linear import Problem, Ridge
    from minitorch.linear.losses import Squared

    return Case(
        name,
        X,
        y,
        lambda tol: Ridge(alpha, fit_intercept=False, tol=tol, max_iter=100_000),
        lambda solver, tol, most: sklearn.linear_model.Ridge(
            alpha, solver=solver, fit_intercept=False, tol=tol, max_iter=most, random_state=0
        ),
        Problem(X, y[:, None], Squared(), l2=alpha / len(y)),
        ("cholesky",),
    )


def dense_cases() -> Iterator[Case]:
    """The sets that scikit-learn brings."""
    from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

    def standardised(values: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray((values - values.mean(axis=0)) / values.std(axis=0))

    X, y = load_breast_cancer(return_X_y=True)
    both = ("liblinear", "lbfgs")
    yield _logistic("breast_cancer l2 C=1", standardised(X), y, 1.0, 0.0, both)
    yield _logistic("breast_cancer l1 C=0.1", standardised(X), y, 0.1, 1.0, ("liblinear",))
    X, y = load_digits(return_X_y=True)
    yield _logistic("digits >= 5 l2 C=1", X / 16, y >= 5, 1.0, 0.0, both)
    yield _logistic("digits softmax l2 C=1", X / 16, y, 1.0, 0.0, ("lbfgs",))
    X, y = load_diabetes(return_X_y=True)
    yield _ridge("diabetes ridge 0.01", standardised(X), standardised(y), 0.01 * len(y))


def sparse_data(n: int, d: int, per_row: int, seed: int = 0) -> tuple[Any, np.ndarray]:
    """Rows of length 1 with about `per_row` normal entries, and labels of a noisy linear model."""
    from scipy import sparse

    rng = np.random.default_rng(seed)
    columns = np.sort(rng.integers(0, d, (n, per_row)), axis=1)
    offsets = np.arange(0, n * per_row + 1, per_row)
    X = sparse.csr_matrix((rng.standard_normal(n * per_row), columns.ravel(), offsets), (n, d))
    X.sum_duplicates()
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X.data /= np.repeat(norms, np.diff(X.indptr))
    truth = rng.standard_normal(d) * (rng.random(d) < 0.1) * 3
    return X, rng.random(n) < 1 / (1 + np.exp(-(X @ truth)))


def sparse_cases(quick: bool) -> Iterator[Case]:
    """100,000 x 50,000 with 0.1 % entries; a fifth of the samples for a quick look.

    With an l1 penalty scikit-learn's lazy updates unroll every missed step: half a minute per epoch
    at that size, so that the elastic net is compared on a tenth of each side.
    """
    n, d = (20_000 if quick else 100_000), 50_000
    X, y = sparse_data(n, d, d // 1000)
    size = f"{n:,} x {d:,} sparse"
    yield _logistic(f"{size} l2 C=1", X, y, 1.0, 0.0, ("liblinear", "lbfgs"), target=2.0)
    X, y = sparse_data(10_000, 5_000, 5)
    yield _logistic("10,000 x 5,000 sparse elastic net C=1", X, y, 1.0, 0.5, (), target=2.0)


def _fit_quietly(estimator: Any, case: Case) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(case.X, case.y)


def _seconds(case: Case, make: Callable[[], Any], number: int = 1) -> float:
    """Seconds per fit, of `number` fits."""
    start = time.perf_counter()
    for _ in range(number):
        _fit_quietly(make(), case)
    return (time.perf_counter() - start) / number


def _timer(case: Case, make: Callable[[], Any]) -> Callable[[], float]:
    """A timer that repeats fits of a millisecond until they can be measured."""
    return partial(_seconds, case, make, enough(partial(_seconds, case, make), most=50))


def epochs_needed(case: Case, target: float, at_least: int = 1) -> int | None:
    """Fewest epochs after which scikit-learn's saga has a certified gap of at most `target`."""

    def reached(epochs: int) -> bool:
        return case.gap(_fit_quietly(case.theirs("saga", 0.0, epochs), case)) <= target

    high = at_least
    while not reached(high):
        if high >= MOST_EPOCHS:
            return None
        high = min(MOST_EPOCHS, max(high + 1, int(high * 1.5)))
    low = max(at_least - 1, int(high / 1.5))
    while high - low > max(1, high // 20):
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def tolerance_needed(case: Case, solver: str, target: float) -> float | None:
    """Loosest tolerance, in powers of ten, with which another solver gets there."""
    for exponent in range(1, 13):
        tol = 10.0**-exponent
        if case.gap(_fit_quietly(case.theirs(solver, tol, 10_000), case)) <= target:
            return tol
    return None


def _figures(case: Case, label: str, settings: Settings, rounds: int) -> Iterator[Figure]:
    epochs: int | None = 1
    for target in TARGETS:
        epochs = epochs_needed(case, target, epochs or MOST_EPOCHS)
        tol = target / case.problem.null
        fitted = _fit_quietly(case.ours(tol), case)
        if not case.gap(fitted) <= target * (1 + 1e-6):
            raise RuntimeError(f"{case.name}: our own fit misses the gap {target:g}")
        most = epochs or MOST_EPOCHS
        contenders: dict[str, Callable[[], float]] = {
            OURS: _timer(case, partial(case.ours, tol)),
            SAGA: _timer(case, partial(case.theirs, "saga", 0.0, most)),
        }
        for solver in () if settings.quick else case.references:
            loosest = tolerance_needed(case, solver, target)
            if loosest is not None:
                contenders[solver] = _timer(case, partial(case.theirs, solver, loosest, 10_000))
        times = alternate(contenders, rounds)
        spent = f"{fitted.n_iter_} epochs against {epochs or f'more than {MOST_EPOCHS}'}"
        name = f"{case.name}, gap {target:.0e}"
        yield compare(
            label, name, times, OURS, SAGA, target=case.target, most=False, note=f"{name}: {spent}"
        )
        for solver in contenders.keys() - {OURS, SAGA}:
            yield compare(label, f"{name} (reference)", times, OURS, solver, most=False)


def _run(cases: Callable[[], Iterator[Case]], label: str, settings: Settings) -> Iterator[Figure]:
    try:
        import sklearn  # noqa: F401
    except ImportError:
        raise Skipped("needs scikit-learn to compare with: pip install scikit-learn") from None
    from threadpoolctl import threadpool_limits

    rounds = settings.pick(3 if label == "linear-sparse" else 11, 3)
    with threadpool_limits(1):
        for case in cases():
            yield from _figures(case, label, settings, rounds)


@benchmark(
    "linear",
    "linear models to a certified gap, against scikit-learn's saga: at least 1 x as fast",
)
def linear(settings: Settings) -> Iterator[Figure]:
    """Bundled dense sets."""
    yield from _run(dense_cases, "linear", settings)


@benchmark(
    "linear-sparse",
    "the same on generated sparse data: at least 2 x as fast",
)
def linear_sparse(settings: Settings) -> Iterator[Figure]:
    """Generated sparse data."""
    yield from _run(lambda: sparse_cases(settings.quick), "linear-sparse", settings)
