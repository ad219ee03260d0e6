"""Classification: logistic regression, binary and multinomial, and a smooth support vector machine.

Objective: ``mean loss + l2/2 |W|^2 + l1 |W|_1``, the mean weighted by `sample_weight`. Parameters
are scikit-learn's: ``C`` weighs the *sum* of losses against the penalty, so that ``l1 + l2`` is
``1 / (C * sum of weights)``, split by `l1_ratio`. The gradient of sample i is Lipschitz with
``|x_i|^2`` times 1/4 (logistic), 1/2 (softmax) or 1/`smoothing` (hinge).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from . import _sklearn
from ._validation import (
    check_classes_count,
    check_same_length,
    check_total,
    check_weights,
    class_targets,
    number,
)
from .base import LinearEstimator
from .losses import Logistic, Loss, SmoothedHinge, Softmax
from .solver import Result

__all__ = ["LinearSVM", "LogisticRegression"]


class _Classifier(LinearEstimator):
    _estimator_type = "classifier"
    C: float
    l1_ratio: float
    class_weight: Any

    def _one_model_per_class(self) -> bool:
        return False

    def _loss(self, classes: int) -> Loss:
        raise NotImplementedError

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array or SciPy sparse matrix, shape (n_samples, n_features)
            float32 stays float32; everything else is computed in float64.
        y : array of labels (numbers or strings), shape (n_samples,)
        sample_weight : array of shape (n_samples,) or float, optional

        Raises
        ------
        ValueError
            NaN or infinity, mismatched lengths, a single class, no samples or features, parameters
            out of range.
        """
        matrix = self._start_fit(X)
        C = number(self, "C", 0.0, inclusive=False)
        ratio = number(self, "l1_ratio", 0.0, 1.0)
        classes, labels = class_targets(self, y)
        check_same_length(matrix, labels)
        weights = check_weights(sample_weight, len(labels))
        weights = self._class_weighted(weights, classes, labels)
        check_classes_count(weights, classes, labels)
        total = float(len(labels)) if weights is None else float(weights.sum())
        scale = C * total
        strength = 1 / scale if scale > 0 else np.inf
        l1 = strength * ratio if ratio > 0 else 0.0
        l2 = strength * (1 - ratio) if ratio < 1 else 0.0
        many = len(classes) > 2
        split = many and self._one_model_per_class()
        outputs = len(classes) if many else 1
        start = self._previous(outputs, matrix.shape[1])
        loss = self._loss(len(classes))
        results: list[Result] = []
        for k in range(outputs if split else 1):
            positive = k if split else 1
            targets = labels if many and not split else np.where(labels == positive, 1.0, -1.0)
            here = start
            if split and start is not None:
                here = (start[0][k : k + 1], start[1][k : k + 1])
            each = 1 if split else outputs
            results.append(self._solve(matrix, targets, loss, each, l1, l2, weights, here))
        self.coef_ = np.concatenate([result.coef for result in results])
        self.intercept_ = np.concatenate([result.intercept for result in results])
        if many and not split:
            # Softmax does not see a constant in all intercepts; of all solutions this one is told.
            self.intercept_ = self.intercept_ - self.intercept_.mean()
        self.classes_ = classes
        self._finish_fit(X, matrix.shape[1], results)
        return self

    def _class_weighted(
        self,
        weights: np.ndarray | None,
        classes: np.ndarray,
        labels: np.ndarray,
    ) -> np.ndarray | None:
        """Sample weights times class weights; None if all are 1."""
        if self.class_weight is None:
            return weights
        base = np.ones(len(labels)) if weights is None else weights
        if isinstance(self.class_weight, str):
            if self.class_weight != "balanced":
                raise ValueError(
                    f"class_weight must be a dict, 'balanced', or None; got {self.class_weight!r}"
                )
            mass = np.bincount(labels, base, len(classes))
            per_class = base.sum() / (len(classes) * np.where(mass > 0, mass, 1))
        elif isinstance(self.class_weight, dict):
            unknown = [label for label in self.class_weight if label not in classes]
            if unknown:
                raise ValueError(
                    f"The classes, {unknown}, are not in class_weight's data: y has {list(classes)}"
                )
            try:
                per_class = np.array([float(self.class_weight.get(c, 1)) for c in classes.tolist()])
            except (TypeError, ValueError):
                raise ValueError(
                    f"class_weight must hold numbers; got {self.class_weight!r}"
                ) from None
        else:
            raise ValueError(
                f"class_weight must be a dict, 'balanced', or None; got {self.class_weight!r}"
            )
        if not np.all((per_class >= 0) & np.isfinite(per_class)):
            raise ValueError(
                f"class_weight must be finite and not negative; got {self.class_weight!r}"
            )
        with np.errstate(over="ignore"):
            weights = base * per_class[labels]
        check_total(weights, "class_weight times sample_weight")
        return weights

    def decision_function(self, X: Any) -> np.ndarray:
        """Return margins: (n_samples,), positive for ``classes_[1]``, or (n_samples, n_classes)."""
        margins = self._margins(X)
        return margins[:, 0] if len(self.classes_) == 2 else margins

    def predict(self, X: Any) -> np.ndarray:
        """Return the label with the largest margin, shape (n_samples,)."""
        margins = self.decision_function(X)
        chosen = (margins > 0).astype(np.intp) if margins.ndim == 1 else margins.argmax(axis=1)
        return self.classes_[chosen]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the (weighted) share of correct labels."""
        y, predicted = np.asarray(y).reshape(-1), self.predict(X)
        check_same_length(predicted, y)
        return float(np.average(predicted == y, weights=check_weights(sample_weight, len(y))))

    def __sklearn_tags__(self) -> Any:
        return _sklearn.make_tags("classifier")


class LogisticRegression(_Classifier):
    """Logistic regression: binary, or multinomial (softmax) for three and more classes.

    Parameters
    ----------
    C : float
        Weight of the sum of losses against the penalty; ``numpy.inf`` for no penalty.
    l1_ratio : float
        0 for an l2 penalty, 1 for l1, between for an elastic net.
    fit_intercept : bool
    class_weight : dict, "balanced" or None
        Factors of the sample weights by class.
    tol : float
        Of the duality gap, relative to the objective of the model without features.
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
    coef_, intercept_, classes_, n_iter_, n_features_in_
        As in scikit-learn; ``n_iter_`` counts epochs.
    history_ : list of Check
    converged_ : bool

    Example
    -------
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0]], ["no", "no", "yes", "yes"]
    >>> LogisticRegression().fit(X, y).predict([[-3.0], [3.0]]).tolist()
    ['no', 'yes']
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        l1_ratio: float = 0.0,
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-4,
        max_iter: int = 1000,
        warm_start: bool = False,
        random_state: Any = None,
        sampling: str = "curvature",
        step_size: str | float = "auto",
        callback: Callable[..., Any] | None = None,
    ) -> None:
        self.C = C
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.random_state = random_state
        self.sampling = sampling
        self.step_size = step_size
        self.callback = callback

    def _loss(self, classes: int) -> Loss:
        return Logistic() if classes == 2 else Softmax()

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return log probabilities, shape (n_samples, n_classes)."""
        z = self.decision_function(X)
        if z.ndim == 1:
            z = np.column_stack((np.zeros_like(z), z))
        z = z - z.max(axis=1, keepdims=True)
        return z - np.log(np.exp(z).sum(axis=1, keepdims=True))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return probabilities, shape (n_samples, n_classes), in the order of ``classes_``."""
        return np.exp(self.predict_log_proba(X))


