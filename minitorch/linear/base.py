"""What all linear estimators share: parameters, the fit around the solver, the margins."""

from __future__ import annotations

import inspect
import warnings
from typing import Any, Self

import numpy as np

from . import _sklearn
from ._validation import check_features, check_matrix, feature_names, flag, number, seed_of
from .losses import Loss
from .problem import Problem, balanced_rate, is_sparse
from .solver import Check, Result, minimize

__all__ = ["LinearEstimator"]

# Curvature over l2 from which no gap can be certified in float64: rounding errors of the gradient,
# squared and divided by l2, are the gap.
_STEEP = 1e10


class LinearEstimator:
    """Parameters as scikit-learn has them, and one way to fit.

    A subclass lists its parameters in ``__init__``, stores each under its own name and checks them
    in ``fit``; that is all that ``get_params``, ``set_params``, ``clone`` and grid searches need.
    """

    # set by the subclass's __init__
    fit_intercept: bool
    tol: float
    max_iter: int
    warm_start: bool
    random_state: Any
    sampling: str
    step_size: str | float
    callback: Any

    # --- parameters ----------------------------------------------------------------------------

    @classmethod
    def _names(cls) -> list[str]:
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, by name."""
        return {name: getattr(self, name) for name in sorted(self._names())}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; returns self."""
        names = sorted(self._names())
        for name in params:
            if name not in names:
                raise ValueError(
                    f"Invalid parameter {name!r} for estimator {self!r}. Valid parameters are: "
                    f"{names}."
                )
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        changed = [
            f"{name}={getattr(self, name)!r}"
            for name in self._names()
            if getattr(self, name) is not defaults[name].default
            and repr(getattr(self, name)) != repr(defaults[name].default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")

    # --- fit -----------------------------------------------------------------------------------

    def _start_fit(self, X: Any) -> Any:
        """Check X and the common parameters; X as the solver wants it."""
        number(self, "tol", 0.0)
        number(self, "max_iter", 1, whole=True)
        flag(self, "fit_intercept")
        flag(self, "warm_start")
        if self.callback is not None and not callable(self.callback):
            raise ValueError(f"callback must be callable or None, got {self.callback!r}")
        return check_matrix(X)

    def _solve(
        self,
        X: Any,
        y: np.ndarray,
        loss: Loss,
        outputs: int,
        l1: float,
        l2: float,
        weights: np.ndarray | None,
        start: tuple[np.ndarray, np.ndarray] | None,
    ) -> Result:
        """Fit one model: `y` in the solver's form, `start` as coef (outputs, d) and intercept.

        The dense case with an intercept runs on centred columns. That is the same problem, since
        the intercept is not penalised and takes up the difference, with a smaller L and no coupling
        of weights and intercept. Sparse columns stay: centred, they would not be sparse.
        """
        if weights is not None and np.all(weights == weights[0]):
            weights = None
        elif weights is not None and np.any(weights == 0):
            counted = weights > 0  # a sample that does not count need not be visited
            X, y, weights = X[counted], y[counted], weights[counted]
        shift: np.ndarray | None = None
        fitted = bool(self.fit_intercept)
        with np.errstate(over="ignore", invalid="ignore"):
            if fitted and not is_sparse(X):
                shift = _centre(X, weights)
                X = X - shift
            rate = balanced_rate(X) if fitted else 1.0
            problem = Problem(X, y.astype(X.dtype), loss, outputs, l1, l2, fitted, weights, rate)
            _check_range(problem)
        coef = intercept = None
        if start is not None:
            coef, intercept = start
            if shift is not None:
                intercept = intercept + coef @ shift
        result = minimize(
            problem,
            coef=coef,
            intercept=intercept,
            tol=float(self.tol),
            max_epochs=int(self.max_iter),
            sampling=self.sampling,
            step_size=self.step_size,
            seed=seed_of(self.random_state),
            callback=self.callback,
        )
        if not result.converged:
            self._warn(problem, result)
        if shift is not None:
            result.intercept = result.intercept - result.coef @ shift
        return result

    def _warn(self, problem: Problem, result: Result) -> None:
        last = result.certificate
        if np.isfinite(last.gap):
            far = (
                f"the objective {last.objective:.6g} may be up to {last.gap:.2g} above the optimum"
            )
        else:
            far = f"the relative gradient is {last.relative:.2g}"
        advice = "increase max_iter or tol"
        if self.step_size != "auto" and not last.objective <= result.history[0].objective:
            advice = "take a smaller step_size, or 'auto'"
        scales = problem.column_scales[problem.column_scales > 0]
        spread = scales.max() / scales.min() if len(scales) else 1.0
        steep = problem.lipschitz.max() / problem.l2 if problem.l2 > 0 else 0.0
        if spread <= 10 and steep > _STEEP:
            advice = (
                f"scale the data or strengthen the l2 penalty, which the curvature of the loss "
                f"exceeds {steep:.2g} times; or {advice}"
            )
        if spread > 10:
            advice = (
                "scale the data (sklearn.preprocessing.StandardScaler or MaxAbsScaler), whose "
                f"largest column is {spread:.3g} times the smallest; or {advice}"
            )
        early = ", when its callback stopped it" if result.epochs < self.max_iter else ""
        warnings.warn(
            f"{type(self).__name__} did not converge to tol={self.tol:g} in {result.epochs} epochs"
            f"{early}: {far}. To get there, {advice}.",
            _sklearn.exception("ConvergenceWarning"),
            stacklevel=4,
        )

    def _previous(self, outputs: int, features: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Where a warm start begins, if there is such a place."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return None
        coef = np.atleast_2d(self.coef_)
        if coef.shape != (outputs, features) or not np.isfinite(coef).all():
            return None
        intercept = np.broadcast_to(np.asarray(self.intercept_, coef.dtype), (outputs,))
        return (coef, intercept) if np.isfinite(intercept).all() else None

    def _finish_fit(self, X: Any, features: int, results: list[Result]) -> None:
        """Set what all have in common; a fit that was interrupted has changed nothing."""
        names = feature_names(X)
        self.n_features_in_ = features
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.n_iter_ = max(result.epochs for result in results)
        self.converged_ = all(result.converged for result in results)
        self.histories_: list[list[Check]] = [result.history for result in results]
        self.history_ = self.histories_[0]

    # --- use -----------------------------------------------------------------------------------

    coef_: np.ndarray
    intercept_: Any

    def _check_fitted(self) -> None:
        if not hasattr(self, "coef_"):
            raise _sklearn.exception("NotFittedError")(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' with "
                "appropriate arguments before using this estimator."
            )

    def _margins(self, X: Any) -> np.ndarray:
        self._check_fitted()
        matrix = check_matrix(X)
        check_features(self, X, matrix)
        return np.asarray(matrix @ self.coef_.T) + self.intercept_

    def convergence_plot(self, against: str = "passes", **options: Any) -> Any:
        """Draw the run of the last fit; see :func:`minitorch.linear.convergence_plot`."""
        from .plotting import convergence_plot

        self._check_fitted()
        return convergence_plot({type(self).__name__: self.history_}, against, **options)


def _centre(X: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """What to subtract from dense columns: their (weighted) means.

    For a column that never changes that is its value, and not a mean that is off by a rounding:
    what would be left of the column then is tiny, the same everywhere, and free to take any weight.
    """
    mean = np.average(X, axis=0, weights=weights).astype(X.dtype)
    return np.where((X[0] == X).all(axis=0), X[0], mean)


def _check_range(problem: Problem) -> None:
    """Refuse what the squares of the data, or a penalty, would turn into infinity.

    Raises
    ------
    ValueError
    """
    if not np.isfinite(problem.lipschitz).all():
        raise ValueError(
            f"Input X contains values whose squares are too large for {problem.dtype!r}: scale the "
            "data (sklearn.preprocessing.StandardScaler or MaxAbsScaler)."
        )
    if not np.isfinite(problem.null):
        raise ValueError(
            f"Input y contains values whose squares are too large for {problem.dtype!r}."
        )
    # The sampling adds up n l2 over the samples.
    if not np.isfinite((problem.l1 + problem.l2) * float(problem.samples) ** 2):
        raise ValueError(
            f"The penalties l1={problem.l1:g} and l2={problem.l2:g} of the mean loss are too "
            "large: increase C, decrease alpha, or scale sample_weight up."
        )
