"""What the update rules share: checks of their options, and their state."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..autograd.graph import wrap
from ..tensor import Tensor

__all__ = ["check_hints", "check_lr", "new_state", "next_step", "plain"]


def plain(value: Any) -> float:
    """A hyperparameter as a Python number, also if it was given as a 1-element tensor."""
    return value.item() if isinstance(value, Tensor) else value


def new_state(param: Tensor, fill: float = 0.0) -> Tensor:
    """A state tensor shaped like the parameter."""
    return wrap(np.full(param._array.shape, fill, dtype=param._array.dtype))


def refuse_sparse(name: str, param: Tensor) -> None:
    """Raise if the gradient is sparse; before any state is touched.

    Raises
    ------
    RuntimeError
        In PyTorch's words.
    """
    if param.grad is not None and param.grad.is_sparse:
        raise RuntimeError(
            f"{name} does not support sparse gradients. Use SGD for this parameter, or build "
            "nn.Embedding with sparse=False."
        )


def next_step(state: dict[str, Any], increment: int = 1) -> int:
    """Advance ``state["step"]``, a 0-d float32 tensor as in PyTorch's checkpoints."""
    step = state["step"]
    if step is None:
        step = state["step"] = wrap(np.zeros((), dtype=np.float32))
    elif not isinstance(step, Tensor):  # PyTorch wrote plain numbers once
        step = state["step"] = wrap(np.array(step, dtype=np.float32))
    step._array[...] += increment
    return int(step._array)


def check_lr(lr: Any) -> None:
    """Refuse a negative or several-valued learning rate."""
    if isinstance(lr, Tensor) and lr._array.size != 1:
        raise ValueError("Tensor lr must be 1-element")
    if not plain(lr) >= 0.0:
        raise ValueError(f"Invalid learning rate: {lr}")


def check_hints(
    name: str,
    foreach: bool | None = None,
    fused: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
) -> None:
    """Accept PyTorch's choice of implementation, refuse what would change the result."""
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
    if capturable:
        raise RuntimeError(f"{name}: capturable=True needs a GPU graph; minitorch runs on the CPU")
    if differentiable:
        raise RuntimeError(
            f"{name}: differentiable=True is not supported: steps are made in place, outside the "
            "graph"
        )
