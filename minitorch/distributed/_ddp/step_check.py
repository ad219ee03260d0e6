"""No optimizer step on gradients that were not averaged.

PyTorch takes the step, replicas drift apart, and the error comes with the next forward. Here every
optimizer asks first. That costs a look at an empty set in a healthy loop.
"""

from __future__ import annotations

import threading
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from minitorch.autograd.grad_mode import mode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from minitorch.tensor import Tensor

    from .delayed import DelayedAllReduce
    from .reducer import GradientReducer


class _OpenPasses(threading.local):
    """What this rank (thread) is in the middle of."""

    def __init__(self) -> None:
        # Reducers whose backward has begun and is not reduced.
        self.reducers: weakref.WeakSet[GradientReducer | DelayedAllReduce] = weakref.WeakSet()
        # Reducers in a backward that is to stay local: its forward ran under no_sync.
        self.local: weakref.WeakSet[GradientReducer] = weakref.WeakSet()
        # Reducers at work, whether or not a backward runs.
        self.at_work: weakref.WeakSet[GradientReducer] = weakref.WeakSet()
        self.stepping_on_averages = False


open_passes = _OpenPasses()


def is_averaged(parameters: Iterable[Tensor]) -> bool:
    """Whether a live DistributedDataParallel averages the gradient of one of them."""
    reducers = list(open_passes.at_work)
    return any(reducer.manages(p) for p in parameters for reducer in reducers)


@contextmanager
def stepping_on_averages() -> Iterator[None]:
    """Let optimizers step inside backward: a hook does it, with gradients already averaged."""
    before, open_passes.stepping_on_averages = open_passes.stepping_on_averages, True
    try:
        yield
    finally:
        open_passes.stepping_on_averages = before


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
    if not open_passes.reducers or open_passes.stepping_on_averages:
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
