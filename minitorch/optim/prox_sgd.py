"""Proximal SGD: x <- prox_{lr h}(x - lr * f_j'(x)). The rung below SAGA.

With a constant step it stops getting closer at a distance that the gradients' variance sets, its
noise floor; with a falling one (``lr_scheduler``) it gets there, slowly.
"""

from __future__ import annotations

import numpy as np

from ._finite_sum import Closure, FiniteSumOptimizer

__all__ = ["ProxSGD"]


class ProxSGD(FiniteSumOptimizer):
    """SGD with a prox; parameters and use as :class:`SAGA`, without a table.

    With ``L`` (and whatever ``mu``), lr = 1/(2 L).
    """

    _kind = "ProxSGD"

    def init_table(self, closure: Closure) -> None:
        """Do nothing: there is no table. (So that one loop can drive all these methods.)"""

    def _step_size(self, L: float, mu: float | None) -> float:
        return 1.0 / (2.0 * L)

    def _estimate(self, index: int | None, gradient: np.ndarray, out: np.ndarray) -> None:
        out[...] = 0.0 if index is None else gradient
