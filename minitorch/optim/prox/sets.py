"""Constraints: h is 0 inside a convex set and infinite outside, and prox is the projection."""

from __future__ import annotations

import math

import numpy as np

from .base import Prox, checked_step

__all__ = ["NonNegative", "Simplex"]


class NonNegative(Prox):
    """x_i >= 0 for all i.

    Examples
    --------
    >>> import numpy as np
    >>> from minitorch.optim.prox import NonNegative
    >>> NonNegative().prox(np.array([-1.0, 2.0]), step=0.1)
    array([0., 2.])
    """

    def value(self, x: np.ndarray) -> float:
        """0 where no element is negative."""
        return 0.0 if float(np.min(x, initial=0.0)) >= 0.0 else math.inf

    def prox(self, v: np.ndarray, step: float, out: np.ndarray | None = None) -> np.ndarray:
        """max(v, 0)."""
        checked_step(step)
        return np.maximum(v, 0.0, out=out)

    def conjugate(self, u: np.ndarray) -> float:
        """0 where no element is positive."""
        return 0.0 if float(np.max(u, initial=0.0)) <= 0.0 else math.inf

    def __repr__(self) -> str:
        return "NonNegative()"


class Simplex(Prox):
    """x_i >= 0 and sum x_i = radius.

    Parameters
    ----------
    radius : float, default 1
        Positive.
    dim : int, optional
        The dimension along which the sums are taken: with -1, each row is a distribution. By
        default the whole array is one.

    Examples
    --------
    >>> import numpy as np
    >>> from minitorch.optim.prox import Simplex
    >>> Simplex().prox(np.array([0.5, 1.0, -2.0]), step=0.1)
    array([0.25, 0.75, 0.  ])
    """

    def __init__(self, radius: float = 1.0, *, dim: int | None = None) -> None:
        if not 0.0 < radius < math.inf:
            raise ValueError(f"radius must be positive and finite, but got {radius}")
        self.radius = float(radius)
        self.dim = dim

    def value(self, x: np.ndarray) -> float:
        """0 inside, up to the rounding of a sum in the dtype of ``x``."""
        rows = self._rows(x)
        if float(np.min(rows, initial=0.0)) < 0.0:
            return math.inf
        away = np.abs(rows.sum(axis=-1, dtype=np.float64) - self.radius)
        allowed = 4.0 * self.radius * np.finfo(x.dtype).eps * (1.0 + math.sqrt(rows.shape[-1]))
        return 0.0 if float(np.max(away, initial=0.0)) <= allowed else math.inf

    def prox(self, v: np.ndarray, step: float, out: np.ndarray | None = None) -> np.ndarray:
        """The projection: max(v - t, 0) with the one t for which it sums to the radius.

        Found by sorting (Held, Wolfe and Crowder, 1974; Duchi et al., 2008, figure 1).
        """
        checked_step(step)
        rows = self._rows(v)
        if rows.shape[-1] == 0:
            raise ValueError("no point of an empty array lies on the simplex")
        descending = -np.sort(-rows, axis=-1)
        # Only differences matter: taken from the largest, they are exact where it counts.
        descending -= descending[..., :1]
        tail = (np.cumsum(descending, axis=-1) - self.radius) / np.arange(1, rows.shape[-1] + 1)
        last = np.count_nonzero(descending > tail, axis=-1, keepdims=True) - 1
        threshold = np.take_along_axis(tail, last, axis=-1)
        shifted = rows - rows.max(axis=-1, keepdims=True)
        projected = np.maximum(shifted - threshold, 0.0).astype(v.dtype, copy=False)
        if self.dim is None:
            projected = projected.reshape(v.shape)
        else:
            projected = np.moveaxis(projected, -1, self.dim)
        if out is None:
            return projected
        out[...] = projected
        return out

    def conjugate(self, u: np.ndarray) -> float:
        """Radius * max u_i, summed over the rows."""
        return self.radius * float(self._rows(u).max(axis=-1).sum())

    def _rows(self, x: np.ndarray) -> np.ndarray:
        """The distributions along the last axis."""
        return x.reshape(-1) if self.dim is None else np.moveaxis(x, self.dim, -1)

    def __repr__(self) -> str:
        return f"Simplex({self.radius:g}" + ("" if self.dim is None else f", dim={self.dim}") + ")"
