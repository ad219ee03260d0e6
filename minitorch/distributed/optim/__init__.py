"""``minitorch.distributed.optim``: optimizers that know of the other ranks.

* ``in_backward.py`` - a parameter's step as soon as its gradient has been averaged
"""

from __future__ import annotations

from .in_backward import (
    _apply_optimizer_in_backward,
    _get_in_backward_optimizers,
    as_functional_optim,
)

__all__ = ["as_functional_optim"]
_NAMES = (_apply_optimizer_in_backward, _get_in_backward_optimizers)
