"""A linear model's objective, and what can be computed in one pass over the data.

    F(W, b) = sum_i p_i loss(W x_i + b, y_i) + l2/2 |W|^2 + l1 |W|_1,      p_i = weight_i / sum

The mean over weighted samples is what SAGA minimises (uniform weights: the plain mean), so the
same penalty means the same for any number of samples and any scale of the weights.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from .losses import Loss

__all__ = ["Evaluation", "Problem", "balanced_rate", "is_sparse"]


def is_sparse(X: Any) -> bool:
    """Whether X is a SciPy sparse matrix or array (SciPy itself need not be installed)."""
    return hasattr(X, "tocsr") and hasattr(X, "nnz")


def balanced_rate(X: Any) -> float:
    """Return an intercept_rate that keeps weights and intercept from slowing each other down.

    Columns whose mean m is far from zero are nearly parallel to the intercept's column c. The
    smallest curvature along both is about 1 / (1 + m^2 / c^2) of that along the weights alone, and
    L grows by c^2: c^2 = |mean row|^2 is near the best, a quarter of the mean |row|^2 the least.
    """
    mean = np.asarray(X.mean(axis=0), np.float64).ravel()
    values = X.data if is_sparse(X) else X
    flat = values.ravel()
    mean_square = float(np.dot(flat, flat)) / X.shape[0]
    best = max(float(mean @ mean), mean_square / 4)
    # A rate times a step that is made of it must neither vanish nor overflow.
    return max(best, float(np.finfo(X.dtype).tiny)) if best > 0 else 1.0


@dataclass
class Evaluation:
    """One pass over the data at (W, b)."""

    objective: float  # F
    margins: np.ndarray  # (n, outputs)
    slopes: np.ndarray  # (n, outputs), not weighted
    gradient: np.ndarray  # (outputs, features), of the weighted mean loss
    gradient_intercept: np.ndarray  # (outputs,)


@dataclass
class Problem:
    """What is minimised.

    Parameters
    ----------
    X : ndarray (n, d), C-contiguous float32 or float64; or a SciPy CSR matrix
    y : ndarray
        Targets in the dtype of X, as `losses` describes.
    loss : Loss
    outputs : int
    l1, l2 : float
        Of the objective above.
    intercept : bool
        Whether b is fitted (unpenalised) or stays zero.
    weights : ndarray (n,), optional
        Of the samples; scaled here to sum to 1.
    intercept_rate : float
        How many steps of a weight the intercept takes at once: c^2 acts like a column of c.
        :func:`balanced_rate` finds a good one.
    """

    X: Any
    y: np.ndarray
    loss: Loss
    outputs: int = 1
    l1: float = 0.0
    l2: float = 0.0
    intercept: bool = False
    weights: np.ndarray | None = None
    intercept_rate: float = 1.0
    shares: np.ndarray = field(init=False)  # p, (n,), float64

    def __post_init__(self) -> None:
        n = self.X.shape[0]
        if self.weights is None:
            self.shares = np.full(n, 1 / n)
        else:
            self.shares = np.asarray(self.weights, np.float64) / float(np.sum(self.weights))

    @property
    def samples(self) -> int:
        return int(self.X.shape[0])

    @property
    def features(self) -> int:
        return int(self.X.shape[1])

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self.X.dtype)

    @cached_property
    def factors(self) -> np.ndarray | None:
        """N p_i, the weights of the f_i whose plain mean is the loss; None for ones."""
        if self.weights is None:
            return None
        return (self.shares * self.samples).astype(self.dtype)

    @cached_property
    def rows(self) -> tuple[np.ndarray, ...]:
        """What the kernel reads: (values,) or (values, columns, offsets)."""
        if not is_sparse(self.X):
            return (self.X,)
        return (
            self.X.data,
            self.X.indices.astype(np.int32, copy=False),
            self.X.indptr.astype(np.int64, copy=False),
        )

    @cached_property
    def squared_norms(self) -> np.ndarray:
        """|x_i|^2, plus intercept_rate if there is an intercept; float64, shape (n,)."""
        if is_sparse(self.X):
            norms = np.zeros(self.samples)
            filled = np.diff(self.X.indptr) > 0  # `reduceat` knows no empty range
            starts = self.X.indptr[:-1][filled]
            norms[filled] = np.add.reduceat(np.square(self.X.data, dtype=np.float64), starts)
        else:
            norms = np.einsum("nd,nd->n", self.X, self.X).astype(np.float64)
        return norms + self.intercept_rate if self.intercept else norms

    @cached_property
    def lipschitz(self) -> np.ndarray:
        """L_i of the gradients of the f_i without the penalty, float64, shape (n,)."""
        norms = self.loss.curvature * self.squared_norms
        return norms if self.weights is None else norms * (self.shares * self.samples)

    @cached_property
    def column_scales(self) -> np.ndarray:
        """Root of the weighted mean square of each feature, shape (d,)."""
        largest = abs(self.X).max(axis=0)
        largest = largest.toarray().ravel() if is_sparse(self.X) else largest
        # Relative to the largest entry no column's squares underflow: a tiny column is not zero.
        unit = np.where(largest > 0, largest, 1).astype(self.dtype)
        if is_sparse(self.X):
            rows = np.repeat(self.shares, np.diff(self.X.indptr))
            squares = rows * np.square(self.X.data / unit[self.X.indices], dtype=np.float64)
            squares = np.bincount(self.X.indices, squares, self.features)
        else:
            squares = np.square(self.X / unit).T @ self.shares.astype(self.dtype)
        return unit * np.sqrt(np.asarray(squares, np.float64))

    @cached_property
    def null(self) -> float:
        """Objective of the model without features."""
        return self.loss.null(self.y, self.shares, self.intercept)

    def margins(self, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
        """Return X W' + b, shape (n, outputs)."""
        z = np.asarray(self.X @ (coef[0] if self.outputs == 1 else coef.T))
        z = z.reshape(self.samples, self.outputs)
        return z + intercept if self.intercept else z

    def pull(self, slopes: np.ndarray) -> np.ndarray:
        """Return sum_i p_i slope_i x_i, shape (outputs, features): a gradient of the loss."""
        weighted = slopes * self.shares[:, None].astype(self.dtype)
        if self.outputs == 1:
            return np.asarray(self.X.T @ weighted[:, 0])[None]
        if is_sparse(self.X):
            return np.ascontiguousarray((self.X.T @ weighted).T)
        return np.ascontiguousarray(weighted.T @ self.X)

    def penalty(self, coef: np.ndarray) -> float:
        """l2/2 |W|^2 + l1 |W|_1."""
        flat = coef.ravel().astype(np.float64)
        return float(0.5 * self.l2 * (flat @ flat) + self.l1 * np.abs(flat).sum())

    def evaluate(self, coef: np.ndarray, intercept: np.ndarray) -> Evaluation:
        """Objective, slopes and gradient: two products with X."""
        margins = self.margins(coef, intercept)
        values, slopes = self.loss.evaluate(margins, self.y)
        mean_slope = self.shares @ slopes if self.intercept else np.zeros(self.outputs)
        return Evaluation(
            float(self.shares @ values) + self.penalty(coef),
            margins,
            slopes,
            self.pull(slopes),
            mean_slope.astype(self.dtype),
        )

    def proximal(self, coef: np.ndarray, step: float) -> np.ndarray:
        """Return the proximal operator of the penalty, with this step."""
        shrunk = np.sign(coef) * np.maximum(np.abs(coef) - step * self.l1, 0)
        return shrunk / (1 + step * self.l2)
