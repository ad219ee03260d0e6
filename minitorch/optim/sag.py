"""SAG: step along the mean of the table (Schmidt, Le Roux and Bach, 2013).

    g_j <- f_j'(x);  x <- x - lr * mean(g)

Compared with SAGA, the change of the row counts 1/n instead of 1: far less variance, but the
direction's expectation is not the gradient. There is no theory for a prox; it is applied all the
same, for comparison.
"""

from __future__ import annotations

import numpy as np

from .saga import TableOptimizer

__all__ = ["SAG"]


class SAG(TableOptimizer):
    """Stochastic average gradient; parameters and use as :class:`SAGA`.

    With ``L`` (and whatever ``mu``), lr = 1/(16 L), for which linear convergence is proved; many
    problems allow 1/L.
    """

    _kind = "SAG"

    def _step_size(self, L: float, mu: float | None) -> float:
        return 1.0 / (16.0 * L)

    def _estimate(self, index: int | None, gradient: np.ndarray, out: np.ndarray) -> None:
        if index is None:
            out[...] = self._mean
            return
        np.subtract(gradient, self._rows[index], out=self._change)
        np.divide(self._change, self.n_samples, out=out)
        np.add(out, self._mean, out=out, casting="same_kind")
