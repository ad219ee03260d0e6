"""The smoothness constant L, found while stepping (Schmidt, Le Roux and Bach, 2013, section 4.6).

If a sample's gradient is L-Lipschitz, then f_i(x - g/L) <= f_i(x) - |g|^2 / (2 L) for g = f_i'(x).
Where that fails, L was too small and is doubled. Between steps L shrinks by 2^(-1/n), so that a
region of small curvature is noticed within a pass or two.

Cost: two forward passes of the sample per step, one more per doubling.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..autograd.grad_mode import no_grad
from ..tensor import Tensor
from ._flat import FlatParameters
from ._rules import plain

__all__ = ["search_smoothness"]

# Below this the promised decrease drowns in the rounding of the loss.
_SMALLEST_SQUARED_GRADIENT = 1e-8
# So many doublings without a visible decrease, and the loss is not that of the gradient.
_MOST_BLIND_DOUBLINGS = 10


def search_smoothness(
    L: float, flat: FlatParameters, gradient: np.ndarray, closure: Callable[[], Any]
) -> tuple[float, float]:
    """Double ``L`` until the sample's loss decreases as it promises.

    Parameters
    ----------
    L : float
        Where to begin.
    gradient : numpy.ndarray
        Of the sample, at the present parameters, coupled weight decay included.
    closure : callable
        Returns the sample's loss; no backward needed.

    Returns
    -------
    L : float
    loss : float
        The sample's loss at the present parameters, without weight decay.
    """
    wide = gradient.astype(np.float64, copy=False)  # where no square overflows
    squared = float(np.dot(wide, wide))
    with no_grad():
        loss = _number(closure())
        if not math.isfinite(loss):
            raise FloatingPointError(
                "line search: this sample's loss is not finite; nothing has been changed"
            )
        if not squared > _SMALLEST_SQUARED_GRADIENT:  # also where it is not finite
            return L, loss
        here = flat.values()
        before = loss + _coupled_penalty(flat)
        slack = 8.0 * flat.eps * max(abs(before), 1e-300)
        try:
            for doublings in itertools.count():
                promised = squared / (2.0 * L)
                if promised < slack:  # nothing can be seen any more
                    if doublings < _MOST_BLIND_DOUBLINGS:
                        return L, loss
                    break
                flat.set_values(here - gradient / flat.dtype.type(L))
                if _number(closure()) + _coupled_penalty(flat) <= before - promised:
                    return L, loss
                L *= 2.0
        finally:
            flat.set_values(here)
    raise RuntimeError(
        f"line search: this sample's loss does not decrease along its gradient, even with "
        f"L = {L:.3g}. Does the closure compute the loss whose gradient is stepped on (the same "
        "sample, no dropout)?"
    )


def _number(loss: Any) -> float:
    if loss is None:
        raise TypeError("line search: the closure must return the loss, but it returned None")
    value = float(loss.item() if isinstance(loss, Tensor) else loss)
    return math.inf if math.isnan(value) else value


def _coupled_penalty(flat: FlatParameters) -> float:
    total = 0.0
    for param, group, _ in flat.entries:
        decay = plain(group["weight_decay"])
        if decay and not group["decoupled_weight_decay"]:
            values = param._array.reshape(-1).astype(np.float64, copy=False)
            total += 0.5 * decay * float(np.dot(values, values))
    return total
