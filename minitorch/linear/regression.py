"""Regression with the squared loss: no penalty, l2, l1, or both.

All are one objective, ``mean squared error / 2 + l2/2 |w|^2 + l1 |w|_1`` (the mean is weighted by
`sample_weight`); the classes differ in how their parameters name l1 and l2, as in scikit-learn. The
gradient of sample i is Lipschitz with ``L_i = |x_i|^2``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from . import _sklearn
from ._validation import check_same_length, check_weights, number, numeric_targets
from .base import LinearEstimator
from .losses import Squared

__all__ = ["ElasticNet", "Lasso", "LinearRegression", "Ridge"]


class _Regressor(LinearEstimator):
    _estimator_type = "regressor"

    def _penalties(self, total_weight: float) -> tuple[float, float]:
        """l1 and l2 of the mean objective."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array or SciPy sparse matrix, shape (n_samples, n_features)
            float32 stays float32; everything else is computed in float64.
        y : array, shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array of shape (n_samples,) or float, optional

        Raises
        ------
        ValueError
            NaN or infinity, mismatched lengths, no samples or features, parameters out of range.
        """
        matrix = self._start_fit(X)
        targets = numeric_targets(self, y)
        check_same_length(matrix, targets)
        weights = check_weights(sample_weight, len(targets))
        total = float(len(targets)) if weights is None else float(weights.sum())
        l1, l2 = self._penalties(total)
        columns = targets.reshape(len(targets), -1)
        result = self._solve(
            matrix,
            columns,
            Squared(),
            columns.shape[1],
            l1,
            l2,
            weights,
            self._previous(columns.shape[1], matrix.shape[1]),
        )
        flat = targets.ndim == 1
        self.coef_ = result.coef[0] if flat else result.coef
        if not self.fit_intercept:
            self.intercept_: Any = 0.0
        else:
            self.intercept_ = result.intercept[0] if flat else result.intercept
        self._finish_fit(X, matrix.shape[1], [result])
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return X w + b, shape (n_samples,) or (n_samples, n_targets)."""
        return self._margins(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination R^2, averaged over targets."""
        y = numeric_targets(self, y)
        predicted = self.predict(X)
        check_same_length(predicted, y)
        y, predicted = y.reshape(len(y), -1), predicted.reshape(len(y), -1)
        if y.shape != predicted.shape:
            raise ValueError(
                f"y_true and y_pred have different number of output ({y.shape[1]}!="
                f"{predicted.shape[1]})"
            )
        weights = check_weights(sample_weight, len(y))
        weights = np.ones(len(y)) if weights is None else weights
        mean = np.average(y, axis=0, weights=weights)
        unexplained = weights @ np.square(y - predicted)
        total = weights @ np.square(y - mean)
        ratio = np.where(total > 0, unexplained / np.where(total > 0, total, 1), unexplained > 0)
        return float(np.mean(1 - ratio))

    def __sklearn_tags__(self) -> Any:
        return _sklearn.make_tags("regressor", multi_output=True)


class LinearRegression(_Regressor):
    """Least squares.

    Parameters
    ----------
    fit_intercept : bool
    tol : float
        Of the certificate; without a penalty that is the gradient relative to its scale.
    max_iter : int
        Epochs at most.
    warm_start : bool
        Whether `fit` starts at the last fit's solution.
    random_state : int, RandomState, Generator or None
        None is seed 0.
    sampling : {"curvature", "lipschitz", "uniform", "shuffle"}
        See `minitorch/linear/sampling.py`.
    step_size : {"auto", "1/(3L)", "1/(2(mu n+L))"} or float
    callback : callable, optional
        Called with each :class:`~minitorch.linear.Check`; a true answer stops the fit.

    Attributes
    ----------
    coef_, intercept_, n_iter_, n_features_in_
        As in scikit-learn; ``n_iter_`` counts epochs.
    history_ : list of Check
    converged_ : bool

    Example
    -------
    >>> model = LinearRegression(tol=1e-8).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> model.predict([[3.0]]).round(6)
    array([7.])
    """

    def __init__(
        self,
        *,
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int = 1000,
        warm_start: bool = False,
        random_state: Any = None,
        sampling: str = "curvature",
        step_size: str | float = "auto",
        callback: Callable[..., Any] | None = None,
    ) -> None:
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.random_state = random_state
        self.sampling = sampling
        self.step_size = step_size
        self.callback = callback

    def _penalties(self, total_weight: float) -> tuple[float, float]:
        return 0.0, 0.0


class _Penalised(_Regressor):
    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int = 1000,
        warm_start: bool = False,
        random_state: Any = None,
        sampling: str = "curvature",
        step_size: str | float = "auto",
        callback: Callable[..., Any] | None = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.random_state = random_state
        self.sampling = sampling
        self.step_size = step_size
        self.callback = callback


class Ridge(_Penalised):
    """Least squares with an l2 penalty: ``|y - X w - b|^2 + alpha |w|^2`` (sums, as scikit-learn).

    Parameters
    ----------
    alpha : float
        At least 0.
    fit_intercept, tol, max_iter, warm_start, random_state, sampling, step_size, callback
        See :class:`LinearRegression`. `tol` bounds the duality gap, relative to the objective of
        the model without features.

    Example
    -------
    >>> model = Ridge(alpha=2.0, tol=1e-14, fit_intercept=False)
    >>> model.fit([[1.0], [1.0]], [1.0, 1.0]).coef_.round(6)
    array([0.5])
    """

    def _penalties(self, total_weight: float) -> tuple[float, float]:
        return 0.0, number(self, "alpha", 0.0) / total_weight


class Lasso(_Penalised):
    """Least squares with an l1 penalty: ``|y - X w - b|^2 / (2 n) + alpha |w|_1``.

    Parameters
    ----------
    alpha : float
        At least 0.
    fit_intercept, tol, max_iter, warm_start, random_state, sampling, step_size, callback
        See :class:`LinearRegression`. `tol` bounds the duality gap, relative to the objective of
        the model without features.
    """

    def _penalties(self, total_weight: float) -> tuple[float, float]:
        return number(self, "alpha", 0.0), 0.0


class ElasticNet(_Regressor):
    """Least squares with both penalties.

    ``|y - X w - b|^2 / (2 n) + alpha l1_ratio |w|_1 + alpha (1 - l1_ratio) / 2 |w|^2``

    Parameters
    ----------
    alpha : float
        At least 0.
    l1_ratio : float
        In [0, 1].
    fit_intercept, tol, max_iter, warm_start, random_state, sampling, step_size, callback
        See :class:`LinearRegression`. `tol` bounds the duality gap, relative to the objective of
        the model without features.

    Example
    -------
    >>> X, y = [[-1.0], [0.0], [1.0]], [-1.0, 0.0, 1.0]
    >>> ElasticNet(alpha=0.5, l1_ratio=0.3, fit_intercept=False, tol=1e-18).fit(X, y).coef_
    array([0.50819672])
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int = 1000,
        warm_start: bool = False,
        random_state: Any = None,
        sampling: str = "curvature",
        step_size: str | float = "auto",
        callback: Callable[..., Any] | None = None,
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.random_state = random_state
        self.sampling = sampling
        self.step_size = step_size
        self.callback = callback

    def _penalties(self, total_weight: float) -> tuple[float, float]:
        alpha, ratio = number(self, "alpha", 0.0), number(self, "l1_ratio", 0.0, 1.0)
        return alpha * ratio, alpha * (1 - ratio)
