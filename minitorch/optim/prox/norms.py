"""Penalties that shrink: L1, L2, the elastic net, and the group lasso.

A penalty whose strength is 0 is no penalty: its prox is the identity, and its conjugate is
infinite everywhere but in 0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .base import Prox, checked_step, nonnegative_number, within

__all__ = ["L1", "L2", "ElasticNet", "GroupLasso"]


def _soft_threshold(v: np.ndarray, threshold: float, out: np.ndarray | None) -> np.ndarray:
    """Move each element towards zero by ``threshold``, not past it: exact zeros."""
    return np.subtract(v, np.clip(v, -threshold, threshold), out=out)


def _largest(u: np.ndarray) -> float:
    return float(np.max(np.abs(u), initial=0.0))


def _squared(u: np.ndarray) -> float:
    flat = u.reshape(-1)
    return float(np.dot(flat, flat))


def _ratio(size: float, strength: float) -> float:
    """``size / strength``, where nothing is infinitely cheap and zero costs nothing."""
    if strength > 0.0:
        return size / strength
    return math.inf if size > 0.0 else 0.0


class L1(Prox):
    """The lasso penalty, strength * sum |x_i| (Tibshirani, 1996).

    Parameters
    ----------
    strength : float
        Not negative.

    Examples
    --------
    >>> import numpy as np
    >>> from minitorch.optim.prox import L1
    >>> L1(2.0).prox(np.array([3.0, -0.5, -1.5]), step=0.5)
    array([ 2. ,  0. , -0.5])
    """

    def __init__(self, strength: float) -> None:
        self.strength = nonnegative_number("strength", strength)

    def value(self, x: np.ndarray) -> float:
        """Strength * sum |x_i|."""
        return self.strength * float(np.abs(x).sum())

    def prox(self, v: np.ndarray, step: float, out: np.ndarray | None = None) -> np.ndarray:
        """Soft thresholding by step * strength."""
        return _soft_threshold(v, checked_step(step) * self.strength, out)

    def conjugate(self, u: np.ndarray) -> float:
        """0 where no |u_i| exceeds the strength."""
        return 0.0 if within(_largest(u), self.strength) else math.inf

    def dual_norm(self, u: np.ndarray) -> float:
        """The largest |u_i| / strength."""
        return _ratio(_largest(u), self.strength)

    def __repr__(self) -> str:
        return f"L1({self.strength:g})"


class L2(Prox):
    """The ridge penalty, strength / 2 * sum x_i^2: smooth, but cheap to apply exactly.

    Parameters
    ----------
    strength : float
        Not negative. What PyTorch's ``weight_decay`` adds to a gradient is the gradient of this.
    """

    def __init__(self, strength: float) -> None:
        self.strength = self.strong_convexity = nonnegative_number("strength", strength)

    def value(self, x: np.ndarray) -> float:
        """Strength / 2 * sum x_i^2."""
        return 0.5 * self.strength * _squared(x)

    def prox(self, v: np.ndarray, step: float, out: np.ndarray | None = None) -> np.ndarray:
        """Divide by 1 + step * strength."""
        return np.divide(v, 1.0 + checked_step(step) * self.strength, out=out)

    def conjugate(self, u: np.ndarray) -> float:
        """|u|^2 / (2 strength)."""
        return _ratio(0.5 * _squared(u), self.strength)

    def __repr__(self) -> str:
        return f"L2({self.strength:g})"


class ElasticNet(Prox):
    """L1 and L2 together, l1 * sum |x_i| + l2 / 2 * sum x_i^2 (Zou and Hastie, 2005).

    Parameters
    ----------
    l1, l2 : float
        The two strengths, not negative.
    """

    def __init__(self, l1: float, l2: float) -> None:
        self.l1 = nonnegative_number("l1", l1)
        self.l2 = self.strong_convexity = nonnegative_number("l2", l2)

    def value(self, x: np.ndarray) -> float:
        """The sum of the two."""
        return self.l1 * float(np.abs(x).sum()) + 0.5 * self.l2 * _squared(x)

    def prox(self, v: np.ndarray, step: float, out: np.ndarray | None = None) -> np.ndarray:
        """Soft thresholding by step * l1, then division by 1 + step * l2."""
        out = _soft_threshold(v, checked_step(step) * self.l1, out)
        out /= 1.0 + step * self.l2
        return out

    def conjugate(self, u: np.ndarray) -> float:
        """Sum max(|u_i| - l1, 0)^2 / (2 l2)."""
        if self.l2 == 0.0:
            return 0.0 if within(_largest(u), self.l1) else math.inf
        return _squared(_soft_threshold(u, self.l1, None)) / (2.0 * self.l2)

    def __repr__(self) -> str:
        return f"ElasticNet(l1={self.l1:g}, l2={self.l2:g})"


class GroupLasso(Prox):
    """The group lasso, strength * sum over groups of weight_g * |x_g| (Yuan and Lin, 2006).

    Whole groups of coordinates become zero together.

    Parameters
    ----------
    strength : float
        Not negative.
    groups : array_like of int, optional
        The group (0, 1, ...) of each coordinate, counted through the array in C order. Groups may
        not overlap.
    dim : int, optional
        Instead of ``groups``: the dimension along which a group extends. For a ``Linear`` weight
        (out, in), ``dim=0`` makes a group of every input feature.
    weights : array_like of float, optional
        One positive weight per group, by default the square root of its size, with which large
        and small groups are treated alike.

    Examples
    --------
    >>> import numpy as np
    >>> from minitorch.optim.prox import GroupLasso
    >>> h = GroupLasso(1.0, groups=[0, 0, 1], weights=[1.0, 1.0])
    >>> h.prox(np.array([3.0, 4.0, 0.5]), step=1.0)
    array([2.4, 3.2, 0. ])
    """

    def __init__(
        self, strength: float, groups: Any = None, *, dim: int | None = None, weights: Any = None
    ) -> None:
        self.strength = nonnegative_number("strength", strength)
        if (groups is None) == (dim is None):
            raise ValueError("GroupLasso needs groups=... or dim=..., one of them")
        self.dim = dim
        self.groups = None if groups is None else _group_numbers(groups)
        self.weights = None if weights is None else np.array(weights, dtype=np.float64)
        if self.weights is not None:
            good = np.isfinite(self.weights) & (self.weights > 0)
            if self.weights.ndim != 1 or not good.all():
                raise ValueError("weights must be a list of positive numbers, one per group")
            if self.groups is not None:
                self._fit(np.bincount(self.groups))

    def value(self, x: np.ndarray) -> float:
        """Strength * sum weight_g |x_g|."""
        norms, weights, _ = self._norms(x)
        return self.strength * float(np.dot(weights, norms))

    def prox(self, v: np.ndarray, step: float, out: np.ndarray | None = None) -> np.ndarray:
        """Shorten each group by step * strength * weight_g, not past zero."""
        norms, weights, spread = self._norms(v)
        threshold = checked_step(step) * self.strength * weights
        kept = norms > threshold
        scale = np.zeros_like(norms)
        np.divide(threshold, norms, out=scale, where=kept)
        np.subtract(1.0, scale, out=scale, where=kept)
        return np.multiply(v, spread(scale).astype(v.dtype, copy=False), out=out)

    def conjugate(self, u: np.ndarray) -> float:
        """0 where no |u_g| exceeds strength * weight_g."""
        norms, weights, _ = self._norms(u)
        largest = float(np.max(norms / weights, initial=0.0))
        return 0.0 if within(largest, self.strength, u.size) else math.inf

    def dual_norm(self, u: np.ndarray) -> float:
        """The largest |u_g| / (strength * weight_g)."""
        norms, weights, _ = self._norms(u)
        return _ratio(float(np.max(norms / weights, initial=0.0)), self.strength)

    def _norms(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, Any]:
        """Norm and weight of each group, and the function that spreads such an array over x."""
        wide = x.astype(np.float64, copy=False)
        if self.groups is None:
            assert self.dim is not None
            norms = np.sqrt(np.sum(wide * wide, axis=self.dim))
            sizes = np.full(norms.size, x.shape[self.dim])
            return (
                norms.reshape(-1),
                self._fit(sizes),
                lambda a: np.expand_dims(a.reshape(norms.shape), self.dim),
            )
        groups = self.groups
        if x.size != groups.size:
            raise ValueError(
                f"groups has {groups.size} entries, but the array of shape {x.shape} has {x.size} "
                "elements"
            )
        flat = wide.reshape(-1)
        sizes = np.bincount(groups)
        norms = np.sqrt(np.bincount(groups, weights=flat * flat))
        return norms, self._fit(sizes), lambda a: a[groups].reshape(x.shape)

    def _fit(self, sizes: np.ndarray) -> np.ndarray:
        """The weights of groups of these sizes."""
        if self.weights is None:
            return np.sqrt(np.maximum(sizes, 1))
        if self.weights.size != sizes.size:
            raise ValueError(f"there are {sizes.size} groups, but {self.weights.size} weights")
        return self.weights

    def __repr__(self) -> str:
        if self.groups is None:
            return f"GroupLasso({self.strength:g}, dim={self.dim})"
        return f"GroupLasso({self.strength:g}, {int(self.groups.max(initial=-1)) + 1} groups)"


def _group_numbers(groups: Any) -> np.ndarray:
    numbers = np.asarray(groups)
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
        raise ValueError("groups must be a list of integers, the group of each coordinate")
    if numbers.size and numbers.min() < 0:
        raise ValueError(f"groups are counted from 0, but there is a {numbers.min()}")
    return numbers.astype(np.intp)