class LinearSVM(_Classifier):
    """Linear support vector machine with a smoothed hinge; one against the rest for many classes.

    The hinge has a corner and no gradient there; SAGA needs one. A parabola of width `smoothing`
    replaces the corner, which changes the loss by at most ``smoothing / 2``.

    Parameters
    ----------
    C : float
        Weight of the sum of losses against the penalty.
    smoothing : float
        Positive; the smaller, the closer to the hinge, and the slower.
    l1_ratio, fit_intercept, class_weight, tol, max_iter, warm_start, random_state, sampling, \
step_size, callback
        See :class:`LogisticRegression`.

    Example
    -------
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1]
    >>> LinearSVM().fit(X, y).predict([[-3.0], [3.0]]).tolist()
    [0, 1]
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        smoothing: float = 0.5,
        l1_ratio: float = 0.0,
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-4,
        max_iter: int = 1000,
        warm_start: bool = False,
        random_state: Any = None,
        sampling: str = "curvature",
        step_size: str | float = "auto",
        callback: Callable[..., Any] | None = None,
    ) -> None:
        self.C = C
        self.smoothing = smoothing
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.random_state = random_state
        self.sampling = sampling
        self.step_size = step_size
        self.callback = callback

    def _one_model_per_class(self) -> bool:
        return True

    def _loss(self, classes: int) -> Loss:
        smoothing = number(self, "smoothing", 0.0, inclusive=False)
        if not 0 < 1 / float(smoothing) < np.inf:
            raise ValueError(f"smoothing and 1 / smoothing must be finite; got {smoothing!r}")
        return SmoothedHinge(smoothing)
