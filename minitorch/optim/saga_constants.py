"""Estimates of L and mu for losses whose constants nobody has worked out.

Both look at the curvature *where the parameters are*, by differences of gradients. For a
quadratic loss that is the curvature everywhere; the logistic and softmax losses are most curved at
zero scores, so estimate at zero weights; for other models take the value with caution, or let the
line search follow the curvature as it changes.

Step for the differences: the cube root of the dtype's precision times the size of the parameters,
with which the error of central differences is smallest (about 1e-10 relative in float64, 1e-4 in
float32).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..autograd.grad_mode import enable_grad
from ..random.addressed import addressed_normal
from ..tensor import Tensor
from . import _finite_sum_checks as checks
from ._flat import FlatParameters

__all__ = ["estimate_smoothness", "estimate_strong_convexity"]

_STREAM = 0x5A6A  # of the random starting vectors
_SETTLED = 1e-4  # relative change of the estimate at which power iteration stops


class _Curvature:
    """Gradients of single samples at points near the present parameters."""

    def __init__(self, params: Iterable[Tensor], closure: Callable[[int], Any]) -> None:
        group = {"params": list(params), "weight_decay": 0.0, "decoupled_weight_decay": False}
        self.flat, self.closure = FlatParameters([group]), closure
        self.here = self.flat.values()
        self._kept = [param.grad for param, _, _ in self.flat.entries]
        size = float(np.abs(self.here).max(initial=0.0))
        self.width = self.flat.eps ** (1 / 3) * max(1.0, size)

    def __enter__(self) -> _Curvature:
        return self

    def __exit__(self, *exception: object) -> None:
        self.flat.set_values(self.here)
        for (param, _, _), grad in zip(self.flat.entries, self._kept, strict=True):
            param.grad = grad

    def gradient(self, sample: int, point: np.ndarray) -> np.ndarray:
        self.flat.set_values(point)
        for param, _, _ in self.flat.entries:
            param.grad = None
        with enable_grad():
            self.closure(sample)
        out = np.empty_like(point)
        if not self.flat.gradient(out):
            raise RuntimeError(
                f"closure({sample}) left no gradient: it must compute the loss of sample {sample} "
                "and call backward() on it"
            )
        if not np.isfinite(out).all():
            raise FloatingPointError(f"the gradient of sample {sample} is not finite")
        return out

    def along(self, sample: int, direction: np.ndarray) -> np.ndarray:
        """The sample's Hessian times a unit vector."""
        move = direction * self.flat.dtype.type(self.width)
        difference = self.gradient(sample, self.here + move)
        difference -= self.gradient(sample, self.here - move)
        return difference / self.flat.dtype.type(2 * self.width)


def estimate_smoothness(
    params: Iterable[Tensor],
    closure: Callable[[int], Any],
    n_samples: int,
    *,
    samples: Iterable[int] | None = None,
    iterations: int = 20,
    seed: int = 0,
) -> float:
    """L: the largest eigenvalue, in size, of any sample's Hessian at the present parameters.

    By power iteration, which approaches it from below; one step finds it where the Hessian has
    rank one, as for linear models with one output.

    Parameters
    ----------
    params : iterable of Tensor
        Of the model; unchanged afterwards, as are their gradients.
    closure : callable
        ``closure(i)`` computes the loss of sample i and calls ``backward()``; for n samples it
        is called 2 n (at least two, at most ``iterations``) times.
    n_samples : int
    samples : iterable of int, optional
        Look at these only.
    iterations : int
        The most steps of the power iteration per sample.
    seed : int
        Of the starting vectors; minitorch's generator is not touched.

    Returns
    -------
    float
        Without weight decay, which the optimizers add.

    Examples
    --------
    >>> import minitorch
    >>> from minitorch.optim import estimate_smoothness
    >>> x = minitorch.tensor([[1.0, 0.0], [3.0, 4.0]]).double()
    >>> w = minitorch.zeros(2, dtype=minitorch.float64, requires_grad=True)
    >>> round(estimate_smoothness([w], lambda i: (0.5 * (x[i] @ w) ** 2).backward(), 2), 6)
    25.0
    """
    if iterations < 1:
        raise ValueError(f"iterations must be at least 1, but got {iterations}")
    checks.count(n_samples)
    largest = 0.0
    with _Curvature(params, closure) as curvature:
        for sample in range(n_samples) if samples is None else samples:
            start = addressed_normal(seed, sample, _STREAM, curvature.flat.size, dtype=np.float64)
            vector = (start / np.linalg.norm(start)).astype(curvature.flat.dtype)
            estimate = 0.0
            for _ in range(iterations):
                product = curvature.along(sample, vector)
                before, estimate = estimate, float(np.linalg.norm(product))
                if estimate == 0.0 or abs(estimate - before) <= _SETTLED * estimate:
                    break
                vector = product / product.dtype.type(estimate)
            largest = max(largest, estimate)
    if largest == 0.0:
        raise ValueError(
            "no sample's gradient changes with the parameters: L would be 0, and any step would do"
        )
    return largest


def estimate_strong_convexity(
    params: Iterable[Tensor], closure: Callable[[int], Any], n_samples: int
) -> float:
    """Estimate mu of the *average* loss: the smallest eigenvalue of its Hessian, here and now.

    It is not the mu of each sample, which is 0 for linear models; the step size that goes with it
    is ``saga_step_size(L, mu, n, strongly_convex="average")``.

    Parameters
    ----------
    params, closure, n_samples
        As of :func:`estimate_smoothness`. With D parameters, the closure is called 2 D n times
        and a D x D matrix is diagonalised: for small models.

    Returns
    -------
    float
        Negative where the average is not convex; without weight decay.
    """
    checks.count(n_samples)
    with _Curvature(params, closure) as curvature:
        size = curvature.flat.size
        hessian = np.zeros((size, size))
        unit = np.zeros(size, curvature.flat.dtype)
        for column in range(size):
            unit[column] = 1.0
            for sample in range(n_samples):
                hessian[column] += curvature.along(sample, unit)
            unit[column] = 0.0
    hessian += hessian.T.copy()
    return float(np.linalg.eigvalsh(hessian / (2.0 * n_samples))[0])
