"""No optimizer step on gradients that were not averaged.

PyTorch takes the step, replicas drift apart, and the error comes with the next forward. Here every
optimizer asks first. That costs a look at an empty set in a healthy loop.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

from minitorch.autograd.grad_mode import mode

if TYPE_CHECKING:
    from ._ddp_reducer import GradientReducer


class _OpenPasses(threading.local):
    """Reducers of this rank (thread) whose backward has begun and is not reduced."""

    def __init__(self) -> None:
        self.reducers: weakref.WeakSet[GradientReducer] = weakref.WeakSet()


open_passes = _OpenPasses()


def guard_optimizers() -> None:
    """Have every optimizer look for unreduced gradients before it steps."""
    from minitorch.optim import optimizer

    if check_before_step not in optimizer._pre_step_checks:
        optimizer._pre_step_checks.append(check_before_step)


def check_before_step(optimizer: Any) -> None:
    """Refuse an optimizer step on gradients that were not averaged.

    Runs before every ``Optimizer.step``. Looks at this rank's reducers with a backward that has
    begun and is not reduced, which is none in a healthy loop, and only at parameters that this
    optimizer holds.

    Raises
    ------
    RuntimeError
        "Expected to have finished reduction ...", naming the parameters without a gradient. PyTorch
        takes the step on local gradients, replicas drift apart, and the error comes with the next
        forward.
    """
    if not open_passes.reducers:
        return
    inside_backward = mode.task is not None
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    for reducer in list(open_passes.reducers):
        if not any(id(p) in held for p in reducer.parameters):
            continue
        if inside_backward:
            raise RuntimeError(
                "An optimizer stepped inside backward, on gradients that DistributedDataParallel "
                "has not averaged yet. Step after backward."
            )
        if text := reducer.unfinished():
            raise RuntimeError(text)
